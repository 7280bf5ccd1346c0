"""Which packages keep the store's seams? Those beside it."""

from __future__ import annotations

from typing import Any

from nodewright.controlplane.openapi import builtins
from nodewright.controlplane.patch import apply_json, apply_merge, apply_strategic
from nodewright.controlplane.store.seams import Author, Seams
from nodewright.controlplane.validation import compile_schema
from nodewright.controlplane.values import Obj, Resource


class _Patching:
    def apply_json(self, current: Obj, patch: Any) -> Obj:
        return apply_json(current, patch)

    def apply_merge(self, current: Obj, patch: Any) -> Obj:
        return apply_merge(current, patch)

    def apply_strategic(self, resource: Resource, current: Obj, patch: Any) -> Obj:
        return apply_strategic(resource, current, patch)


class _Ownership:
    def track(self, resource: Resource, old: Obj | None, new: Obj, author: Author) -> Obj:
        return new

    def apply(self, resource: Resource, live: Obj | None, applied: Obj, author: Author, force: bool) -> Obj:
        return apply_merge(live or {}, applied)


def _schema_of(resource: Resource) -> Obj | None:
    if resource.schema is not None or not resource.builtin:
        return resource.schema
    return builtins.schema(resource.group, resource.version, resource.kind)


def standard_seams() -> Seams:
    """Give the real ones."""
    return Seams(compile_schema, _schema_of, _Ownership(), _Patching())
