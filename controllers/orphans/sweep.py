"""Which hosts are orphans, and which of them may be removed now.

Removing a host that somebody needs is the worst that can happen here: a peer removed every worker while its API server
was down (machine-controller-manager#657), another raced with creations (MCM#583). So a host has to look orphaned for
long, in several lists, to a controller that has followed the Machines all the while; and a list that looks like
somebody else's account is not touched at all. Several clusters may share an account: a host with the mark of another
one is not looked at, and one without a mark is reported and never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from controllers.kernel.conditions import counted
from providers.base.contract import Host, HostState

GRACE = timedelta(minutes=15)
"""How long a host has to be there, and to look orphaned."""
MIN_LISTS = 2
"""Lists that have to show it so, each taken anew."""
STALE = timedelta(minutes=5)
"""A list older than this says nothing."""
STEADY = timedelta(minutes=10)
"""For how long the Machines have to have been followed without an outage."""
MOST_SHARE = 10
"""At most one host in so many of a scope is removed in a sweep, and one in any case."""


@dataclass(frozen=True, slots=True)
class HostList:
    """The last list of a scope. ``began``: when it was asked for, None: never. ``problem``: why the last try failed."""

    scope: str
    hosts: tuple[Host, ...] = ()
    began: datetime | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Since when a host has looked orphaned, in how many lists, and in which one last."""

    first: datetime
    last: datetime
    lists: int = 1


Memory = Mapping[tuple[str, str], Sighting]
"""By scope and id of the host. Lost with the process, which only makes things slower."""


@dataclass(frozen=True, slots=True)
class Observed:
    """``machines``: UIDs of all Machines; ``followed_since``: without an outage since then, None: there is one now.

    ``cluster``: the mark of our hosts (``HostIdentity.management_cluster``); "": not known, and nothing is removed.
    """

    now: datetime
    lists: tuple[HostList, ...]
    machines: frozenset[str]
    followed_since: datetime | None
    memory: Memory = field(default_factory=dict)
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Orphan:
    """``ours``: it carries our cluster's mark, so that it may be removed."""

    scope: str
    host: Host
    why: str
    ours: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """``orphans``: proven ones; ``due``: those of them to remove now. ``frozen``: why a scope is not judged.

    ``strange``: of those the ones with too many unknown hosts, which only a person can judge.
    """

    memory: Memory
    orphans: tuple[Orphan, ...] = ()
    due: tuple[Orphan, ...] = ()
    frozen: Mapping[str, str] = field(default_factory=dict)
    strange: Mapping[str, str] = field(default_factory=dict)


def sweep(observed: Observed) -> Sweep:
    memory: dict[tuple[str, str], Sighting] = {}
    orphans: list[Orphan] = []
    due: list[Orphan] = []
    frozen: dict[str, str] = {}
    strange: dict[str, str] = {}
    for one in observed.lists:
        why = _frozen(observed, one)
        if not why and (why := _strange(observed, one)):
            strange[one.scope] = why
        if why:
            frozen[one.scope] = why
            continue
        seen = {(one.scope, host.id): _seen(observed, one, host) for host in _unknown(observed, one)}
        memory |= seen
        found = _orphans(observed, one, seen)
        orphans += found
        due += [orphan for orphan in found if orphan.ours][: max(1, len(one.hosts) // MOST_SHARE)]
    return Sweep(memory, tuple(orphans), tuple(due), frozen, strange)


def _orphans(observed: Observed, one: HostList, seen: Mapping[tuple[str, str], Sighting]) -> list[Orphan]:
    """Of one list, those seen for the longest first."""
    proven = [host for host in _unknown(observed, one) if _is_proven(observed, host, seen[one.scope, host.id])]
    proven.sort(key=lambda host: (seen[one.scope, host.id].first, host.id))
    return [_orphan(observed, one.scope, host, seen[one.scope, host.id]) for host in proven]


def _frozen(observed: Observed, one: HostList) -> str:
    """Why nothing can be concluded from this list, "" if something can."""
    if observed.followed_since is None or observed.now - observed.followed_since < STEADY:
        return "the Machines have not been followed for long enough without an outage"
    if one.problem:
        return one.problem
    if one.began is None or observed.now - one.began > STALE:
        return "its hosts have not been listed lately"
    if one.began < observed.followed_since:
        return "its hosts were listed before the Machines were read"
    return ""


def _strange(observed: Observed, one: HostList) -> str:
    """Why it may be somebody else's account, "" if it is not likely."""
    unknown = len(list(_unknown(observed, one)))
    there = sum(not _is_of_another_cluster(observed, host) for host in one.hosts)
    if 2 * unknown > there:
        message = counted(there, "host")
        return f"{unknown} of its {message} are no Machine's here: it looks like the account of another cluster too"
    return ""


def _unknown(observed: Observed, one: HostList) -> Iterable[Host]:
    """Hosts that are on their way out already are somebody's business."""
    return [
        host
        for host in one.hosts
        if host.machine_uid
        and host.machine_uid not in observed.machines
        and host.state is not HostState.DELETING
        and not _is_of_another_cluster(observed, host)
    ]


def _is_of_another_cluster(observed: Observed, host: Host) -> bool:
    """A Machine's host is ours by its UID, whatever it carries: the Machine may have been moved here."""
    return (
        bool(host.management_cluster and observed.cluster)
        and host.management_cluster != observed.cluster
        and host.machine_uid not in observed.machines
    )


def _seen(observed: Observed, one: HostList, host: Host) -> Sighting:
    began = one.began or observed.now
    before = observed.memory.get((one.scope, host.id))
    if before is None:
        return Sighting(began, began)
    return Sighting(before.first, began, before.lists + 1) if began > before.last else before


def _is_proven(observed: Observed, host: Host, seen: Sighting) -> bool:
    born = host.created_at or seen.first
    return seen.lists >= MIN_LISTS and observed.now - max(seen.first, born) >= GRACE


def _orphan(observed: Observed, scope: str, host: Host, seen: Sighting) -> Orphan:
    ours = bool(host.management_cluster) and host.management_cluster == observed.cluster
    unmarked = "" if ours else "; nothing says of which cluster it is: it is not removed by itself"
    return Orphan(scope, host, _why(seen, host) + unmarked, ours)


def _why(seen: Sighting, host: Host) -> str:
    minutes = int((seen.last - seen.first).total_seconds() // 60)
    message = f"{counted(seen.lists, 'list')} in {counted(minutes, 'minute')}"
    return f"host {host.name or host.id} carries the UID {host.machine_uid}, which no Machine has had in {message}"
