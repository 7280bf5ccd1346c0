"""The provider ``openstack`` for its entry point."""

from __future__ import annotations

from providers.openstack import registration

__all__ = ["registration"]
