"""The entries of metadata.managedFields: read, written, ordered and kept few."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewright.apiserver.managedfields.fieldsets import FieldSet, union
from nodewright.apiserver.values import Obj

MAX_UPDATERS: Final = 10
"""Entries with operation Update that an object keeps; the oldest are merged into one when there are more."""

_ANCIENT: Final = "ancient-changes"

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One manager's fields. `time` is RFC 3339 in whole seconds, or "" if unknown."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet

    @property
    def key(self) -> Key:
        """What makes two entries the same manager: for Apply, the version does not."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.manager, self.operation, version, self.subresource


class UnreadableEntriesError(ValueError):
    """The managedFields are none that this server could have written."""


def decode(raw: Any) -> dict[Key, Entry]:
    """Read metadata.managedFields. Raises UnreadableEntriesError."""
    if raw is None:
        return {}
    if not isinstance(raw, list):
        raise UnreadableEntriesError("managedFields must be a list")
    entries = [_decode_one(item) for item in raw]
    return {entry.key: entry for entry in entries}


def _decode_one(item: Any) -> Entry:
    if not isinstance(item, dict) or item.get("operation") not in ("Apply", "Update"):
        raise UnreadableEntriesError("operation must be `Apply` or `Update`")
    fields = item.get("fieldsV1") or {}
    if not item.get("apiVersion") or item.get("fieldsType") != "FieldsV1" or not isinstance(fields, dict):
        raise UnreadableEntriesError("apiVersion, fieldsType FieldsV1 and fieldsV1 are required")
    return Entry(
        manager=str(item.get("manager", "")),
        operation=item["operation"],
        api_version=str(item["apiVersion"]),
        subresource=str(item.get("subresource", "")),
        time=str(item.get("time") or ""),
        fields=fields,
    )


def of_update(old: Obj | None, new: Obj, subresource: str) -> dict[Key, Entry]:
    """Give the entries that hold before an update.

    A client may write its own entries, or clear them with one empty entry; what is unreadable or missing (clients that
    know nothing of managedFields) and anything sent to a subresource leaves the old ones as they are.
    """
    before = ((old or {}).get("metadata") or {}).get("managedFields")
    stated = (new.get("metadata") or {}).get("managedFields")
    if stated == [{}] and not subresource:
        return {}
    if stated and stated is not before and not subresource:
        try:
            return decode(stated)
        except UnreadableEntriesError:
            pass
    try:
        return decode(before)
    except UnreadableEntriesError:
        return {}


def encode(entries: Iterable[Entry]) -> list[Obj]:
    """Write metadata.managedFields in the usual order: appliers first, each by time, then by name."""
    ordered = sorted(entries, key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource))
    return [_encode_one(entry) for entry in ordered]


def _encode_one(entry: Entry) -> Obj:
    result: Obj = {"manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version}
    if entry.time:
        result["time"] = entry.time
    result |= {"fieldsType": "FieldsV1", "fieldsV1": entry.fields}
    if entry.subresource:
        result["subresource"] = entry.subresource
    return result


def capped(entries: dict[Key, Entry]) -> dict[Key, Entry]:
    """Give at most MAX_UPDATERS Update entries: beyond that, the oldest of a version become `ancient-changes`."""
    updaters = [entry for entry in entries.values() if entry.operation == "Update"]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return entries
    result = dict(entries)
    first: dict[str, Entry] = {}
    for entry in sorted(updaters, key=lambda e: (e.time, e.key)):
        if excess <= 0:
            break
        if (older := first.get(entry.api_version)) is None:
            first[entry.api_version] = entry
            continue
        merged = replace(entry, manager=_ANCIENT, subresource="", fields=union(older.fields, entry.fields))
        result.pop(older.key, None)
        result.pop(entry.key, None)
        result[merged.key] = first[entry.api_version] = merged
        excess -= 1
    return result


def with_entries(obj: Obj, entries: Iterable[Entry]) -> Obj:
    """Give an object with these entries as its managedFields."""
    return with_encoded(obj, encode(entries))


def with_encoded(obj: Obj, encoded: list[Obj] | None) -> Obj:
    """Give an object with managedFields in wire form, without the field if there are none."""
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("managedFields", None)
    if encoded:
        metadata["managedFields"] = encoded
    return {**obj, "metadata": metadata}
