"""The embedded control plane with the controllers, as one thing that starts and stops."""
