"""Which key is looked at next, and how namespaces take turns."""
