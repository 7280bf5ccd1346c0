"""Rollouts of a MachineDeployment as the command line tells and changes them."""
