"""What is known of the hosts of one scope: the last complete list, and what our own calls said since. Pure.

Times are seconds of a monotonic clock. A list speaks for the moment it was *started*: what a call said after that
moment is newer than the list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from controllers.kernel.view import HostAbsent, HostPresent, HostRead
from providers.base.contract import Host, HostState

_CHANGING = frozenset({HostState.PENDING, HostState.UPDATING, HostState.DELETING})


@dataclass(frozen=True, slots=True)
class _Entry:
    host: Host
    called_at: float = float("-inf")
    """When a call of ours gave ``host``; -inf: the last list did."""


class Listing:
    """Hosts by Machine UID."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._called: dict[str, float] = {}
        self._started: float | None = None
        self.pending: set[str] = set()
        """UIDs whose hosts are not up yet."""
        self.duplicates: tuple[Host, ...] = ()
        """Hosts that share a Machine's UID with another one: never ours by contract, shown for people to look at."""

    @property
    def complete(self) -> bool:
        return self._started is not None

    def read(self, uid: str, fresh_within: float, now: float) -> HostRead | None:
        """Present or absent if known within ``fresh_within``, else None: list first."""
        listed_at = float("-inf") if self._started is None else self._started
        entry = self._entries.get(uid)
        leftover = entry.host if entry is not None and entry.host.state is HostState.UNFINISHED else None
        if entry is not None and leftover is None:
            return HostPresent(entry.host) if now - max(listed_at, entry.called_at) <= fresh_within else None
        asked_after_call = listed_at > self._called.get(uid, float("-inf"))
        return HostAbsent(leftover) if asked_after_call and now - listed_at <= fresh_within else None

    def hosts(self) -> tuple[Host, ...]:
        """All that are known, those that share a Machine's UID included."""
        return (*(entry.host for entry in self._entries.values()), *self.duplicates)

    @property
    def began(self) -> float | None:
        """When the last complete list was begun."""
        return self._started

    def host(self, uid: str) -> Host | None:
        entry = self._entries.get(uid)
        return entry.host if entry else None

    def listed(self, hosts: Iterable[Host], started: float) -> set[str]:
        """Take in a complete list; answers the UIDs of hosts that appeared, changed or went."""
        chosen, self.duplicates = _one_per_uid(hosts)
        changed: set[str] = set()
        for uid, host in chosen.items():
            entry = self._entries.get(uid)
            if entry is None and self._called.get(uid, float("-inf")) > started:
                continue
            if entry is None or entry.called_at <= started:
                if entry is None or (entry.host is not host and entry.host != host):
                    changed.add(uid)
                self._put(uid, host)
        for uid in [u for u, entry in self._entries.items() if u not in chosen and entry.called_at <= started]:
            self._put(uid, None)
            changed.add(uid)
        # A Machine that waits to see its host absent is waiting for just this list.
        there = {uid for uid, host in chosen.items() if host.state is not HostState.UNFINISHED}
        changed.update(uid for uid, called in self._called.items() if called <= started and uid not in there)
        self._called = {uid: called for uid, called in self._called.items() if called > started}
        self._started = started
        return changed

    def called(self, uid: str, now: float) -> None:
        """A call for ``uid`` has ended, however: only a list started later can tell that its host is absent."""
        self._called[uid] = now

    def created(self, host: Host, now: float) -> None:
        self._put(host.machine_uid, host, now)

    def updated(self, uid: str, spec_hash: str, now: float) -> None:
        entry = self._entries.get(uid)
        if entry is not None:
            self._put(uid, replace(entry.host, spec_hash=spec_hash), now)

    def deleting(self, uid: str, host: Host, now: float) -> None:
        """The provider has accepted a delete; the host is there until a later list no longer shows it."""
        known = self._entries.get(uid)
        if known is not None and known.host.id == host.id:
            self._put(uid, replace(known.host, state=HostState.DELETING), now)

    def states(self) -> Counter[HostState]:
        return Counter(entry.host.state for entry in self._entries.values())

    @property
    def changing(self) -> bool:
        """Some host is on its way to another state, or a call waits to be seen in a list."""
        return bool(self._called) or any(entry.host.state in _CHANGING for entry in self._entries.values())

    def _put(self, uid: str, host: Host | None, called_at: float = float("-inf")) -> None:
        self._entries.pop(uid, None)
        self.pending.discard(uid)
        if host is not None:
            self._entries[uid] = _Entry(host, called_at)
            if host.state is HostState.PENDING:
                self.pending.add(uid)


def _one_per_uid(hosts: Iterable[Host]) -> tuple[dict[str, Host], tuple[Host, ...]]:
    chosen: dict[str, Host] = {}
    others: list[Host] = []
    for host in hosts:
        if not host.machine_uid:
            continue
        other = chosen.get(host.machine_uid)
        if other is None:
            chosen[host.machine_uid] = host
            continue
        first, second = sorted((other, host), key=lambda h: (h.state is HostState.DELETING, h.created_at is None, h.id))
        chosen[host.machine_uid] = first
        others.append(second)
    return chosen, tuple(others)
