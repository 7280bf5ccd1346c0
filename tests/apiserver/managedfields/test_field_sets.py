"""Sets of fields behave as sets of paths, in whatever form the tree has."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodewright.apiserver.managedfields import fieldsets
from tests.examples import usually

FEW = usually(20)
ELEMENTS = ("f:a", "f:b", 'k:{"n":1}', 'v:"x"')
path_sets = st.sets(st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=4).map(tuple), max_size=8)


def tree(paths: set[tuple[str, ...]]) -> dict[str, Any]:
    """The wire form of a set of paths."""
    grown: dict[str, Any] = {}
    for path in sorted(paths):
        node = grown
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return {element: tidy(node) for element, node in grown.items()}


def tidy(node: dict[str, Any]) -> dict[str, Any]:
    if node.keys() == {"."}:
        return {}
    return {element: {} if element == "." else tidy(child) for element, child in node.items()}


def as_paths(members: dict[str, Any]) -> set[tuple[str, ...]]:
    return set(fieldsets.paths(members))


@FEW
@given(path_sets)
def test_a_set_has_the_paths_that_were_put_in(paths: set[tuple[str, ...]]) -> None:
    assert as_paths(tree(paths)) == paths
    assert all(fieldsets.has(tree(paths), path) for path in paths)
    assert not fieldsets.has(tree(paths), ("f:c",))


@FEW
@given(path_sets, path_sets)
def test_union_difference_and_intersection_are_those_of_paths(left: Any, right: Any) -> None:
    a, b = tree(left), tree(right)
    before = copy.deepcopy((a, b))
    assert fieldsets.union(a, b) == tree(left | right)
    assert fieldsets.difference(a, b) == tree(left - right)
    assert fieldsets.intersection(a, b) == tree(left & right)
    assert (a, b) == before


def test_paths_are_listed_level_by_level_with_named_fields_first() -> None:
    members = {"f:z": {}, "f:a": {"f:y": {}}, 'k:{"n":1}': {".": {}, "f:n": {}}}
    assert list(fieldsets.paths(members)) == [
        ("f:z",),
        ('k:{"n":1}',),
        ("f:a", "f:y"),
        ('k:{"n":1}', "f:n"),
    ]
