"""What has to outlive the process, as one text in a ConfigMap.

That Nodes are on their way is not in it: ``spec.replicas`` against the Nodes that joined says so, and nobody can forget
it. (The Cluster Autoscaler keeps its requests in memory, and may ask twice after a restart.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from controllers.autoscaler.backoff import Backoff
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.memory import digest
from controllers.scheduling.shapes import PodInfo

T = TypeVar("T")
_KEY_CHARACTERS = 12
MOST_PLANNED = 20_000
"""So many kinds of Nodes, and kinds of pods on each, are remembered, of up to 30 bytes each. Others are not."""


@dataclass(frozen=True, slots=True)
class Addition:
    at: datetime
    nodes: int


@dataclass(frozen=True, slots=True)
class GangRecord:
    """``groups`` grew for the gang of this ``uid`` by so many Nodes since ``since``; ``rest``: of the last failure."""

    uid: str
    groups: Mapping[str, int] = field(default_factory=dict)
    since: datetime | None = None
    rest: Backoff | None = None


@dataclass(frozen=True, slots=True)
class ConsolidationRecord:
    """One Node more of ``group`` is to take the place of ``machines`` (uid → namespace and name), which has been seen
    as a gain since ``since``. ``begun``: when the group grew for it; None: not yet.
    """

    group: str
    machines: Mapping[str, str]
    since: datetime
    begun: datetime | None = None

    @property
    def id(self) -> str:
        """What the group says while it has a Node more for it."""
        return digest([self.group, sorted(self.machines)], 16)


@dataclass(frozen=True, slots=True)
class PlannedNodes:
    """``count`` new Nodes of ``group``, each for ``pods``: their key (``pod_keys``) → how many.

        three Nodes for 2 pods of one ReplicaSet and 1 of another each, one Node for 5 pods of a Job:
        PlannedNodes(group, 3, {first: 2, second: 1}), PlannedNodes(group, 1, {job: 5})

    Nodes are chosen so that the pods just fit. Packed anew in another order, some of them seem to have no room, and
    Nodes would be added that nobody needs. It is a hint alone: pods are still asked whether they fit, and
    kube-scheduler puts them where it likes. (The Cluster Autoscaler has hints for Nodes that are there.)
    """

    group: str
    count: int
    pods: Mapping[str, int]


def pod_keys() -> Callable[[PodInfo], str]:
    """One key for pods of one owner with equal requests; a pod without owner has one of its own.

    Short whatever the owner's uid is, since users write owner references. With the namespace, so that nobody claims
    another one's pods.
    """
    known: dict[tuple[Any, ...], str] = {}

    def key_of(pod: PodInfo) -> str:
        uid = pod.owner.uid if pod.owner is not None else ""
        content = (pod.namespace, uid, "" if uid else pod.name, pod.kind.demand.requests)
        found = known.get(content)
        if found is None:
            found = known[content] = digest(list(content), _KEY_CHARACTERS)
        return found

    return key_of


@dataclass(frozen=True, slots=True)
class Memory:
    """``unneeded``: Node → since when nobody needs it. ``grown``: what was added, for the rate and the delays.
    ``planned``: what Nodes on their way are for, the oldest first.
    """

    unneeded: Mapping[str, datetime] = field(default_factory=dict)
    backoffs: Mapping[str, Backoff] = field(default_factory=dict)
    grown: tuple[Addition, ...] = ()
    shrunk_at: datetime | None = None
    gangs: Mapping[str, GangRecord] = field(default_factory=dict)
    consolidation: ConsolidationRecord | None = None
    consolidation_rest: Backoff | None = None
    planned: tuple[PlannedNodes, ...] = ()

    @property
    def grown_at(self) -> datetime | None:
        return max((each.at for each in self.grown), default=None)

    @property
    def failed_at(self) -> datetime | None:
        return max((backoff.failed_at for backoff in self.backoffs.values()), default=None)

    def grown_since(self, moment: datetime) -> int:
        return sum(each.nodes for each in self.grown if each.at > moment)


def remembered(
    before: Iterable[PlannedNodes], upcoming: Mapping[str, int], new: Iterable[PlannedNodes]
) -> tuple[PlannedNodes, ...]:
    """Those of groups with ``upcoming`` Nodes, and the new ones, as far as they are not too many. What has joined is
    forgotten with the next growth or with the last Node, so that not each Node that joins is a write.
    """
    old, new = [each for each in before if upcoming.get(each.group)], tuple(new)
    if new:
        groups = by_group(old)
        old = [each for name in groups for each in on_their_way(groups[name], name, upcoming[name]) if each.pods]
    kept, entries = [], 0
    for each in (*old, *new):
        entries += 1 + len(each.pods)
        if entries > MOST_PLANNED:
            break
        kept.append(each)
    return tuple(kept)


def by_group(planned: Iterable[PlannedNodes]) -> dict[str, list[PlannedNodes]]:
    found: dict[str, list[PlannedNodes]] = {}
    for each in planned:
        found.setdefault(each.group, []).append(each)
    return found


def on_their_way(planned: Sequence[PlannedNodes], group: str, number: int) -> list[PlannedNodes]:
    """The ``number`` Nodes of ``group`` that are on their way, of all that were ``planned`` for it: the last ones,
    since the first have joined or nobody waits for them; then Nodes that are for no pods, as many as are missing.
    """
    found: list[PlannedNodes] = []
    for each in reversed(planned):
        if number <= 0:
            break
        found.append(replace(each, count=min(each.count, number)))
        number -= each.count
    return [*found[::-1], *([PlannedNodes(group, number, {})] if number > 0 else [])]


def write(memory: Memory) -> str:
    """Same memory, same text."""
    return json.dumps(
        {
            "unneeded": {name: format_time(since) for name, since in memory.unneeded.items()},
            "backoffs": {group: _rest(rest) for group, rest in memory.backoffs.items()},
            "grown": [{"at": format_time(each.at), "nodes": each.nodes} for each in memory.grown],
            "shrunkAt": format_time(memory.shrunk_at) if memory.shrunk_at else None,
            **({"gangs": {name: _gang(record) for name, record in memory.gangs.items()}} if memory.gangs else {}),
            **({"consolidation": _consolidation(memory.consolidation)} if memory.consolidation else {}),
            **({"consolidationRest": _rest(memory.consolidation_rest)} if memory.consolidation_rest else {}),
            **({"planned": _planned(memory.planned)} if memory.planned else {}),
        },
        sort_keys=True,
    )


def read(text: str) -> Memory:
    """What can't be read is forgotten, entry by entry: then Nodes stay longer, and groups are tried earlier."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        return Memory()
    return Memory(
        unneeded=dict(_kept(_items(found.get("unneeded")), lambda each: (each[0], _time(each[1])))),
        backoffs=dict(_kept(_items(found.get("backoffs")), lambda each: (each[0], _backoff(each[1])))),
        grown=tuple(_kept(_list(found.get("grown")), lambda each: Addition(_time(each["at"]), int(each["nodes"])))),
        shrunk_at=next(_kept([found.get("shrunkAt")], _time), None),
        gangs=dict(_kept(_items(found.get("gangs")), lambda each: (each[0], _gang_record(each[1])))),
        consolidation=next(_kept([found.get("consolidation")], _consolidation_record), None),
        consolidation_rest=next(_kept([found.get("consolidationRest")], _backoff), None),
        planned=next(_kept([found.get("planned")], _planned_nodes), ()),
    )


