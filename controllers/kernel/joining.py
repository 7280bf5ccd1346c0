"""Machines on their way into their cluster, and those that have arrived: how the cache files them, so that they can be
counted without a look at all others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import Obj, is_deleting


@dataclass(frozen=True, slots=True)
class Limits:
    """How many hosts may come up at once where no Cluster says so (None: no limit of this kind).

    ``token_lifetime``: within this a host has to join, since what it joins with is not valid for longer.
    """

    hosts_in_flight: int | None = None
    token_lifetime: timedelta | None = None


NO_LIMITS = Limits()


def cluster_title(machine: Obj) -> str:
    """``namespace/name`` of the Machine's Cluster; "" for the implicit one, which is the same in all namespaces."""
    name = cluster_name_of(machine)
    return f"{machine['metadata'].get('namespace', '')}/{name}" if name else ""


def coming_up(machine: Obj) -> str | None:
    """Index COMING_UP: the Cluster of a Machine that has no Node yet and is not going; None for any other."""
    return None if is_deleting(machine) or _has_node(machine) else cluster_title(machine)


def joined(machine: Obj) -> str | None:
    """Index JOINED: the Cluster of a Machine that has a Node; None for any other."""
    return cluster_title(machine) if _has_node(machine) else None


def _has_node(machine: Obj) -> bool:
    status = machine.get("status")
    return isinstance(status, dict) and bool(status.get("nodeRef"))
