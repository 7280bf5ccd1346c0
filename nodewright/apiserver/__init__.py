"""The embedded control plane: a small Kubernetes API server in the same process, for bootstrap, trial and tests."""