def _rest(rest: Backoff) -> dict[str, Any]:
    return {
        "until": format_time(rest.until),
        "failedAt": format_time(rest.failed_at),
        "pauseSeconds": int(rest.pause.total_seconds()),
        "why": rest.why,
    }


def _gang(record: GangRecord) -> dict[str, Any]:
    return {
        "uid": record.uid,
        "groups": dict(record.groups),
        "since": format_time(record.since) if record.since else None,
        "rest": _rest(record.rest) if record.rest else None,
    }


def _gang_record(found: Any) -> GangRecord:
    groups = {str(name): int(count) for name, count in _items(found["groups"])}
    since = _time(found["since"]) if found.get("since") else None
    rest = _backoff(found["rest"]) if found.get("rest") else None
    return GangRecord(str(found["uid"]), groups, since, rest)


def _consolidation(record: ConsolidationRecord) -> dict[str, Any]:
    return {
        "group": record.group,
        "machines": dict(record.machines),
        "since": format_time(record.since),
        "begun": format_time(record.begun) if record.begun else None,
    }


def _consolidation_record(found: Any) -> ConsolidationRecord:
    machines = {str(uid): str(key) for uid, key in _items(found["machines"])}
    begun = _time(found["begun"]) if found.get("begun") else None
    return ConsolidationRecord(str(found["group"]), machines, _time(found["since"]), begun)


def _planned(planned: Sequence[PlannedNodes]) -> dict[str, Any]:
    """Groups and keys of pods by their places in lists, since each is in many Nodes."""
    groups = {name: place for place, name in enumerate(dict.fromkeys(each.group for each in planned))}
    keys = {name: place for place, name in enumerate(dict.fromkeys(name for each in planned for name in each.pods))}
    return {
        "groups": list(groups),
        "keys": list(keys),
        "nodes": [
            [groups[each.group], each.count, [[keys[name], count] for name, count in each.pods.items()]]
            for each in planned
        ],
    }


def _planned_nodes(found: Any) -> tuple[PlannedNodes, ...]:
    groups, keys = [str(name) for name in found["groups"]], [str(name) for name in found["keys"]]
    nodes = []
    for group, count, pods in found["nodes"]:
        nodes.append(PlannedNodes(groups[group], _some(count), {keys[name]: _some(many) for name, many in pods}))
    return tuple(nodes)


def _some(found: Any) -> int:
    if int(found) < 1:
        raise ValueError(found)
    return int(found)


def _kept(found: Iterable[Any], parse: Callable[[Any], T]) -> Iterator[T]:
    for each in found:
        try:
            yield parse(each)
        except (ValueError, TypeError, LookupError, OverflowError, AttributeError):
            continue


def _items(found: object) -> list[tuple[Any, Any]]:
    return list(found.items()) if isinstance(found, Mapping) else []


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _time(text: Any) -> datetime:
    moment = parse_time(text)
    if moment is None:
        raise ValueError(text)
    return moment


def _backoff(found: Any) -> Backoff:
    pause = timedelta(seconds=int(found["pauseSeconds"]))
    return Backoff(until=_time(found["until"]), failed_at=_time(found["failedAt"]), pause=pause, why=str(found["why"]))
