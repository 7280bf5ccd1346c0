"""Which packages keep the store's seams? Those beside it."""

from __future__ import annotations

from functools import cache

from nodewright.apiserver import managedfields, patch
from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.store.seams import Seams, Shape
from nodewright.apiserver.validation import compile_schema
from nodewright.apiserver.values import Resource


def standard_seams() -> Seams:
    """Give the real ones."""
    return Seams(compile_schema, _shape_of, managedfields, patch)


def _shape_of(resource: Resource) -> Shape | None:
    if resource.schema is not None:
        return compile_schema(resource.schema)
    return _builtin_shape(resource.group, resource.version, resource.kind) if resource.builtin else None


@cache
def _builtin_shape(group: str, version: str, kind: str) -> Shape | None:
    schema = builtins.schema(group, version, kind)
    return compile_schema(schema) if schema is not None else None
