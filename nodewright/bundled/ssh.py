"""The provider ``ssh`` for its entry point."""

from __future__ import annotations

from providers.ssh import registration

__all__ = ["registration"]
