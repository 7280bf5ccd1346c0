"""The running program, all I/O: runtime, control plane, command line."""

__version__ = "0.1.0"
