"""The Machine reconciler: one host and one Node for each Machine, kept as its spec asks, and removed with it."""
