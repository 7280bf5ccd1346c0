"""The MachineClass reconciler: whether the configuration can be used, and by how many Machines it is."""
