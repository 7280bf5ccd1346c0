"""Workload clusters: one connection for each Cluster with a kubeconfig Secret, none of which can hold up another."""
