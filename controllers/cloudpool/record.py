"""What a proxy writes on a Node before it empties it, so that whoever comes after a crash knows what was going on.

Cordon and drain taint are the drain's own; added are the taint that clients of the original know, and an annotation
that says which proxy it was, for which machine, since when, and whether the backend was asked already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from api import names
from controllers.drain import cordon as cordoning
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.memory import digest
from controllers.kernel.refs import NODE, Obj, annotations_of, ref_of, resource_version_of, spec_of


@dataclass(frozen=True, slots=True)
class Record:
    """``owner``: the proxy, by what it stands in front of. ``terminating``: when the backend was asked, None: never."""

    owner: str
    machine: str
    started: datetime
    terminating: datetime | None = None

    @property
    def token(self) -> str:
        """For the value of the drain taint, which takes no provider ID."""
        return f"cloudpool-{digest(self.machine)}"

    def to_text(self) -> str:
        body = {"owner": self.owner, "machine": self.machine, "startedAt": format_time(self.started)}
        if self.terminating is not None:
            body["terminatingAt"] = format_time(self.terminating)
        return json.dumps(body, separators=(",", ":"))


def record_of(node: Obj, owner: str) -> Record | None:
    """What the proxy ``owner`` wrote on this Node; None if it is another's, or can't be read."""
    text = annotations_of(node).get(names.CLOUDPOOL_SCALE_DOWN_ANNOTATION)
    if not text:
        return None
    try:
        body: Any = json.loads(text)
        started = parse_time(body["startedAt"])
        if body["owner"] != owner or started is None:
            return None
        return Record(owner, str(body["machine"]), started, parse_time(body.get("terminatingAt")))
    except (ValueError, TypeError, KeyError):
        return None


def is_marked(node: Obj, record: Record) -> bool:
    """Closed by us for this machine; the times don't matter."""
    found = record_of(node, record.owner)
    return found is not None and found.machine == record.machine and cordoning.is_cordoned(node)


def is_asked(node: Obj, record: Record) -> bool:
    """Whether it stands there that the backend was asked."""
    found = record_of(node, record.owner)
    return found is not None and found.machine == record.machine and found.terminating is not None


def drained_by_another(node: Obj) -> str:
    """For whom it is drained, "" if by nobody or by a proxy."""
    if names.CLOUDPOOL_SCALE_DOWN_ANNOTATION in annotations_of(node):
        return ""
    taints = spec_of(node).get("taints") or ()
    return next((str(taint.get("value") or "?") for taint in taints if taint.get("key") == names.DRAINING_TAINT), "")


def mark(node: Obj, record: Record, why: str) -> Patch:
    """Close it to new pods and write the record, in one write."""
    taint = {"key": names.CLOUDPOOL_TAINT, "value": "true", "effect": cordoning.EFFECT}
    found = cordoning.cordon(node, record.token, why)
    return _with(found, [*_without_ours(found.patch["spec"]["taints"]), taint], record.to_text())


def ask(node: Obj, record: Record, why: str) -> Patch:
    """Write down that the backend is about to be asked to terminate the machine."""
    patch = {"metadata": {"annotations": {names.CLOUDPOOL_SCALE_DOWN_ANNOTATION: record.to_text()}}}
    title = f"note on Node {node['metadata']['name']} that machine {record.machine} is terminated: {why}"
    return Patch(ref_of(NODE, node), patch, title, resource_version=resource_version_of(node))


def put_back(node: Obj, why: str) -> Patch:
    """Open it again, as it was before; a person's own cordon stays."""
    found = cordoning.uncordon(node, why)
    return _with(found, _without_ours(found.patch["spec"]["taints"] or []) or None, None)


def _with(patch: Patch, taints: list[dict[str, Any]] | None, record: str | None) -> Patch:
    meta: Mapping[str, Any] = patch.patch.get("metadata") or {}
    annotations = {**(meta.get("annotations") or {}), names.CLOUDPOOL_SCALE_DOWN_ANNOTATION: record}
    body = {
        **patch.patch,
        "spec": {**patch.patch["spec"], "taints": taints},
        "metadata": {**meta, "annotations": annotations},
    }
    return replace(patch, patch=body)


def _without_ours(taints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [taint for taint in taints if taint.get("key") != names.CLOUDPOOL_TAINT]
