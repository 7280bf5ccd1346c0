"""What stands still because somebody or something asked for it: worth a line, no failure.

A fleet that does nothing looks like a broken one: a pause, a partition, a closed budget, a failure domain that rests,
an autoscaler that nobody runs and two processes that want the same objects are shown with since when and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final

from api import names
from api.conditions import Reason
from controllers.kernel.conditions import counted, parse_time
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Kind, Obj, annotations_of, key_of
from nodewright.reports.fleet.found import removed_by
from nodewright.reports.fleet.problem import Problem
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.health import conditions_of
from nodewright.reports.tree.serving import Ended, Serving, created_of
from nodewright.runtime.election.claims import overlap

HELD: Final = frozenset(
    str(reason)
    for reason in (
        Reason.PAUSED,
        Reason.CREATION_DISABLED,
        Reason.PARTITION_REACHED,
        Reason.BUDGET_CLOSED,
        Reason.FAILURE_DOMAIN_EXHAUSTED,
        Reason.BACKED_OFF,
        Reason.HOSTS_IN_FLIGHT,
        Reason.CLASS_HOSTS_IN_FLIGHT,
    )
)
"""Reasons that keep things as they are without anything being wrong, whatever the condition's status."""
_SCALED: Final = (names.AUTOSCALER_MAX_ANNOTATION, names.CAPI_AUTOSCALER_MAX_ANNOTATION)
_AUTOSCALER: Final = "autoscaler"


def held(
    listed: Mapping[Kind, Iterable[Obj]], serving: tuple[Serving, ...] | None, ended: Iterable[Ended] = ()
) -> tuple[Problem, ...]:
    """One line for each namespace, kind and reason. ``serving`` None: the Leases could not be read."""
    found: dict[tuple[str, str, str], list[Problem]] = {}
    for kind, objects in listed.items():
        for obj in objects:
            for problem in _of(kind, obj):
                found.setdefault((problem.namespace, kind.name, problem.reason), []).append(problem)
    lines = [_as_one(kind, group) for (_, kind, _), group in found.items()]
    if serving is not None:
        lines += [*_other_holders(serving), *_without_autoscaler(listed, serving, ended)]
        lines += [line for each in serving for line in removed_by(each)]
    return tuple(lines)


def _of(kind: Kind, obj: Obj) -> Iterator[Problem]:
    """One for each reason: conditions of one object may repeat it."""
    key = key_of(obj)
    reported: set[str] = set()
    for condition in conditions_of(obj):
        reason = str(condition.get("reason", ""))
        if reason in HELD and reason not in reported:
            reported.add(reason)
            since = parse_time(condition.get("lastTransitionTime"))
            message = str(condition.get("message", ""))
            yield Problem(key.namespace, "", f"{kind.name}/{key.name}", reason, message, since, advice_for(reason))


def _as_one(kind: str, group: list[Problem]) -> Problem:
    """The one that has been so for the longest time speaks for all."""
    first = min(group, key=lambda each: (each.since is None, each.since, each.object))
    if len(group) == 1:
        return first
    name = first.object.partition("/")[2]
    message = f"{first.message} ({name}, …)" if first.message else f"{name}, …"
    return _with(first, f"{counted(len(group), kind)}", message)


def _with(problem: Problem, title: str, message: str) -> Problem:
    return Problem(problem.namespace, "", title, problem.reason, message, problem.since, problem.next_step)


def _other_holders(serving: tuple[Serving, ...]) -> Iterator[Problem]:
    for one, other in combinations(serving, 2):
        shared = overlap(one.holder.claims, other.holder.claims)
        if shared and one.holder != other.holder:
            what = ", ".join(sorted({claim.controller for claim in shared}))
            message = f"{one.holder} and {other.holder} ask for the same objects ({what}); only one works at a time"
            step = f"End one, or give them different objects: Leases {one.lease} and {other.lease}."
            begun = [each.since for each in (one, other) if each.since is not None]
            since = max(begun) if len(begun) == len((one, other)) else None
            yield Problem("", "", "Controllers", "TwoControllers", message, since, step)


def _with_bounds(listed: Mapping[Kind, Iterable[Obj]]) -> list[tuple[Kind, Obj]]:
    """Groups that say how far an autoscaler may scale them."""
    return [
        (kind, obj)
        for kind in (MACHINE_DEPLOYMENT, MACHINE_SET)
        for obj in listed.get(kind, ())
        if any(name in annotations_of(obj) for name in _SCALED)
    ]


def _without_autoscaler(
    listed: Mapping[Kind, Iterable[Obj]], serving: tuple[Serving, ...], ended: Iterable[Ended]
) -> Iterator[Problem]:
    """Groups with bounds for an autoscaler, and none of ours runs: since the last one ended, or the first was made."""
    if any(claim.controller == _AUTOSCALER for each in serving for claim in each.holder.claims):
        return
    groups = _with_bounds(listed)
    if groups:
        kind, first = groups[0]
        title = f"{kind.name}/{key_of(first).name}" if len(groups) == 1 else f"{len(groups)} groups"
        message = f"bounds for an autoscaler are set ({key_of(first)}), and no process here runs one"
        step = (
            "Start `nodewright run --controllers='*,autoscaler'`, unless the upstream Cluster Autoscaler scales them."
        )
        made = [moment for _, obj in groups if (moment := created_of(obj)) is not None]
        ran = [each.at for each in ended if any(claim.controller == _AUTOSCALER for claim in each.holder.claims)]
        since = max([min(made), *ran]) if made else None
        yield Problem("", "", title, "AutoscalerNotRunning", message, since, step)
