"""Keep the Node's labels, annotations and taints as the Machine asks, and take back only what the Machine brought.

``status.appliedNodeMetadata`` is the ownership record. It is written before a key is added to the Node and shrinks only
after a key has left it, so that a crash in between can neither orphan a key nor take one of somebody else's.
kubermatic rolls every Node for a label and never removes one (machine-controller#1969).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.refs import NODE, Obj, annotations_of, labels_of, ref_of, resource_version_of, spec_of
from providers.base.contract import NodeRegistration, Taint

Record = Mapping[str, Sequence[str]]


def taint_id(taint: Mapping[str, Any]) -> str:
    return f"{taint.get('key', '')}:{taint.get('effect', '')}"


def record(node: Obj, applied: Any, wanted: NodeRegistration) -> dict[str, list[str]]:
    """What to write down as ours: all that is wanted, and what was ours and still is on the Node."""
    ours = _read(applied)
    on_node = {
        "labels": set(labels_of(node)),
        "annotations": set(annotations_of(node)),
        "taints": {taint_id(taint) for taint in _taints(node)},
    }
    want = {
        "labels": set(wanted.labels),
        "annotations": set(wanted.annotations),
        "taints": {f"{taint.key}:{taint.effect}" for taint in wanted.taints},
    }
    return {name: sorted(want[name] | (set(ours[name]) & on_node[name])) for name in want}


def sync(node: Obj, applied: Any, wanted: NodeRegistration) -> Patch | None:
    """The one write that brings the Node's metadata in line; None if it is."""
    ours = _read(applied)
    metadata: dict[str, Any] = {}
    labels = _changes(labels_of(node), _own_labels(node, ours["labels"], wanted), wanted.labels)
    annotations = _changes(annotations_of(node), ours["annotations"], wanted.annotations)
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    taints = _merged_taints(_taints(node), ours["taints"], wanted.taints)
    if not metadata and taints is None:
        return None
    patch: dict[str, Any] = {"metadata": metadata} if metadata else {}
    changed = [*labels, *annotations]
    if taints is not None:
        patch["spec"] = {"taints": taints}
        changed.append("taints")
    why = f"Node {node['metadata']['name']} gets its Machine's metadata: {', '.join(changed[:5])}"
    # A list is replaced whole: somebody else's taint that came meanwhile must not get lost.
    guard = resource_version_of(node) if taints is not None else ""
    return Patch(ref_of(NODE, node), patch, why, resource_version=guard)


def _own_labels(node: Obj, ours: Sequence[str], wanted: NodeRegistration) -> Sequence[str]:
    """Labels that may be taken back. The owner's label: if it names this Machine, whoever wrote it, and never else.

    Kubelets register with it, and earlier releases kept it; on a Node that stays it would make no two Nodes alike.
    """
    label, uid = names.NODE_OWNED_BY_LABEL, wanted.annotations.get(names.NODE_MACHINE_UID_ANNOTATION)
    deletion_guards = [key for key in ours if key != label]
    return [*deletion_guards, label] if uid and labels_of(node).get(label) == uid else deletion_guards


def _changes(have: Mapping[str, str], ours: Sequence[str], want: Mapping[str, str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {key: value for key, value in want.items() if have.get(key) != value}
    changes.update({key: None for key in ours if key not in want and key in have})
    return changes


def _merged_taints(
    have: Sequence[Mapping[str, Any]], ours: Sequence[str], want: Sequence[Taint]
) -> list[dict[str, Any]] | None:
    """The whole list to write, others' taints kept in place; None if nothing changes."""
    wanted = {f"{taint.key}:{taint.effect}": taint for taint in want}
    merged: list[dict[str, Any]] = []
    changed = False
    for taint in have:
        name = taint_id(taint)
        mine = wanted.pop(name, None)
        if mine is None and name in ours:
            changed = True
        elif mine is not None and (taint.get("value") or "") != mine.value:
            merged.append(_as_dict(mine))
            changed = True
        else:
            merged.append(dict(taint))
    merged.extend(_as_dict(taint) for taint in wanted.values())
    return merged if changed or wanted else None


def _as_dict(taint: Taint) -> dict[str, Any]:
    return {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}


def _taints(node: Obj) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = spec_of(node).get("taints") or ()
    return found


def _read(applied: Any) -> dict[str, Sequence[str]]:
    known = applied if isinstance(applied, Mapping) else {}
    return {name: known.get(name) or () for name in ("labels", "annotations", "taints")}
