"""Which of several processes works: Leases, what each claims, and the proof that another one has ended."""
