"""What lies between a plan and a provider: shared lists, calls with limits, back-off, what is known of each host."""
