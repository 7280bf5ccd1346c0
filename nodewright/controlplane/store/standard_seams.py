"""Which packages keep the store's seams? Those beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodewright.controlplane.patch import apply_json, apply_merge, apply_strategic
from nodewright.controlplane.store.seams import Author, Seams, Shape
from nodewright.controlplane.values import Cause, Obj, Resource


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


class _Shape:
    def prune(self, obj: Obj) -> tuple[Obj, Sequence[str]]:
        return obj, ()

    def default(self, obj: Obj) -> Obj:
        return obj

    def validate(self, obj: Obj, old: Obj | None) -> list[Cause]:
        return []


def _compile(schema: Obj) -> Shape:
    return _Shape()


def standard_seams() -> Seams:
    """Give the real ones."""
    return Seams(_compile, _Ownership(), _Patching())
