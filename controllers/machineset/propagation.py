"""What of a changed template reaches Machines that exist: in place by their provider, or without a rollout.

Hand a changed template to existing Machines, a few at a time; their provider changes the hosts.

A Machine that was handed the template counts as down until its host is known to be as the spec asks, though its Node
may stay Ready all the while. Those that are down already go first: they cost nothing.

Changes of the template that flow to existing Machines without a rollout.

A three-way merge: a record on the Machine names what came from the template, so that what is dropped there is taken
back here, and what people put on a single Machine stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from api.behaviour import Fields
from api.conditions import Reason, SetCondition
from api.declared import MACHINE_SPEC
from api.names import InPlace
from api.views import InPlaceUpdateView
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import Condition, counted
from controllers.kernel.deletions import in_order
from controllers.kernel.in_place import Revision
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import annotations_of, spec_of
from controllers.kernel.template import FAILURE_DOMAIN, IN_PLACE_FIELDS, NEVER_FROM_TEMPLATE, difference
from controllers.machineset.observe import Observed

_NOT_OURS = IN_PLACE_FIELDS | NEVER_FROM_TEMPLATE


@dataclass(frozen=True, slots=True)
class Progress:
    """Machines without the template, those with it whose host is not so yet, and those whose provider can't do it."""

    outdated: tuple[MachineFacts, ...] = ()
    on_their_way: tuple[MachineFacts, ...] = ()
    refused: tuple[MachineFacts, ...] = ()


def in_place_progress(observed: Observed) -> Progress:
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


def in_place_updates(observed: Observed) -> list[Patch]:
    """One guarded patch for each Machine that gets the template now."""
    desired = observed.desired.in_place
    if desired is None:
        return []
    revision = Revision(observed.desired.template, observed.class_digest)
    return [_update(observed, machine, revision) for machine in _chosen(observed, desired)]


def _chosen(observed: Observed, desired: InPlaceUpdateView) -> list[MachineFacts]:
    found = in_place_progress(observed)
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


def in_place_permissions(observed: Observed) -> list[Patch]:
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
        for machine in in_place_progress(observed).refused
        if names.IN_PLACE_ANNOTATION in annotations_of(machine.body)
    ]


def up_to_date_condition(observed: Observed) -> list[Condition]:
    """How far it is; only where Machines are updated in place."""
    if observed.desired.in_place is None:
        return []
    found, type_ = in_place_progress(observed), SetCondition.MACHINES_UP_TO_DATE
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


Template = Mapping[str, Any]
Given = Mapping[str, Mapping[str, Any]]


def given(template: Template, fields: Fields = MACHINE_SPEC) -> dict[str, dict[str, Any]]:
    """What a template gives to its Machines, by part: the parts are the keys of the record."""
    meta, spec = template.get("metadata") or {}, spec_of(template)
    node = spec.get("metadata") or {}
    parts = {
        "labels": dict(meta.get("labels") or {}),
        "annotations": dict(meta.get("annotations") or {}),
        "nodeLabels": dict(node.get("labels") or {}),
        "nodeAnnotations": dict(node.get("annotations") or {}),
        "taints": {_taint_name(taint): dict(taint) for taint in spec.get("taints") or ()},
        "fields": {name: spec[name] for name in fields.scalars if spec.get(name) is not None},
    }
    return {part: values for part, values in parts.items() if values}


def record_text(template: Template) -> str:
    """The record to keep on each Machine made from ``template``."""
    return _record(given(template))


def propagate(template: Template, machines: Iterable[MachineFacts], set_name: str) -> list[Patch]:
    """One patch for each Machine that differs from ``template`` in what flows in place."""
    want = given(template)
    text = _record(want)
    patches = []
    for machine in machines:
        if _is_current(machine, want, text):
            continue
        patch = _patch(machine, want, text)
        if patch:
            patches.append(
                Patch(
                    machine.ref,
                    patch,
                    why=f"template of MachineSet {set_name} changed in what needs no rollout",
                    resource_version=machine.resource_version if "taints" in patch.get("spec", {}) else "",
                )
            )
    return patches


