"""The MachineHealthCheck room: which Machines are unhealthy, and which of them their owner is asked to replace."""
