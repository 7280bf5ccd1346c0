"""The provider ``simulated`` for its entry point."""

from __future__ import annotations

from providers.simulated import registration

__all__ = ["registration"]