def _is_current(machine: MachineFacts, want: Given, text: str) -> bool:
    """The usual case, decided cheaply: a set of a thousand asks it a thousand times each reconcile."""
    annotations = machine.body["metadata"].get("annotations") or {}
    if annotations.get(names.PROPAGATED_ANNOTATION) != text or "taints" in want:
        return False
    spec = spec_of(machine.body)
    node = spec.get("metadata") or {}
    have = {
        "labels": machine.labels,
        "annotations": annotations,
        "nodeLabels": node.get("labels") or {},
        "nodeAnnotations": node.get("annotations") or {},
        "fields": spec,
    }
    # An items view can't be compared with <= when a value is a list, and a plain loop is as fast for so few keys.
    return all(have[part].get(key) == value for part, values in want.items() for key, value in values.items())


def _patch(machine: MachineFacts, want: Given, text: str) -> dict[str, Any]:
    meta = machine.body["metadata"]
    spec = spec_of(machine.body)
    annotations = meta.get("annotations") or {}
    record = annotations.get(names.PROPAGATED_ANNOTATION, "")
    before = {} if record == text else _read_record(record)
    node = spec.get("metadata") or {}
    labels = _merged(machine.labels, want, before, "labels")
    notes = _merged(annotations, want, before, "annotations")
    if record != text:
        notes[names.PROPAGATED_ANNOTATION] = text
    node_labels = _merged(node.get("labels") or {}, want, before, "nodeLabels")
    node_notes = _merged(node.get("annotations") or {}, want, before, "nodeAnnotations")
    fields: dict[str, Any] = _merged(spec, want, before, "fields")
    taints = _merged_taints(spec.get("taints") or (), want, before)
    if taints is not None:
        fields["taints"] = taints
    if node_part := _present(labels=node_labels, annotations=node_notes):
        fields["metadata"] = node_part
    return _present(metadata=_present(labels=labels, annotations=notes), spec=fields)


def _merged(have: Mapping[str, Any], want: Given, before: Mapping[str, list[str]], part: str) -> dict[str, Any]:
    """The merge patch of one map: set what differs, remove what was given before and is not any more."""
    wanted: Mapping[str, Any] = want.get(part) or {}
    patch = {key: value for key, value in wanted.items() if have.get(key) != value}
    for key in before.get(part, ()):
        if key not in wanted and key in have:
            patch[key] = None
    return patch


def _merged_taints(
    have: Iterable[Mapping[str, Any]], want: Given, before: Mapping[str, list[str]]
) -> list[Mapping[str, Any]] | None:
    """The whole list to write (a merge patch replaces lists), None if it is right already."""
    wanted = want.get("taints") or {}
    dropped = set(before.get("taints", ())) - set(wanted)
    current = [taint for taint in have if isinstance(taint, Mapping)]
    kept = [taint for taint in current if _taint_name(taint) not in wanted and _taint_name(taint) not in dropped]
    present = {_taint_name(taint): taint for taint in current}
    if len(kept) + len(wanted) == len(current) and all(present.get(name) == taint for name, taint in wanted.items()):
        return None
    return [*kept, *wanted.values()]


def _taint_name(taint: Mapping[str, Any]) -> str:
    return f"{taint.get('key')}:{taint.get('effect')}"


def _record(parts: Given) -> str:
    return json.dumps({part: sorted(values) for part, values in parts.items()}, sort_keys=True, separators=(",", ":"))


def _read_record(text: str) -> dict[str, list[str]]:
    """An unreadable record says nothing: then nothing is removed."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        part: [key for key in keys if isinstance(key, str)] for part, keys in found.items() if isinstance(keys, list)
    }


def _present(**parts: Any) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part}
