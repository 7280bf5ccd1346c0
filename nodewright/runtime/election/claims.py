"""What a process serves while it holds its Lease, and which processes must not work at the same time. Pure.

A Lease is named after the set of controllers that a process runs, so two processes with the same options share one. Two
processes with different options hold different Leases; what each of them serves stands in an annotation of its Lease
(``LEASE_HOLDER_ANNOTATION``), and a process works only while no live Lease overlaps with its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from api import names
from api.selectors import Operator, Requirement, Selector, SelectorError, parse
from controllers.kernel.refs import Obj


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """One controller, and the objects that it serves.

    ``cluster``: ``namespace/name`` of the one Cluster whose API it works on, "" for that of the objects themselves.
    ``namespace`` "": all of them. ``machines``: the text of a label selector, "" for all Machines.
    """

    controller: str
    cluster: str = ""
    namespace: str = ""
    machines: str = ""

    def overlaps(self, other: Claim) -> bool:
        """Whether one object may be served by both."""
        if self.controller != other.controller or self.cluster != other.cluster:
            return False
        if self.namespace and other.namespace and self.namespace != other.namespace:
            return False
        return not disjoint(self.machines, other.machines)

    def __str__(self) -> str:
        parts = (
            f"of Cluster {self.cluster}" if self.cluster else "",
            f"in namespace {self.namespace}" if self.namespace else "",
            f"with labels {self.machines}" if self.machines else "",
        )
        return " ".join([self.controller, *filter(None, parts)])


@dataclass(frozen=True, slots=True)
class Holder:
    """What the holder of a Lease says of itself. ``process``: see ``process_identity``; {} if it is not known."""

    identity: str
    command: str = ""
    host: str = ""
    process: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()

    def annotation(self) -> str:
        return json.dumps(
            {
                "identity": self.identity,
                "command": self.command,
                "host": self.host,
                "process": dict(self.process),
                "serves": [{k: v for k, v in asdict(claim).items() if v} for claim in sorted(self.claims)],
            },
            separators=(",", ":"),
        )

    def __str__(self) -> str:
        """``nodewright up (process 71 on host a)``, as far as it is known."""
        pid = self.process.get("pid")
        where = " on ".join(filter(None, (f"process {pid}" if pid else "", f"host {self.host}" if self.host else "")))
        return " ".join(filter(None, (self.command, f"({where})" if where else ""))) or self.identity or "nobody"


def holder_of(lease: Obj) -> Holder:
    """The holder of ``lease``: identity "" if it has none. Text that the holder did not write itself is not believed.

    Total over any JSON: an annotation that can't be read leaves the identity alone.
    """
    identity, parsed = _identity(lease), _annotated(lease)
    if not identity or parsed.get("identity") != identity:
        return Holder(identity)
    return _holder(identity, parsed)


def last_holder_of(lease: Obj) -> Holder:
    """The holder of ``lease``, or the one that has released it last: a process that ends in order leaves its name."""
    parsed = _annotated(lease)
    return holder_of(lease) if _identity(lease) else _holder(str(parsed.get("identity") or ""), parsed)


def _identity(lease: Obj) -> str:
    spec = lease.get("spec")
    return str(spec.get("holderIdentity") or "") if isinstance(spec, Mapping) else ""


def _annotated(lease: Obj) -> Mapping[str, Any]:
    meta = lease.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, Mapping) else None
    return _read(annotations.get(names.LEASE_HOLDER_ANNOTATION) if isinstance(annotations, Mapping) else None)


def _holder(identity: str, parsed: Mapping[str, Any]) -> Holder:
    process, serves = parsed.get("process"), parsed.get("serves")
    return Holder(
        identity,
        str(parsed.get("command") or ""),
        str(parsed.get("host") or ""),
        process if isinstance(process, Mapping) else {},
        tuple(_claim(each) for each in serves if isinstance(each, Mapping)) if isinstance(serves, list) else (),
    )


def overlap(ours: Iterable[Claim], theirs: Iterable[Claim]) -> tuple[Claim, ...]:
    """What of ``theirs`` we must not serve at the same time."""
    mine = tuple(ours)
    return tuple(claim for claim in theirs if any(claim.overlaps(each) for each in mine))


def disjoint(first: str, second: str) -> bool:
    """Whether no labels at all satisfy both selectors. A selector that can't be read may select anything."""
    try:
        one, other = parse(first), parse(second)
    except SelectorError:
        return False
    return any(_contradict(_of(one, key), _of(other, key)) for key in _keys(one) & _keys(other))


def _keys(selector: Selector) -> set[str]:
    return {requirement.key for requirement in selector.requirements}


def _of(selector: Selector, key: str) -> list[Requirement]:
    return [requirement for requirement in selector.requirements if requirement.key == key]


def _contradict(first: list[Requirement], second: list[Requirement]) -> bool:
    """Whether no value of one label, its absence included, satisfies all. Comparisons of numbers count as satisfiable
    unless the values are listed."""
    both = [*first, *second]
    key = both[0].key
    listed = [set(each.values) for each in both if each.operator is Operator.IN]
    if listed:
        values = set.intersection(*listed)
        return not any(all(each.matches({key: value}) for each in both) for value in values)
    may_be_absent = all(each.matches({}) for each in both)
    may_be_there = not any(each.operator is Operator.DOES_NOT_EXIST for each in both)
    return not may_be_absent and not may_be_there


def _claim(parsed: Mapping[str, Any]) -> Claim:
    return Claim(*(str(parsed.get(name) or "") for name in ("controller", "cluster", "namespace", "machines")))


def _read(text: object) -> Mapping[str, Any]:
    try:
        decoded = json.loads(text) if isinstance(text, str) and len(text) <= _MOST_TEXT else {}
    except (ValueError, RecursionError):
        return {}
    return decoded if isinstance(decoded, Mapping) else {}


_MOST_TEXT = 65536
