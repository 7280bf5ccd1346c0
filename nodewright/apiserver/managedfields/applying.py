"""Server-side apply (KEP-555): merge what a manager states, take back what it no longer states, respect the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewright.apiserver.managedfields import comparing, merging
from nodewright.apiserver.managedfields.checking import typing_faults
from nodewright.apiserver.managedfields.conflicts import conflict_error
from nodewright.apiserver.managedfields.entries import (
    Entry,
    Key,
    UnreadableEntriesError,
    decode,
    with_encoded,
    with_entries,
)
from nodewright.apiserver.managedfields.fieldsets import FieldSet, difference, intersection, union
from nodewright.apiserver.managedfields.shapes import Shape, shape_of
from nodewright.apiserver.managedfields.tracking import Writer, after_update, ignored_fields
from nodewright.apiserver.validation.gotext import compact_json
from nodewright.apiserver.values import ApiError, Obj, Resource

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"


@dataclass(frozen=True, slots=True)
class _Applying:
    """One apply. `live` has no managedFields, and is {} if the object does not exist yet."""

    resource: Resource
    shape: Shape
    live: Obj
    applied: Obj
    writer: Writer
    ignored: frozenset[str]

    @property
    def own_key(self) -> Key:
        return self.writer.manager, "Apply", "", self.writer.subresource


def apply(resource: Resource, live: Obj | None, applied: Obj, writer: Writer, force: bool) -> Obj:
    """Give the live object with the applied configuration merged in, metadata.managedFields included.

    Fields that this manager applied before and does not state any more go, unless somebody else owns them. A container
    that becomes empty goes with its last field (upstream leaves a null there, which validation then refuses).

    Raises ApiError 500 for what does not fit the schema (as upstream, though it is the client's fault), and 409 with
    reason Conflict if others own fields that would change, unless `force` takes them.
    """
    _check(resource, applied)
    entries = _live_entries(resource, live, writer)
    metadata = {key: value for key, value in (applied.get("metadata") or {}).items() if key != "managedFields"}
    stated = {**applied, "metadata": metadata}
    ignored = ignored_fields(resource, writer.subresource)
    work = _Applying(resource, shape_of(resource), with_encoded(live or {}, None), stated, writer, ignored)
    contested, result = _attempt(work, entries)
    if contested and not force and (left := _not_from_client_side_apply(work, contested)):
        raise conflict_error(resource, str(metadata.get("name", "")), left)
    return result


def _check(resource: Resource, applied: Obj) -> None:
    version = applied.get("apiVersion")
    if version != resource.api_version:
        text = "Incorrect version specified in apply patch. "
        text += f"Specified patch version: {version}, expected: {resource.api_version}"
        raise ApiError.bad_request(text)
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise ApiError.bad_request("metadata.managedFields must be nil")
    faults = typing_faults(shape_of(resource), applied)
    if faults:
        metadata = applied.get("metadata") or {}
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {resource.api_version}"
        message = faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {fault}" for fault in faults)
        raise ApiError(
            400, "BadRequest", f"failed to create typed patch object ({where}, Kind={resource.kind}): {message}"
        )


def _live_entries(resource: Resource, live: Obj | None, writer: Writer) -> dict[Key, Entry]:
    """Give the entries of the live object; if it has none, all its fields belong to "before-first-apply"."""
    if live is None:
        return {}
    try:
        entries = decode((live.get("metadata") or {}).get("managedFields"))
    except UnreadableEntriesError:
        entries = {}
    if entries:
        return entries
    ignored = ignored_fields(resource, writer.subresource)
    changes = comparing.compare(shape_of(resource), {}, live, ignored)
    own = Entry(_BEFORE, "Update", resource.api_version, writer.subresource, writer.now, {})
    return after_update({}, changes, own)


def _attempt(work: _Applying, entries: dict[Key, Entry]) -> tuple[dict[Key, tuple[Entry, FieldSet]], Obj]:
    """Give what others own of the fields that change, and the object as it is if they are taken."""
    fields = comparing.stated(work.shape, work.applied, work.ignored)
    last = entries.get(work.own_key)
    own = Entry(work.writer.manager, "Apply", work.resource.api_version, work.writer.subresource, "", fields)
    claimed = {**entries, own.key: own}
    merged = merging.merge(work.shape, work.live, _without_ignored(work))
    if last is not None and difference(last.fields, fields):
        merged = _take_back(work.shape, merged, last.fields, claimed)
    changes = comparing.compare(work.shape, work.live, merged, work.ignored)
    others = {key: entry for key, entry in entries.items() if key != own.key}
    contested, result = _lost_and_left(others, changes)
    if fields:
        kept_time = last.time if last is not None else ""
        result[own.key] = replace(own, time=work.writer.now if merged != work.live else kept_time)
    return contested, with_entries(_with_last_applied(work, merged), result.values())


def _lost_and_left(
    entries: dict[Key, Entry], changes: comparing.Changes
) -> tuple[dict[Key, tuple[Entry, FieldSet]], dict[Key, Entry]]:
    """Give what each entry loses of its fields to a write that makes these changes, and what it keeps."""
    taken = union(changes.added, changes.modified)
    contested: dict[Key, tuple[Entry, FieldSet]] = {}
    result: dict[Key, Entry] = {}
    for key, entry in entries.items():
        lost = intersection(entry.fields, taken)
        if lost:
            contested[key] = (entry, lost)
        left = difference(difference(entry.fields, lost), changes.removed)
        if left:
            result[key] = replace(entry, fields=left)
    return contested, result


def _without_ignored(work: _Applying) -> Obj:
    """Give what is applied without the fields that this door does not change; the identity stays."""
    kept = {name: value for name, value in work.applied.items() if name not in work.ignored}
    if "metadata" in work.ignored and not work.live:
        kept["metadata"] = work.applied["metadata"]
    return kept


def _with_last_applied(work: _Applying, merged: Obj) -> Obj:
    """Keep kubectl's client-side annotation in step if kubectl applies; owned by nobody new (upstream rule)."""
    annotations = (merged.get("metadata") or {}).get("annotations") or {}
    if work.writer.manager != _KUBECTL or not annotations.get(LAST_APPLIED):
        return merged
    updated = {**annotations, LAST_APPLIED: compact_json(work.applied) + "\n"}
    return {**merged, "metadata": {**merged["metadata"], "annotations": updated}}


def _take_back(shape: Shape, merged: Obj, last: FieldSet, claimed: Mapping[Key, Entry]) -> Obj:
    """Remove what was applied last time and is claimed by nobody now (structured-merge-diff's `prune`)."""
    owned: FieldSet = {}
    for entry in claimed.values():
        owned = union(owned, entry.fields)
    last_named = comparing.with_named_fields(shape, last)
    owned_named = comparing.with_named_fields(shape, owned)
    merged_named = _named(shape, merged)
    pruned = _without(shape, merged, last_named)
    kept = union(_named(shape, pruned), owned_named)
    pruned = _without(shape, merged, difference(merged_named, kept))
    dangling = intersection(difference(merged_named, _named(shape, pruned)), last_named)
    return _without(shape, merged, dangling)


def _named(shape: Shape, obj: Obj) -> FieldSet:
    return comparing.with_named_fields(shape, comparing.stated(shape, obj))


def _without(shape: Shape, obj: Obj, gone: FieldSet) -> Obj:
    left: Any = merging.remove(shape, obj, gone)
    return left if left is not None else {}


def _not_from_client_side_apply(
    work: _Applying, contested: dict[Key, tuple[Entry, FieldSet]]
) -> list[tuple[Entry, FieldSet]]:
    """Give the conflicts that remain when kubectl takes over what it applied client-side before."""
    allowed = _last_applied_fields(work) if work.writer.manager == _KUBECTL else {}
    left = [(entry, difference(fields, allowed)) for entry, fields in contested.values()]
    return [(entry, fields) for entry, fields in left if fields]


def _last_applied_fields(work: _Applying) -> FieldSet:
    annotations = (work.live.get("metadata") or {}).get("annotations") or {}
    try:
        last = json.loads(annotations.get(LAST_APPLIED) or "null")
    except ValueError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != work.resource.api_version:
        return {}
    if typing_faults(work.shape, last):
        return {}
    changes = comparing.compare(work.shape, last, work.live, frozenset())
    differing = union(union(changes.added, changes.modified), changes.removed)
    return difference(comparing.stated(work.shape, last), differing)
