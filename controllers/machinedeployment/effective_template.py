"""Which template is in force: what the user wrote, an earlier one after a failure, or a renewed one.

A rollout that failed is taken back, without touching what the user wrote.

``spec.template`` has one writer, and it is not us: a tool that applies manifests would write the failed template again,
and we would fight. So the decision is recorded in ``status.rollback``, with the hash of the template that failed. As
long as ``spec.template`` has that hash, the template of the recorded revision is in force instead. Another template in
``spec`` ends it.

``spec.rollout.after``: other Machines of the same template once a time has come (CAPI's word).

The time becomes a part of the template that is in force, as a restart does, so that a rollout of it is one like any
other: with its revision, budgets, windows, rollback. It stays a part of it when the field is taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api import names
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import Obj, is_deleting, spec_of
from controllers.kernel.template import IN_PLACE_FIELDS, RESTARTS, rollout_part, template_hash, template_problem


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


def template_after_rollback(
    record: Record | None, wanted: Mapping[str, Any], sets: Iterable[Obj]
) -> dict[str, Any] | None:
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


_PART = "rolloutAfter"


def with_rollout_after(
    template: Mapping[str, Any], sets: Sequence[Obj], after: datetime | None, now: datetime
) -> dict[str, Any]:
    """``template`` with the last such time that has come.

    A MachineSet of the template that was made since needs no other. ``sets``: those of the MachineDeployment.
    """
    want = _without(rollout_part(template))
    same = [body for body in sets if _without(_part(body)) == want]
    times = [str(_part(body)[_PART]) for body in same if _part(body).get(_PART)]
    if after is not None and after <= now and not any(_is_made_since(body, after) for body in same) and same:
        times.append(format_time(after))
    if not times:
        return dict(template)
    metadata = dict(template.get("metadata") or {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), names.ROLLOUT_AFTER_ANNOTATION: max(times)}
    return {**template, "metadata": metadata}


def seconds_until_rollout(after: datetime | None, now: datetime) -> float:
    """0 if there is no such time, or it has come."""
    return max((after - now).total_seconds(), 0.0) if after is not None else 0.0


def _part(body: Obj) -> dict[str, Any]:
    template = spec_of(body).get("template")
    return rollout_part(template) if isinstance(template, Mapping) and not template_problem(template) else {}


def _without(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != _PART}


def _is_made_since(body: Obj, moment: datetime) -> bool:
    made = parse_time(body["metadata"].get("creationTimestamp"))
    return made is not None and made >= moment
