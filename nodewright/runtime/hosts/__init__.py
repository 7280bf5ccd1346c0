"""Everything between a plan and a provider: shared lists, calls with limits, back-off, and what is known of each host."""
