"""The cloudpool REST API, on both sides: a proxy that knows what runs on the machines, and MachineSets as a pool."""
