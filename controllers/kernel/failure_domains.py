"""Failure domains: over which ones a set spreads its Machines, where the next one goes, and how uneven it may get.

A set that names its domains (or whose Cluster does) gives each Machine the one that holds the fewest. Nothing that
exists is ever moved for balance: it is restored by where Machines are made and by which go first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from api.conditions import Reason
from api.machinerules import failure_domains_fault
from controllers.kernel.conditions import Condition, format_time, parse_time
from controllers.kernel.refs import Obj, mapping, spec_of

FIELD = "failureDomains"


@dataclass(frozen=True, slots=True)
class Resting:
    """A failure domain that was exhausted (``reason``: the class of error) and is not used until ``until``."""

    domain: str
    reason: str
    until: datetime

    def to_status(self) -> dict[str, str]:
        return {"name": self.domain, "reason": self.reason, "until": format_time(self.until)}

    def __str__(self) -> str:
        return f"failure domain {self.domain} has no host ({self.reason}) and rests until {format_time(self.until)}"


def read_resting(body: Obj) -> tuple[Resting, ...]:
    """What ``status.restingFailureDomains`` remembers; unreadable entries say nothing."""
    listed = mapping(body.get("status")).get("restingFailureDomains")
    found = []
    for entry in listed if isinstance(listed, list) else ():
        until = mapping(entry).get("until")
        moment = parse_time(until) if isinstance(until, str) else None
        if moment is not None:
            found.append(Resting(str(entry.get("name")), str(entry.get("reason")), moment))
    return tuple(found)


def domains_of(body: Obj, cluster: Obj | None) -> tuple[str, ...]:
    """The domains of a set in the order in which they are named; () if it does not spread its Machines.

    A template that names one domain means that one. An empty list of the set's own is a choice as well: no spreading.
    """
    spec = spec_of(body)
    template = spec_of(mapping(spec.get("template")))
    if template.get("failureDomain"):
        return ()
    named = spec.get(FIELD)
    if named is None and cluster is not None:
        named = spec_of(cluster).get(FIELD)
    if not isinstance(named, list) or failure_domains_fault(named):
        return ()
    return tuple(named)


def rotation_of(domains: Sequence[str], uid: str) -> tuple[str, ...]:
    """The domains in the order in which ``uid`` takes them: many small sets don't all begin with the same one."""
    if not domains:
        return ()
    first = int.from_bytes(sha256(uid.encode()).digest()[:4]) % len(domains)
    return (*domains[first:], *domains[:first])


def choose(domains: Sequence[str], loads: Mapping[str, int], number: int) -> list[str]:
    """Where ``number`` more Machines go: each where the fewest are by then, among equals to the first named."""
    counts = Counter({domain: loads.get(domain, 0) for domain in domains})
    chosen = []
    for _ in range(number if domains else 0):
        emptiest = min(domains, key=counts.__getitem__)
        counts[emptiest] += 1
        chosen.append(emptiest)
    return chosen


def is_even(domains: Iterable[str], loads: Mapping[str, int]) -> bool:
    """No two domains differ by more than one Machine, and none is anywhere else."""
    counts = [loads.get(domain, 0) for domain in domains]
    elsewhere = sum(loads.values()) - sum(counts)
    return not elsewhere and (not counts or max(counts) - min(counts) <= 1)


def balanced(type_: str, domains: Iterable[str], loads: Mapping[str, int], exhausted: Sequence[str]) -> Condition:
    """The condition that says how evenly Machines are spread. ``exhausted``: which domains have no host, and why."""
    listed = tuple(domains)
    even, words = is_even(listed, loads), list(exhausted)
    if not even:
        shown = sorted(name for name in {*listed, *loads} if name in listed or loads[name])
        words.insert(0, ", ".join(f"{name or 'none'}: {loads.get(name, 0)}" for name in shown))
    reason = Reason.BALANCED if even else Reason.UNBALANCED
    if exhausted:
        reason = Reason.FAILURE_DOMAIN_EXHAUSTED
    return Condition(type_, "True" if even else "False", reason, "; ".join(words))
