"""A view of the cluster → counts, who decides, and only what is wrong, each with since when, cause and next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from api.conditions import SetCondition
from controllers.kernel.conditions import counted
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    Kind,
    Obj,
    key_of,
    uid_of,
)
from controllers.kernel.view import View
from nodewright.reports.fleet.cells import state_of
from nodewright.reports.fleet.found import found_by
from nodewright.reports.fleet.held import held
from nodewright.reports.fleet.problem import Problem
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.branch import Branch, Mood, wrong
from nodewright.reports.tree.builder import DisplayOptions, grow, grow_loose, has_owner
from nodewright.reports.tree.health import conditions_of, lines_of, mood_of
from nodewright.reports.tree.serving import Ended, Serving, served_by

TOPS = (CLUSTER, CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_HEALTH_CHECK)
SINGULAR = {kind.plural: kind.name.lower() for kind in (*TOPS, MACHINE_CLASS)}
"""``machineclasses`` → ``machineclass``."""
_FOLDED = DisplayOptions()


@dataclass(frozen=True, slots=True)
class Fleet:
    """``counts``: by plural, how many objects there are. ``machines``: by state, how many Machines are in it.

    ``kubelets``: by version of the running kubelet. ``held``: what stands still because it was asked for.
    """

    now: datetime
    counts: Mapping[str, int]
    machines: Mapping[str, int]
    kubelets: Mapping[str, int]
    serving: tuple[Serving, ...]
    problems: tuple[Problem, ...]
    held: tuple[Problem, ...] = ()
    platform: Platform | None = None


@dataclass(frozen=True, slots=True)
class Platform:
    """The API server: its version, and by the name of each CRD of this version which versions of it are served."""

    server: str
    crds: Mapping[str, tuple[str, ...]]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name, served in self.crds.items() if not served)


def summarize(
    view: View,
    objects: Mapping[Kind, Iterable[Obj]],
    serving: tuple[Serving, ...] | None,
    ended: tuple[Ended, ...] = (),
) -> Fleet:
    """``objects``: all of the kinds in TOPS and MachineClasses. ``serving`` None: the Leases could not be read.

    ``ended``: what has run before, which says since when nobody serves an object.
    """
    listed = {kind: sorted(objects.get(kind, ()), key=key_of) for kind in (*TOPS, MACHINE_CLASS)}
    problems = [problem for namespace, tree in _trees(listed, view) for problem in _of_tree(namespace, tree)]
    problems += [problem for obj in listed[MACHINE_CLASS] for problem in _of_class(obj)]
    if serving is not None:
        problems += _unserved(listed, serving, ended)
        problems += [problem for each in serving for problem in found_by(each)]
    return Fleet(
        view.now,
        {kind.plural: len(found) for kind, found in listed.items()},
        dict(Counter(map(state_of, listed[MACHINE])).most_common()),
        dict(Counter(_kubelet(machine) for machine in listed[MACHINE] if _kubelet(machine)).most_common()),
        serving or (),
        tuple(problems),
        held(listed, serving, ended),
    )


def _trees(listed: Mapping[Kind, list[Obj]], view: View) -> Iterator[tuple[str, Branch]]:
    """Of Clusters, and of what belongs to none that is there: each object is in one tree. With its namespace."""
    clusters = {key_of(cluster) for cluster in listed[CLUSTER]}
    there = {uid_of(obj) for kind in TOPS for obj in listed[kind]}
    loose: dict[str, list[Obj]] = {}
    for kind in TOPS:
        for obj in listed[kind]:
            owned = controller_uid(obj) in there and has_owner(obj, view)
            if kind != CLUSTER and (owned or _cluster(kind, obj) in clusters):
                continue
            if kind == MACHINE:
                loose.setdefault(key_of(obj).namespace, []).append(obj)
            else:
                yield key_of(obj).namespace, grow(kind, obj, view, _FOLDED)
    for namespace, machines in loose.items():
        yield namespace, grow_loose(machines, view, _FOLDED)


def _cluster(kind: Kind, obj: Obj) -> Any:
    return None if kind == MACHINE_HEALTH_CHECK else cluster_key_of(kind, obj)


def _of_tree(namespace: str, tree: Branch) -> Iterator[Problem]:
    """The deepest wrong lines of a tree: what they spoil above them is left out unless it is all there is."""
    for owner, line in _deepest(tree, tree):
        yield _problem(namespace, owner, line)


def _deepest(branch: Branch, owner: Branch) -> Iterator[tuple[Branch, Branch]]:
    """Wrong lines without a wrong one below. A condition's line belongs to the object above it."""
    here = branch if "/" in branch.name or branch.name.endswith(" Machines") else owner
    sick = [child for child in branch.children if wrong(child)]
    if any("Machine" in child.name for child in sick):
        sick = [child for child in sick if child.name != SetCondition.SCALING_DOWN]  # the Machines below say it
    below = [found for child in sick for found in _deepest(child, here)]
    if below:
        yield from below
    elif branch.mood is Mood.BAD:
        yield owner, branch


def _problem(namespace: str, owner: Branch, line: Branch) -> Problem:
    below = owner.name if owner is not line else ""
    reason = line.reason or line.state
    return Problem(namespace, below, line.name, reason, line.message, line.since, line.advice or advice_for(reason))


def _of_class(machine_class: Obj) -> Iterator[Problem]:
    if mood_of(machine_class) is not Mood.BAD:
        return
    title = Branch(f"{MACHINE_CLASS.name}/{key_of(machine_class).name}")
    for line in lines_of(conditions_of(machine_class), all_of_them=False):
        if line.mood is Mood.BAD:
            yield replace(_problem(key_of(machine_class).namespace, title, line), object=title.name, below="")


def _unserved(
    listed: Mapping[Kind, list[Obj]], serving: tuple[Serving, ...], ended: tuple[Ended, ...]
) -> list[Problem]:
    """One line for each kind and namespace that nobody serves, not one for each object: the longest time counts."""
    found: dict[tuple[str, str, str, str], list[datetime | None]] = {}
    for kind in TOPS:
        for obj in listed[kind]:
            for line in served_by(kind, obj, serving, ended).children:
                if line.mood is Mood.BAD:
                    at = (key_of(obj).namespace, kind.plural, line.message, line.advice)
                    found.setdefault(at, []).append(line.since)
    return [
        Problem(
            namespace,
            "",
            counted(len(times), SINGULAR[plural], plural),
            "NotServed",
            message,
            min(filter(None, times), default=None),
            advice,
        )
        for (namespace, plural, message, advice), times in found.items()
    ]


def _kubelet(machine: Obj) -> str:
    status = machine.get("status")
    versions = status.get("versions") if isinstance(status, Mapping) else None
    found = versions.get("kubelet") if isinstance(versions, Mapping) else None
    return found if isinstance(found, str) else ""
