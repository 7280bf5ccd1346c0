"""A rollout that failed is taken back, without touching what the user wrote.

``spec.template`` has one writer, and it is not us: a tool that applies manifests would write the failed template again,
and we would fight. So the decision is recorded in ``status.rollback``, with the hash of the template that failed. As
long as ``spec.template`` has that hash, the template of the recorded revision is in force instead. Another template in
``spec`` ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import Obj, is_deleting, spec_of
from controllers.kernel.template import IN_PLACE_FIELDS, RESTARTS, template_hash, template_problem


@dataclass(frozen=True, slots=True)
class Record:
    """``status.rollback``: the template of hash ``failed`` was taken back to that of ``hash``."""

    at: datetime | None
    failed: str
    hash: str
    from_revision: int
    to_revision: int
    message: str

    @property
    def text(self) -> str:
        return (
            f"revision {self.from_revision} failed and was taken back to revision {self.to_revision}: {self.message}; "
            "another spec.template ends this"
        )

    def to_status(self) -> dict[str, Any]:
        return {
            "at": format_time(self.at) if self.at else None,
            "failedHash": self.failed,
            "hash": self.hash,
            "fromRevision": self.from_revision,
            "toRevision": self.to_revision,
            "message": self.message,
        }


def read_record(status: Mapping[str, Any]) -> Record | None:
    """None if there is none, or one that can't be read: then what the user wrote is in force."""
    found = status.get("rollback")
    if not isinstance(found, Mapping):
        return None
    hashes = [found.get("failedHash"), found.get("hash")]
    if not all(isinstance(text, str) and text for text in hashes):
        return None
    numbers = [found.get(name) for name in ("fromRevision", "toRevision")]
    first, second = (number if isinstance(number, int) else 0 for number in numbers)
    message = str(found.get("message") or "")
    return Record(parse_time(str(found.get("at") or "")), str(hashes[0]), str(hashes[1]), first, second, message)


def template_in_force(record: Record | None, wanted: Mapping[str, Any], sets: Iterable[Obj]) -> dict[str, Any] | None:
    """The template to use instead of ``wanted``; None if the record says nothing about it, or its MachineSet is gone.

    What flows without a rollout (labels, annotations, taints, timeouts) still follows ``wanted``.
    """
    if record is None or template_hash(wanted) != record.failed:
        return None
    for body in sets:
        template = spec_of(body).get("template")
        if is_deleting(body) or not isinstance(template, Mapping) or template_problem(template):
            continue
        if template_hash(template) == record.hash:
            return _with_old_revision(wanted, template)
    return None


def _with_old_revision(wanted: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in spec_of(old).items() if key not in IN_PLACE_FIELDS}
    spec |= {key: value for key, value in spec_of(wanted).items() if key in IN_PLACE_FIELDS}
    metadata = dict(wanted.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    before = (old.get("metadata") or {}).get("annotations") or {}
    for restart in RESTARTS.values():
        annotations.pop(restart, None)
        if before.get(restart) is not None:
            annotations[restart] = before[restart]
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    return {**wanted, "metadata": metadata, "spec": spec}
