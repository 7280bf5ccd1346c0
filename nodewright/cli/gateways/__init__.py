"""The gateways as commands: one module each."""
