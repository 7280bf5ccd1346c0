"""A namespace that does all it may against others, beside a busy one: for tests and the benchmark."""
