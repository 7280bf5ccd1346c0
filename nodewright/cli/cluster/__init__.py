"""A cluster as the command line reads it."""
