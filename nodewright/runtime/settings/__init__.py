"""What a process is started with: its options, its list of reconcilers, and the rights that these need."""
