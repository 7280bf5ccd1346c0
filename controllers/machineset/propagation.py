"""Changes of the template that flow to existing Machines without a rollout.

A three-way merge: a record on the Machine names what came from the template, so that what is dropped there is taken
back here, and what people put on a single Machine stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from api import names
from api.behaviour import Fields
from api.declared import MACHINE_SPEC
from controllers.kernel.actions import Patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import spec_of

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
