"""A Cluster with all that belongs to it, from one management cluster to another (docs/adr/0027): decisions alone."""
