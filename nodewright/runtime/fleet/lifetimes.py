"""How long Machines take from phase to phase, as seen in the cache: nothing is written for it.

A Machine on a smooth way is reported rarely (ADR 0005), so two phases are also recognised by what they leave behind: it
is Provisioning once it has a providerID, and Provisioned once a Node with that providerID is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from api.names import MachinePhase
from controllers.kernel import view
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import MACHINE, NODE, Key, Obj, is_deleting, uid_of
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.indexes import provider_id
from nodewright.runtime.cache.store import Change
from nodewright.runtime.telemetry import metrics

_PHASES = frozenset(MachinePhase)
_ON_THE_WAY = (MachinePhase.PENDING, MachinePhase.PROVISIONING, MachinePhase.PROVISIONED)
"""In this order; what an object leaves behind never takes it back."""


class Lifetimes:
    """Listens to ``cache``. What was there before the first list is only timed for what it still has ahead."""

    def __init__(self, cache: Cache, now: Callable[[], datetime]) -> None:
        self._cache = cache
        self._now = now
        self._phases: dict[str, tuple[str, datetime | None]] = {}
        """By Machine UID: its phase, and since when if that was seen."""
        if MACHINE in cache.stores:
            cache.listen(MACHINE, self._machine_changed)
        if NODE in cache.stores:
            cache.listen(NODE, self._node_changed)

    def _machine_changed(self, change: Change, from_list: bool) -> None:
        if change.new is None:
            if change.old is not None:
                self._gone(change.old)
            return
        if change.old is None and uid_of(change.new) not in self._phases:
            self._appeared(change.new, from_list)
        else:
            self._look(change.new)

    def node_elsewhere(self, _cluster: Key, change: Change, from_list: bool) -> None:
        """The same for a Node of a workload cluster."""
        self._node_changed(change, from_list)

    def _node_changed(self, change: Change, _from_list: bool) -> None:
        node_id = provider_id(change.new) if change.new is not None and change.old is None else None
        if node_id and MACHINE in self._cache.stores:
            for machine in self._cache.stores[MACHINE].indexed(view.PROVIDER_ID, node_id):
                self._look(machine, joined=True)

    def _appeared(self, machine: Obj, from_list: bool) -> None:
        phase = self._phase(machine, MachinePhase.PENDING, joined=False)
        fresh = phase == MachinePhase.PENDING and not from_list
        self._phases[uid_of(machine)] = (phase, _time(machine, "creationTimestamp") if fresh else None)

    def _look(self, machine: Obj, joined: bool = False) -> None:
        uid = uid_of(machine)
        before, since = self._phases.get(uid, (MachinePhase.PENDING, None))
        phase = self._phase(machine, before, joined)
        if phase == before:
            return
        now = self._now()
        self._phases[uid] = (phase, now)
        if since is not None:
            metrics.of(metrics.MACHINE_PHASE, before).observe(_seconds(since, now))
        created = _time(machine, "creationTimestamp")
        first_time = before in _ON_THE_WAY and phase != MachinePhase.DELETING
        if created is not None and first_time:
            metrics.of(metrics.MACHINE_REACHED, phase).observe(_seconds(created, now))

    def _gone(self, machine: Obj) -> None:
        self._phases.pop(uid_of(machine), None)
        asked = _time(machine, "deletionTimestamp")
        if asked is not None:
            metrics.MACHINE_DELETED.observe(_seconds(asked, self._now()))

    def _phase(self, machine: Obj, before: str, joined: bool) -> str:
        """What the status says, or what the Machine has left behind since if that is further on its way."""
        if is_deleting(machine):
            return MachinePhase.DELETING
        status = machine.get("status")
        phase = (status.get("phase") if isinstance(status, Mapping) else None) or MachinePhase.PENDING
        if not isinstance(phase, str) or phase not in _PHASES:
            return MachinePhase.UNKNOWN
        if phase not in _ON_THE_WAY:
            return str(phase)
        host_id = provider_id(machine)
        if host_id is None and before == phase:
            return phase  # a Machine that was just made, as most that are new
        seen = [MachinePhase(phase)]
        if before in _ON_THE_WAY:
            seen.append(MachinePhase(before))
        if host_id:
            nodes = self._cache.stores.get(NODE)
            joined = joined or (nodes is not None and bool(nodes.indexed(view.PROVIDER_ID, host_id)))
            seen.append(MachinePhase.PROVISIONED if joined else MachinePhase.PROVISIONING)
        return max(seen, key=_ON_THE_WAY.index)


def _time(machine: Obj, field: str) -> datetime | None:
    text: Any = machine["metadata"].get(field)
    return parse_time(text)


def _seconds(since: datetime, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)
