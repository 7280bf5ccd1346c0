"""Whose host is it, of several Machines that say they have it or its name? Anybody writes a ``spec.providerID``.

The Machine controller refutes it (HostMissing, NodeConflict) once it has asked the provider, but for a Machine that is
paused. ``status.hostScope`` is written only where the provider showed a host of the Machine's own UID.
"""

from __future__ import annotations

from collections.abc import Iterable

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import find
from controllers.kernel.refs import Obj, mapping

_REFUTED = frozenset({Reason.HOST_MISSING, Reason.NODE_CONFLICT})


def is_refuted(machine: Obj) -> bool:
    """The Machine controller found no host of it with that providerID: a person wrote it."""
    condition = find(mapping(machine.get("status")).get("conditions"), MachineCondition.INFRASTRUCTURE_READY)
    return condition is not None and condition.get("reason") in _REFUTED


def is_seen(machine: Obj) -> bool:
    """The Machine controller has seen a host of it."""
    return bool(mapping(machine.get("status")).get("hostScope"))


def likeliest(bound: Iterable[Obj]) -> list[Obj]:
    """Of Machines with a providerID those whose hosts were seen; where none was, those that nobody has refuted."""
    free = [machine for machine in bound if not is_refuted(machine)]
    return [machine for machine in free if is_seen(machine)] or free
