"""Owners of fields after a create, an update or a patch (operation Update)."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from nodewright.apiserver.managedfields.comparing import Changes, compare
from nodewright.apiserver.managedfields.entries import Entry, Key, capped, of_update, with_encoded, with_entries
from nodewright.apiserver.managedfields.fieldsets import difference, union
from nodewright.apiserver.managedfields.shapes import shape_of
from nodewright.apiserver.values import Obj, Resource


class Writer(Protocol):
    """The manager of a write, its operation and its time. `subresource` is "" for the object itself, `now` is RFC 3339
    in whole seconds.
    """

    @property
    def manager(self) -> str:
        """The field manager's name."""
        ...

    @property
    def operation(self) -> str:
        """ "Update" or "Apply"."""
        ...

    @property
    def subresource(self) -> str:
        """ "status", or "" for the object itself."""
        ...

    @property
    def now(self) -> str:
        """The time of the write."""
        ...


def track(resource: Resource, old: Obj | None, new: Obj, writer: Writer) -> Obj:
    """Give `new` with metadata.managedFields as they are after this write; `old` is None for a create.

    What changed now belongs to the writer and to nobody else; what is gone belongs to nobody. A write that changes
    nothing leaves the entries as they were, times included. Objects without entries get none by an update, as upstream
    (they were cleared on purpose).
    """
    entries = of_update(old, new, writer.subresource)
    if old is not None and not entries:
        return with_encoded(new, None) if "managedFields" in (new.get("metadata") or {}) else new
    ignored = ignored_fields(resource, writer.subresource)
    changes = compare(shape_of(resource), old if old is not None else {}, new, ignored)
    if changes:
        return with_entries(new, after_update(entries, changes, _identity(resource, writer)).values())
    before = ((old or {}).get("metadata") or {}).get("managedFields")
    if (new.get("metadata") or {}).get("managedFields") == before:
        return new
    return with_entries(new, entries.values())


def ignored_fields(resource: Resource, subresource: str) -> frozenset[str]:
    """Name the top-level fields that a write through this door cannot change."""
    if subresource == "status":
        return frozenset({"metadata", "spec"})
    return frozenset({"status"}) if "status" in resource.subresources else frozenset()


def _identity(resource: Resource, writer: Writer) -> Entry:
    return Entry(writer.manager, "Update", resource.api_version, writer.subresource, writer.now, {})


def after_update(entries: dict[Key, Entry], changes: Changes, own: Entry) -> dict[Key, Entry]:
    """Move the changed fields from all others to `own`, which has the time of the write and no fields yet."""
    taken = union(changes.added, changes.modified)
    result: dict[Key, Entry] = {}
    for key, entry in entries.items():
        fields = difference(difference(entry.fields, taken), changes.removed)
        if fields:
            result[key] = entry if fields is entry.fields else replace(entry, fields=fields)
    if taken:
        before = result.get(own.key)
        result[own.key] = replace(own, fields=taken if before is None else union(before.fields, taken))
    return capped(result)
