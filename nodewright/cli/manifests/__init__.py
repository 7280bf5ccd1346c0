"""Manifests as people write them: YAML with line numbers, and everything that can be wrong with one."""
