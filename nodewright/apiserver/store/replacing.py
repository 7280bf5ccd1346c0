"""What may an update change? Which parts of the old object stay, and whether anything changed at all."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from nodewright.apiserver.store.builtin_kinds import Traits
from nodewright.apiserver.values import Obj, Resource


def merge_old(resource: Resource, traits: Traits, new: Obj, old: Obj, subresource: str) -> Obj:
    """Give `new` with all that this write must not touch taken from `old`. Its metadata dict may be changed.

    A write to the object leaves its status, if that is a subresource; a write to status or approval leaves all but
    the status, and for custom resources metadata too; one to finalize changes a namespace's spec.finalizers only.
    """
    if subresource == "finalize":
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        spec = {**(old.get("spec") or {}), "finalizers": finalizers}
        return {**old, "metadata": new["metadata"], "spec": spec}
    if subresource:
        return _with_status(traits, new, old)
    if "status" in resource.subresources:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def _with_status(traits: Traits, new: Obj, old: Obj) -> Obj:
    """Give `old` with the status of `new`, and with its metadata as far as such a write may change it."""
    kept = {field: value for field, value in old.items() if field not in ("status", "metadata")}
    meta = new["metadata"] if traits.metadata_with_status else _old_metadata(new["metadata"], old["metadata"])
    merged = {**kept, "metadata": meta}
    if "status" in new:
        merged["status"] = new["status"]
    return merged


def _old_metadata(new: Obj, old: Obj) -> Obj:
    meta = dict(old)
    if "managedFields" in new:
        meta["managedFields"] = new["managedFields"]
    else:
        meta.pop("managedFields", None)
    return meta


def same_content(new: Obj, old: Obj, but: Collection[str] = ()) -> bool:
    """Say whether two states are equal, leaving out these top-level fields, managedFields and resourceVersion."""
    for field in new.keys() | old.keys():
        if field in but:
            continue
        if field == "metadata":
            if not _same_metadata(new["metadata"], old["metadata"]):
                return False
        elif new.get(field) != old.get(field) or (field in new) != (field in old):
            return False
    return True


def _same_metadata(new: Obj, old: Obj) -> bool:
    for field in new.keys() | old.keys():
        if field not in ("managedFields", "resourceVersion") and new.get(field) != old.get(field):
            return False
    return True


def only_times_differ(new: Obj, old: Obj) -> bool:
    """Say whether two states are equal but for the times in managedFields: an apply that changes nothing."""
    if not same_content(new, old):
        return False
    return _without_times(new["metadata"]) == _without_times(old["metadata"])


def _without_times(meta: Obj) -> list[dict[str, Any]]:
    return [{k: v for k, v in entry.items() if k != "time"} for entry in meta.get("managedFields") or ()]
