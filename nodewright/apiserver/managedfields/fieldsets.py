"""Sets of field paths, in the very form in which they stand on the wire (`fieldsV1`).

A set is a dict from path elements (`f:spec`, `k:{"type":"Ready"}`, `v:"a"`) to what lies below. Below, `{}` is a member
without children, and `"."` marks a member with children; a node without `"."` only leads to its children. Sets are
never changed in place; operations share what they can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

FieldSet = dict[str, Any]

_SELF: Final = "."


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the members of either."""
    if not right or left is right:
        return left
    if not left:
        return right
    result = dict(left)
    for element, node in right.items():
        before = result.get(element)
        result[element] = node if before is None else _union_nodes(before, node)
    return result


def _union_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right or left == right:
        return left
    if not left:
        return right if _SELF in right else {_SELF: {}, **right}
    if not right:
        return left if _SELF in left else {_SELF: {}, **left}
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the members of `left` that are no members of `right`. What lies below a member is on its own."""
    if not left or not right:
        return left
    result = left
    for element, gone in right.items():
        node = left.get(element)
        if node is None or element == _SELF:
            continue
        after = _subtract(node, gone)
        if after is node:
            continue
        if result is left:
            result = dict(left)
        if after is None:
            del result[element]
        else:
            result[element] = after
    return result


def _subtract(node: FieldSet, gone: FieldSet) -> FieldSet | None:
    removes_self = not gone or _SELF in gone
    if not node:
        return None if removes_self else node
    after = difference(node, gone)
    if removes_self and _SELF in after:
        after = {element: child for element, child in after.items() if element != _SELF}
    if after is node:
        return node
    if not after:
        return None
    return {} if len(after) == 1 and _SELF in after else after


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Give the members of both."""
    result: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None or element == _SELF:
            continue
        both = _intersect_nodes(node, other)
        if both is not None:
            result[element] = both
    return result


def _intersect_nodes(left: FieldSet, right: FieldSet) -> FieldSet | None:
    member = is_member(left) and is_member(right)
    below = intersection(left, right)
    if not below:
        return {} if member else None
    return {_SELF: {}, **below} if member else below


def is_member(node: FieldSet) -> bool:
    """Tell whether the path that leads to this node is in the set itself."""
    return not node or _SELF in node


def children(node: FieldSet) -> Iterator[tuple[str, FieldSet]]:
    """Give the path elements below a node."""
    return ((element, child) for element, child in node.items() if element != _SELF)


def has(members: FieldSet, path: tuple[str, ...]) -> bool:
    """Tell whether a path is in the set."""
    node: FieldSet | None = members
    for element in path:
        if node is None:
            return False
        node = node.get(element)
    return node is not None and is_member(node)


def paths(members: FieldSet, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give all member paths: at each level first the members, then what lies below, both in order."""
    below = sorted(children(members), key=lambda item: _rank(item[0]))
    for element, node in below:
        if is_member(node):
            yield (*above, element)
    for element, node in below:
        yield from paths(node, (*above, element))


def _rank(element: str) -> tuple[int, str]:
    return "fkvi".find(element[:1]), element
