"""The MachineSet reconciler: as many equal Machines as asked for, never more, each identity used once."""
