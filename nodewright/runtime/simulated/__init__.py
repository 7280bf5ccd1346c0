"""Nodes and pods of simulated hosts: kubelets and a scheduler are played through the API server."""
