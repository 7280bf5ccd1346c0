"""What changed between two states of an object, as sets of fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from nodewright.apiserver.managedfields.elements import key_element, value_element
from nodewright.apiserver.managedfields.fieldsets import FieldSet
from nodewright.apiserver.managedfields.shapes import ANY, Shape
from nodewright.apiserver.values import Obj

NEVER_OWNED: Final = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""Fields of metadata that belong to the server."""

_TYPE_META: Final = frozenset({"apiVersion", "kind"})
_ABSENT: Final = object()


@dataclass(slots=True)
class Changes:
    """`added` and `removed` hold containers that came or went as a whole with all below; `modified` only leaves."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def compare(shape: Shape, old: Obj, new: Obj, ignored: frozenset[str]) -> Changes:
    """Compare two objects, but for the top-level fields `ignored` and what only the server writes."""
    changes = Changes()
    for name in {**old, **new}:
        if name in ignored or name in _TYPE_META:
            continue
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if before is after:
            continue
        if name == "metadata":
            _compare_metadata(shape, before, after, changes)
        elif before != after:
            _compare_entry(f"f:{name}", shape.child(name) or ANY, (before, after), changes)
    return changes


def _compare_metadata(shape: Shape, before: Any, after: Any, changes: Changes) -> None:
    inner, metadata = Changes(), shape.fields["metadata"]
    old = before if isinstance(before, dict) else {}
    new = after if isinstance(after, dict) else {}
    for name in {**old, **new}:
        left, right = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if name not in NEVER_OWNED and left is not right and left != right:
            _compare_entry(f"f:{name}", metadata.child(name) or ANY, (left, right), inner)
    _hang(changes, "f:metadata", inner)


def _hang(changes: Changes, element: str, inner: Changes) -> None:
    if inner.added:
        changes.added[element] = inner.added
    if inner.modified:
        changes.modified[element] = inner.modified
    if inner.removed:
        changes.removed[element] = inner.removed


def _compare_entry(element: str, shape: Shape, sides: tuple[Any, Any], changes: Changes) -> None:
    before, after = sides
    if shape.always_there:
        before, after = ({} if side is _ABSENT else side for side in sides)
        if before != after:
            _compare_values(element, shape, (before, after), changes)
    elif before is _ABSENT:
        changes.added[element] = everything(shape, after)
    elif after is _ABSENT:
        changes.removed[element] = everything(shape, before)
    elif before is not after and before != after:
        _compare_values(element, shape, sides, changes)


def _compare_values(element: str, shape: Shape, sides: tuple[Any, Any], changes: Changes) -> None:
    before, after = sides
    granular = shape.kind in ("map", "any", "set", "keyed")
    if not granular or (not _entries_of(shape, before) and not _entries_of(shape, after)):
        changes.modified[element] = {}
        return
    inner = Changes()
    old, new = dict(_elements(shape, before)), dict(_elements(shape, after))
    for name in {**old, **new}:
        below = (old.get(name, _ABSENT), new.get(name, _ABSENT))
        _compare_entry(name, _below(shape, name), below, inner)
    _hang(changes, element, inner)


def _entries_of(shape: Shape, value: Any) -> bool:
    """Tell whether a value has entries that are owned one by one."""
    if shape.kind in ("set", "keyed"):
        return isinstance(value, list) and bool(value)
    return isinstance(value, dict) and bool(value)


def _elements(shape: Shape, value: Any) -> Iterator[tuple[str, Any]]:
    """Give the entries of a map or list by their path elements; of doubles in a list, the last stands for all."""
    if shape.kind in ("map", "any"):
        if isinstance(value, dict):
            yield from ((f"f:{name}", child) for name, child in value.items())
    elif isinstance(value, list):
        yield from ((element, item) for item in value if (element := item_element(shape, item)) is not None)


def item_element(shape: Shape, item: Any) -> str | None:
    """Give the path element of an item of a `set` or `map` list; None if it has no key."""
    return value_element(item) if shape.kind == "set" else key_element(item, shape.keys, shape.key_defaults)


def _below(shape: Shape, element: str) -> Shape:
    if shape.kind == "set":
        return ANY
    if shape.kind == "keyed":
        return shape.element or ANY
    return shape.child(element[2:]) or ANY


def everything(shape: Shape, value: Any) -> FieldSet:
    """Give all fields of a value that came or went as a whole, its containers included."""
    kind = shape.kind
    if kind in ("scalar", "atomic") or not value:
        return {}
    result: FieldSet = {".": {}}
    if isinstance(value, dict):
        if kind not in ("map", "any"):
            return {}
        fields, rest = shape.fields, shape.element or ANY
        for name, child in value.items():
            below = fields.get(name, rest)
            if below.kind in ("scalar", "atomic") or not isinstance(child, (dict, list)):
                result["f:" + name] = {}
            elif not below.always_there:
                result["f:" + name] = everything(below, child)
            elif child:
                inside = everything(below, child)
                result["f:" + name] = {element: node for element, node in inside.items() if element != "."}
    elif isinstance(value, list) and kind == "set":
        for item in value:
            result[value_element(item)] = {}
    elif isinstance(value, list) and kind == "keyed":
        below = shape.element or ANY
        for item in value:
            element = item_element(shape, item)
            if element is not None:
                result[element] = everything(below, item)
    else:
        return {}
    return result if len(result) > 1 else {}


def stated(shape: Shape, value: Obj, ignored: frozenset[str] = frozenset()) -> FieldSet:
    """Give what an applied configuration states: leaves, empty maps, and entries of maps and lists by their keys."""
    result: FieldSet = {}
    for name, child in value.items():
        if name in _TYPE_META or name in ignored:
            continue
        if name == "metadata" and isinstance(child, dict):
            own = {key: item for key, item in child.items() if key not in NEVER_OWNED}
            below = _stated_entries(shape.fields["metadata"], own)
            if below:
                result["f:metadata"] = below
        else:
            _put(result, f"f:{name}", _stated_node(shape.child(name) or ANY, child, name not in shape.fields))
    return result


def _put(result: FieldSet, element: str, node: FieldSet | None) -> None:
    if node is not None:
        result[element] = node


def _stated_node(shape: Shape, value: Any, entry: bool) -> FieldSet | None:
    """Give the node of one value; `entry` says that it stands for itself, as entries of maps and lists do."""
    if shape.kind in ("scalar", "atomic") or value is None or not isinstance(value, (dict, list)):
        return {}
    if isinstance(value, list) and shape.kind not in ("set", "keyed"):
        return {}
    if isinstance(value, dict) and not value:
        return {}
    below = _stated_entries(shape, value)
    if not below:
        return {} if entry else None
    return {".": {}, **below} if entry else below


def _stated_entries(shape: Shape, value: Any) -> FieldSet:
    result: FieldSet = {}
    if isinstance(value, dict):
        for name, child in value.items():
            node = _stated_node(shape.child(name) or ANY, child, name not in shape.fields)
            _put(result, f"f:{name}", node)
        return result
    for item in value:
        element = item_element(shape, item)
        if element is not None:
            below = ANY if shape.kind == "set" else shape.element or ANY
            _put(result, element, {} if shape.kind == "set" else _stated_node(below, item, True))
    return result


def with_named_fields(shape: Shape, members: FieldSet) -> FieldSet:
    """Give a set with every named field that leads to a member made a member itself (upstream: EnsureNamedFields…)."""
    result: FieldSet = {}
    for element, node in members.items():
        if element == ".":
            result[element] = node
            continue
        below = with_named_fields(_below(shape, element), node) if node else node
        named = element.startswith("f:") and element[2:] in shape.fields
        result[element] = {".": {}, **below} if named and below and "." not in below else below
    return result
