"""What people may do with an embedded control plane."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """One for each person (docs/tasks/one-machine.md)."""

    ADMIN = "admin"
    """Everything."""
    READ_ONLY = "read-only"
    """Get, list and watch all but Secrets."""
