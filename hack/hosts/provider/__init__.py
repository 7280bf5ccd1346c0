"""The provider of the lab: a small cloud of real hosts, installed as a package of its own like any third party's."""

from __future__ import annotations

from hack.hosts.provider.provider import registration

__all__ = ["registration"]
