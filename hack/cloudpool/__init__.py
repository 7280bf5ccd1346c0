"""Scenes of the cloudpool gateways, for tests and benchmarks: a pool, a cluster and a proxy between them."""
