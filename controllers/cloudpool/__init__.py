"""Cloudpools: which machine of a pool goes, what its Node needs before, and a MachineSet seen as a pool. Pure."""
