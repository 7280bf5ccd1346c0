"""The MachineHealthCheck reconciler: which Machines are unhealthy, and which their owner is asked to replace."""
