"""What is told of a fleet, as values: trees with reasons, what is wrong, what happened when. No I/O."""
