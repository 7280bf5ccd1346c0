"""A structural schema (apiextensions.k8s.io/v1 `openAPIV3Schema`), read once into a tree that the walks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nodewright.apiserver.openapi import builtins
from nodewright.apiserver.values import Obj

MAX_DEPTH: Final = 100
"""Schemas nested deeper are refused: walks are recursive."""

TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One level of a schema. `has_…` say whether anything at or below this level needs that walk.

    `default` is None where there is none (null is no default); it already has the defaults of its own children.
    """

    raw: Obj
    types: tuple[str, ...]
    nullable: bool
    properties: Mapping[str, Node]
    additional: Node | None
    items: Node | None
    preserve: bool
    embedded: bool
    default: Any
    list_type: str
    list_map_keys: tuple[str, ...]
    rules: tuple[Obj, ...]
    has_defaults: bool
    has_keyed_lists: bool
    has_rules: bool
    has_embedded: bool

    def child(self, key: str) -> Node | None:
        """Give the schema of a map's entry, None if there is none."""
        return self.properties.get(key) or self.additional


def read(schema: Obj) -> Node:
    """Read the schema of a whole object: apiVersion, kind and metadata are added as far as they are missing.

    Raises ValueError for what is no schema, with the path at fault.
    """
    root = _read(schema, "", 0)
    known: Obj = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    properties = {k: _read(v, f".{k}", 1) for k, v in known.items()} | dict(root.properties)
    metadata = _read(builtins.type_schema("meta.v1.ObjectMeta"), ".metadata", 1)
    properties["metadata"] = replace(metadata, has_keyed_lists=False)
    return replace(root, properties=properties)


def _read(schema: Any, path: str, depth: int) -> Node:
    if not isinstance(schema, dict):
        raise ValueError(f"{path or 'schema'}: must be an object")
    if depth > MAX_DEPTH:
        raise ValueError(f"{path}: nested deeper than {MAX_DEPTH} levels")
    properties = {k: _read(v, f"{path}.{k}", depth + 1) for k, v in (schema.get("properties") or {}).items()}
    additional = schema.get("additionalProperties")
    extra = _read(additional, f"{path}[*]", depth + 1) if isinstance(additional, dict) else None
    items = _read(schema["items"], f"{path}[]", depth + 1) if isinstance(schema.get("items"), dict) else None
    children = [*properties.values(), *(c for c in (extra, items) if c is not None)]
    rules = tuple(schema.get("x-kubernetes-validations") or ())
    list_type = schema.get("x-kubernetes-list-type", "")
    node = Node(
        raw=schema,
        types=_types(schema),
        nullable=bool(schema.get("nullable")),
        properties=properties,
        additional=extra,
        items=items,
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")) or additional is True,
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        default=schema.get("default"),
        list_type=list_type,
        list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        rules=rules,
        has_defaults="default" in schema or any(c.has_defaults for c in children),
        has_keyed_lists=list_type in ("map", "set") or any(c.has_keyed_lists for c in children),
        has_rules=bool(rules) or any(c.has_rules for c in children) or _has_rules(schema.get("allOf")),
        has_embedded=bool(schema.get("x-kubernetes-embedded-resource")) or any(c.has_embedded for c in children),
    )
    if node.default is None:
        return node
    return replace(node, default=fill(node, node.default))


def _types(schema: Obj) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = schema.get("type")
    return (kind,) if isinstance(kind, str) and kind else ()


def _has_rules(branches: Any) -> bool:
    if isinstance(branches, dict):
        return "x-kubernetes-validations" in branches or any(_has_rules(v) for v in branches.values())
    return isinstance(branches, list) and any(_has_rules(b) for b in branches)


def fill(node: Node, value: Any) -> Any:
    """Give a value with the defaults of its schema, sharing what did not change. A null counts as missing."""
    if isinstance(value, dict):
        return _fill_map(node, value)
    if isinstance(value, list) and node.items is not None:
        items, changed = node.items, False
        filled: list[Any] = []
        for item in value:
            given = items.default if item is None and not items.nullable else item
            after = fill(items, given) if items.has_defaults else given
            changed = changed or after is not item
            filled.append(after)
        return filled if changed else value
    return value


def _fill_map(node: Node, value: Obj) -> Obj:
    changes: Obj = {}
    for key, child in node.properties.items():
        if not child.has_defaults:
            continue
        before = value.get(key)
        if before is None:
            if child.default is not None and not (child.nullable and key in value):
                changes[key] = child.default
        elif isinstance(before, (dict, list)):
            after = fill(child, before)
            if after is not before:
                changes[key] = after
    if node.additional is not None and node.additional.has_defaults:
        changes.update(_fill_entries(node, node.additional, value))
    return {**value, **changes} if changes else value


def _fill_entries(node: Node, extra: Node, value: Obj) -> Obj:
    changes: Obj = {}
    for key, before in value.items():
        if key in node.properties:
            continue
        given = extra.default if before is None and not extra.nullable else before
        after = fill(extra, given)
        if after is not before:
            changes[key] = after
    return changes


def without_nulls(node: Node | None, value: Any) -> Any:
    """Give a value without the nulls of fields that are neither nullable nor defaulted: the API drops them."""
    if isinstance(value, dict):
        return _map_without_nulls(node, value)
    if isinstance(value, list):
        items = node.items if node is not None else None
        after_items = [without_nulls(items, item) for item in value]
        return after_items if any(a is not b for a, b in zip(after_items, value, strict=True)) else value
    return value


def _map_without_nulls(node: Node | None, value: Obj) -> Obj:
    changes: Obj = {}
    dropped = set()
    for key, before in value.items():
        child = node.child(key) if node is not None else None
        if before is None:
            if child is not None and not child.nullable and child.default is None:
                dropped.add(key)
        elif isinstance(before, (dict, list)):
            after = without_nulls(child, before)
            if after is not before:
                changes[key] = after
    if not changes and not dropped:
        return value
    return {k: changes.get(k, v) for k, v in value.items() if k not in dropped}
