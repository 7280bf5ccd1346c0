"""Encrypted files that hold objects: archives of `nodewright move` and backups of `nodewright up` (docs/adr/0063)."""
