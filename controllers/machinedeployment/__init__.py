"""The MachineDeployment reconciler: Machines of a template that may change, rolled out by MachineSets within limits."""
