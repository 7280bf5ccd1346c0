"""Manifests of a cluster out of a template and a few values."""
