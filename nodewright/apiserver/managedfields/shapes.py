"""What field ownership needs to know of a schema: which maps and lists are owned entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.values import Obj, Resource


@dataclass(slots=True, eq=False)
class Shape:
    """One level of an object. Filled in once, then never changed.

    `kind` is "scalar", "map", "set" (a list of values), "keyed" (a list of maps with keys), "atomic" (owned as a whole)
    or "any" (no schema: maps entry by entry, lists as a whole). `type` is the JSON type of scalars and what is atomic.
    `always_there` marks structs of built-in types that no object lacks, so that nobody adds or removes them.
    """

    kind: str
    type: str = ""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    element: Shape | None = None
    keys: tuple[str, ...] = ()
    key_defaults: Obj = field(default_factory=dict)
    always_there: bool = False

    def child(self, name: str) -> Shape | None:
        """Give the shape of a map's entry, None if the schema knows no such entry."""
        return self.fields.get(name) or self.element


ANY: Final = Shape("any")
ANY.element = ANY


@lru_cache(maxsize=512)
def shape_of(resource: Resource) -> Shape:
    """Give the shape of a kind's objects: from its schema, from the table of built-in types, or none."""
    schema = resource.schema or builtins.schema(resource.group, resource.version, resource.kind)
    if not schema:
        root = Shape("map", element=ANY)
    else:
        compiled = _compile(schema)
        root = compiled if compiled.kind == "map" else Shape("map", element=ANY)
    known = {"apiVersion": _SCALAR_STRING, "kind": _SCALAR_STRING}
    return Shape("map", "object", {**root.fields, **known, "metadata": _metadata()}, root.element)


_SCALAR_STRING: Final = Shape("scalar", "string")


@lru_cache(maxsize=1)
def _metadata() -> Shape:
    return _compile(builtins.type_schema("meta.v1.ObjectMeta"))


def _compile(schema: Any) -> Shape:
    if not isinstance(schema, dict):
        return ANY
    if schema.get("x-kubernetes-int-or-string"):
        return Shape("scalar")
    match schema.get("type"):
        case "object":
            return _compile_map(schema)
        case "array":
            return _compile_list(schema)
        case str() as kind:
            return Shape("scalar", kind)
        case _:
            return ANY


def _compile_map(schema: Obj) -> Shape:
    if schema.get("x-kubernetes-map-type") == "atomic":
        return Shape("atomic", "object")
    fields = {name: _compile(child) for name, child in (schema.get("properties") or {}).items()}
    extra = schema.get("additionalProperties")
    element = _compile(extra) if isinstance(extra, dict) else None
    if schema.get("x-kubernetes-preserve-unknown-fields") or extra is True:
        element = ANY
    if schema.get("x-kubernetes-embedded-resource"):
        fields = {"apiVersion": _SCALAR_STRING, "kind": _SCALAR_STRING, "metadata": _metadata(), **fields}
    return Shape("map", "object", fields, element, always_there=builtins.ALWAYS_THERE in schema)


def _compile_list(schema: Obj) -> Shape:
    list_type = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if list_type == "set":
        return Shape("set", "array")
    if list_type != "map" or not keys:
        return Shape("atomic", "array")
    items = schema.get("items") or {}
    properties = items.get("properties") or {}
    defaults = {key: properties[key]["default"] for key in keys if "default" in (properties.get(key) or {})}
    return Shape("keyed", "array", element=_compile(items), keys=keys, key_defaults=defaults)
