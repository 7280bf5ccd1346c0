"""Whose turn is it to get a host? Limits on hosts that come up at once, for each Cluster and each MachineClass.

All that come up stand in one line: first those that have a host, then by age. A Machine may have its host made when
fewer stand before it than may come up at once. Each sees the same line, so they need no common counter, in one process
or in several. Where Machines of several namespaces stand in it (those without a Cluster), namespaces take turns, and
each leaves a tenth of the places to others. A Machine that waits for something else stands back (its provider refuses
or is silent, its bootstrap data can't be made, its control plane is not there, nobody can read it).

The limit by the life of a bootstrap token: a control plane that is slow lets hosts join late, and one that joins too
late never does (cluster-api#8112). So no more come up than have shown that they can join in time: a few at first, then
twice as many as did within the last such life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api.conditions import Reason
from api.durations import format_duration, parse_duration
from controllers.kernel.bound_hosts import is_seen
from controllers.kernel.joining import Limits, cluster_title
from controllers.kernel.machine_facts import MachineFacts, read
from controllers.kernel.ownership import cluster_of, paused_by
from controllers.kernel.provider_config import class_key
from controllers.kernel.refs import MACHINE, MACHINE_CLASS, Key, Obj, is_deleting, key_of, spec_of
from controllers.kernel.template import is_count
from controllers.kernel.view import COMING_UP, JOINED, MACHINE_CLASS_REF, View

JOINS_AT_FIRST = 20
"""Hosts that may come up before any has shown that it joins in time."""
GROWTH = 2
NOT_COMING = timedelta(minutes=30)
"""A host that runs for so long and has not joined holds up no others; with a token's lifetime it is that."""
SOON, LATE = 5.0, 30.0
"""Seconds until a Machine near the head of the line looks again, and until one far behind does."""
_IN_LINE = frozenset(
    (
        Reason.PENDING,
        Reason.PROVISIONING,
        Reason.HOSTS_IN_FLIGHT,
        Reason.WAITING_FOR_BOOTSTRAP_DATA,
        Reason.REPLACING,
    )
)
"""Reasons of a Machine that gets its host as soon as it is its turn. Of any other it is not this line that it waits in.
"""


@dataclass(frozen=True, slots=True)
class InFlightLimit:
    """``rule``: the limit in words for people; ``allowed``: how many may come up; ``ahead``: how many stand before.

    ``reason``: that of the condition of those that wait in it.
    """

    rule: str
    allowed: int
    ahead: int
    reason: str = Reason.HOSTS_IN_FLIGHT


@dataclass(frozen=True, slots=True)
class Queued:
    """Why a Machine has to wait, and in how many seconds it looks again."""

    why: str
    requeue_after: float
    reason: str


def must_queue(limits_: Iterable[InFlightLimit]) -> Queued | None:
    """None: it may have its host made. The words hold no counts: each would cost a write."""
    for limit in limits_:
        if limit.ahead >= limit.allowed:
            near = limit.ahead < 2 * max(limit.allowed, 1)
            return Queued(f"it waits for its turn: {limit.rule}", SOON if near else LATE, limit.reason)
    return None


def in_flight_limits(machine: Obj, view: View, limits: Limits) -> tuple[InFlightLimit, ...]:
    """The lines in which a Machine without a host stands; none where nobody set a limit."""
    return (*_of_cluster(machine, view, limits), *_of_class(machine, view))


def next_queued(machine: Obj, view: View) -> Iterator[Key]:
    """The Machine to requeue now that ``machine`` has left the queue: the first of those that wait.

    Only where an object sets the limit; under a flag alone they find out by looking again.
    """
    if _says_a_limit(cluster_of(machine, view)):
        yield from _first(view.indexed(MACHINE, COMING_UP, cluster_title(machine)), Reason.HOSTS_IN_FLIGHT)
    named = _class_of(machine)
    if named is not None and _says_a_limit(view.get(MACHINE_CLASS, named)):
        yield from _first(view.indexed(MACHINE, MACHINE_CLASS_REF, str(named)), Reason.CLASS_HOSTS_IN_FLIGHT)


def stays_queued(old: Obj, new: Obj) -> bool:
    """A change that lets nobody else move up."""
    before, after = _queues_ahead(read(old)), _queues_ahead(read(new))
    return not before or after


