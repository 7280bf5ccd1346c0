"""The MachineDeployment room: Machines of a template that may change, rolled out by MachineSets within limits."""
