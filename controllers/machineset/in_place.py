"""Hand a changed template to existing Machines, a few at a time; their provider changes the hosts.

A Machine that was handed the template counts as down until its host is known to be as the spec asks, though its Node
may stay Ready all the while. Those that are down already go first: they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from api.conditions import Reason, SetCondition
from api.names import InPlace
from api.views import InPlaceUpdateView
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import Condition
from controllers.kernel.in_place import Revision
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import annotations_of, spec_of
from controllers.kernel.template import FAILURE_DOMAIN, IN_PLACE_FIELDS, NEVER_FROM_TEMPLATE, difference
from controllers.kernel.victims import in_order
from controllers.kernel.wording import counted
from controllers.machineset.observe import Observed

_NOT_OURS = IN_PLACE_FIELDS | NEVER_FROM_TEMPLATE


@dataclass(frozen=True, slots=True)
class Progress:
    """Machines without the template, those with it whose host is not so yet, and those whose provider can't do it."""

    outdated: tuple[MachineFacts, ...] = ()
    on_their_way: tuple[MachineFacts, ...] = ()
    refused: tuple[MachineFacts, ...] = ()


def progress(observed: Observed) -> Progress:
    if observed.desired.in_place is None:
        return Progress()
    revision = Revision(observed.desired.template, observed.class_digest)
    active = observed.members.active
    on_their_way = tuple(machine for machine in active if revision.is_on_its_way(machine))
    return Progress(
        tuple(machine for machine in active if not revision.is_of(machine)),
        on_their_way,
        tuple(machine for machine in on_their_way if machine.refusal),
    )


def updates(observed: Observed) -> list[Patch]:
    """One guarded patch for each Machine that gets the template now."""
    desired = observed.desired.in_place
    if desired is None:
        return []
    revision = Revision(observed.desired.template, observed.class_digest)
    return [_update(observed, machine, revision) for machine in _chosen(observed, desired)]


def _chosen(observed: Observed, desired: InPlaceUpdateView) -> list[MachineFacts]:
    found = progress(observed)
    if desired.max_updating == 0 or (desired.policy == InPlace.REQUIRE and found.refused):
        return []
    moving = {machine.uid for machine in found.on_their_way}
    up = {m.uid for m in observed.members.active if m.uid not in moving and _is_up(observed, m)}
    free = len(found.outdated) - desired.partition
    spare = len(up) - desired.min_available
    if desired.max_updating is not None:
        spare = min(spare, desired.max_updating - _down(observed, up))
    chosen: list[MachineFacts] = []
    costly = up.union(machine.uid for machine in found.outdated if machine.up_to_date is None and machine.ready)
    for machine in sorted(in_order(found.outdated, observed.desired.policy), key=lambda m: m.uid in costly):
        costs = 1 if machine.uid in costly else 0
        if len(chosen) >= free or costs > spare:
            break
        spare -= costs
        chosen.append(machine)
    return chosen


def _is_up(observed: Observed, machine: MachineFacts) -> bool:
    """Of which nothing is known (its provider was not heard yet) is not counted on, nor taken for free."""
    return machine.up_to_date is True and machine.is_available(observed.desired.min_ready, observed.now)


def _down(observed: Observed, up: set[str]) -> int:
    """Machines with a Node that are not available or going. One that never had a Node disturbs nobody."""
    members = observed.members
    known = (*members.active, *members.leaving, *members.deleting)
    return sum(1 for machine in known if machine.node_name and machine.uid not in up)


def _update(observed: Observed, machine: MachineFacts, revision: Revision) -> Patch:
    desired = observed.desired
    template, have = spec_of(desired.template), spec_of(machine.body)
    theirs = _of_revision(template)
    spec = difference({k: v for k, v in _of_revision(have).items() if k != FAILURE_DOMAIN or k in theirs}, theirs)
    required = desired.in_place is not None and desired.in_place.policy == InPlace.REQUIRE
    given = annotations_of(machine.body)
    notes: dict[str, Any] = {names.TEMPLATE_ANNOTATION: revision.digest}
    if required:
        notes[names.IN_PLACE_ANNOTATION] = str(InPlace.REQUIRE)
    elif names.IN_PLACE_ANNOTATION in given:
        notes[names.IN_PLACE_ANNOTATION] = None
    if given.get(names.MACHINE_CLASS_ANNOTATION, "") != revision.class_digest:
        notes[names.MACHINE_CLASS_ANNOTATION] = revision.class_digest or None
    patch: dict[str, Any] = {"metadata": {"annotations": notes}}
    if spec:
        patch["spec"] = spec
    why = f"Machine {machine.key.name} gets the template of MachineSet {observed.ref.key.name} and stays"
    return Patch(machine.ref, patch, why, resource_version=machine.resource_version)


def permissions(observed: Observed) -> list[Patch]:
    """Machines that were to be changed in place only may be replaced when the policy was loosened since."""
    desired = observed.desired.in_place
    if desired is None or desired.policy == InPlace.REQUIRE:
        return []
    title = observed.ref.key.name
    return [
        Patch(
            machine.ref,
            {"metadata": {"annotations": {names.IN_PLACE_ANNOTATION: None}}},
            f"MachineSet {title} does not require updates in place any more",
        )
        for machine in progress(observed).refused
        if names.IN_PLACE_ANNOTATION in annotations_of(machine.body)
    ]


def up_to_date_condition(observed: Observed) -> list[Condition]:
    """How far it is; only where Machines are updated in place."""
    if observed.desired.in_place is None:
        return []
    found, type_ = progress(observed), SetCondition.MACHINES_UP_TO_DATE
    if found.refused:
        reported = min(machine.refusal for machine in found.refused)
        message = f"{counted(len(found.refused), 'Machine')} can't be updated in place: {reported}"
        return [Condition(type_, "False", Reason.NEEDS_REPLACEMENT, message)]
    parts = [
        text
        for count, text in (
            (len(found.on_their_way), f"{counted(len(found.on_their_way), 'Machine')} being updated in place"),
            (len(found.outdated), f"{counted(len(found.outdated), 'Machine')} of an earlier template"),
        )
        if count
    ]
    if not parts:
        return [Condition(type_, "True", Reason.UP_TO_DATE)]
    return [Condition(type_, "False", Reason.NOT_UP_TO_DATE, ", ".join(parts))]


def _of_revision(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _NOT_OURS}