def _of_cluster(machine: Obj, view: View, limits: Limits) -> Iterator[InFlightLimit]:
    cluster, title = cluster_of(machine, view), cluster_title(machine)
    spec = spec_of(cluster or {})
    whose = f"Cluster {title}" if title else "the cluster"
    most, flag = spec.get("maxHostsInFlight"), "--cluster-hosts-in-flight"
    source = "spec.maxHostsInFlight" if most is not None else flag
    most = limits.hosts_in_flight if most is None else most
    lifetime = _lifetime(spec, limits)
    if most is None and lifetime is None:
        return
    patience = lifetime or NOT_COMING
    line = _line(machine, view.indexed(MACHINE, COMING_UP, title), view.now - patience, Reason.HOSTS_IN_FLIGHT)
    if most is not None:
        allowed = most if is_count(most) else 0
        yield from _limits(f"{whose} lets {most} hosts come up at once ({source})", allowed, line, shared=not title)
    if lifetime is not None:
        rule = f"no more hosts of {whose} come up at once than can join while a bootstrap token lives"
        needed = (line.ahead + GROWTH) // GROWTH
        allowed = max(JOINS_AT_FIRST, GROWTH * _joined_since(view, title, view.now - lifetime, needed))
        yield from _limits(f"{rule} ({format_duration(lifetime)})", allowed, line, shared=not title)


def _limits(rule: str, allowed: int, line: _Line, *, shared: bool) -> Iterator[InFlightLimit]:
    """``shared``: by namespaces that don't trust each other."""
    yield InFlightLimit(rule, allowed, line.ahead)
    if shared:
        yield InFlightLimit(
            f"{rule}, and a tenth of them is left to other namespaces", allowed - allowed // 10, line.own
        )


def _of_class(machine: Obj, view: View) -> Iterator[InFlightLimit]:
    named = _class_of(machine)
    found = view.get(MACHINE_CLASS, named) if named is not None else None
    most = (found or {}).get("maxHostsInFlight")
    if most is None:
        return
    unjoined = (one for one in view.indexed(MACHINE, MACHINE_CLASS_REF, str(named)) if not read(one).node_name)
    ahead = _line(machine, unjoined, view.now - NOT_COMING, Reason.CLASS_HOSTS_IN_FLIGHT).ahead
    rule = f"MachineClass {named} lets {most} hosts come up at once (maxHostsInFlight)"
    yield InFlightLimit(rule, most if is_count(most) else 0, ahead, Reason.CLASS_HOSTS_IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class _Line:
    """How many stand before a Machine: in all, and of its own namespace."""

    ahead: int
    own: int


def _line(machine: Obj, others: Iterable[Obj], given_up: datetime, reason: str) -> _Line:
    """Hosts that come up stand before all that wait. Of those that wait, the first ones of each namespace stand before
    the second ones; hosts that come up count as its first. Of equal ones the name of the namespace decides.
    """
    own, before = read(machine), 0
    up: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for facts in map(read, others):
        late = facts.host_since is not None and facts.host_since <= given_up
        if facts.uid == own.uid or late or not _queues_ahead(facts, reason):
            continue
        namespace = facts.key.namespace
        if facts.has_host:
            up[namespace] += 1
        elif namespace != own.key.namespace:
            waiting[namespace] += 1
        else:
            before += _rank(facts) < _rank(own)
    turn = up[own.key.namespace] + before
    foreign = sum(
        min(max(turn - up[namespace] + (namespace < own.key.namespace), 0), count)
        for namespace, count in waiting.items()
    )
    return _Line(up.total() + before + foreign, turn)


def _rank(facts: MachineFacts) -> tuple[bool, datetime, Key]:
    return (not facts.has_host, facts.created, facts.key)


def _queues_ahead(facts: MachineFacts, reason: str = Reason.CLASS_HOSTS_IN_FLIGHT) -> bool:
    """Not one that has arrived, goes, failed, is paused, or waits for something else than the line of ``reason``."""
    if facts.node_name or facts.deleting or facts.failed or paused_by((facts.body,)):
        return False
    seen = facts.has_host and is_seen(facts.body)  # a providerID alone was maybe written by a person
    return seen or facts.reason == reason or facts.reason in _IN_LINE


def _joined_since(view: View, title: str, since: datetime, enough: int) -> int:
    """How many hosts came up since then and have joined; no further than ``enough``. The last ones joined are first."""
    found = 0
    for machine in reversed(view.indexed(MACHINE, JOINED, title)):
        moment = read(machine).host_since
        found += moment is not None and moment >= since
        if found >= enough:
            break
    return found


def _first(machines: Iterable[Obj], reason: str) -> Iterator[Key]:
    waiting = (read(machine) for machine in machines if not is_deleting(machine))
    reported = (facts for facts in waiting if not facts.has_host and facts.reason == reason)
    first = min(reported, key=_rank, default=None)
    if first is not None:
        yield first.key


def _says_a_limit(obj: Obj | None) -> bool:
    spec = spec_of(obj or {}) or obj or {}
    return any(spec.get(name) is not None for name in ("maxHostsInFlight", "bootstrapTokenLifetime"))


def _class_of(machine: Obj) -> Key | None:
    return class_key(spec_of(machine), key_of(machine).namespace)


def _lifetime(spec: Mapping[str, Any], limits: Limits) -> timedelta | None:
    """An unreadable one is the flag's: the schema refuses it."""
    try:
        return parse_duration(spec["bootstrapTokenLifetime"]) or limits.token_lifetime
    except (KeyError, TypeError, ValueError):
        return limits.token_lifetime
