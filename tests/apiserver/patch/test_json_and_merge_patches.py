"""JSON patch and JSON merge patch: outcomes as recorded from a kube-apiserver 1.36, and properties of both."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.apiserver import patch
from nodewright.apiserver.values import ApiError
from tests.examples import usually

FEW = usually(20)
BASE: dict[str, Any] = {"spec": {"size": 3, "tags": ["a", "b"], "labels": {"a": "b"}, "a/b": {"~": 1}}}
TAGS = "/spec/tags"

APPLIED = {
    "a test that holds changes nothing": ({"op": "test", "path": "/spec/size", "value": 3}, BASE["spec"]),
    "a test for null passes where nothing is": ({"op": "test", "path": "/spec/nope", "value": None}, BASE["spec"]),
    "add appends": ({"op": "add", "path": f"{TAGS}/-", "value": "c"}, {**BASE["spec"], "tags": ["a", "b", "c"]}),
    "add inserts": ({"op": "add", "path": f"{TAGS}/0", "value": "c"}, {**BASE["spec"], "tags": ["c", "a", "b"]}),
    "remove counts from the end": ({"op": "remove", "path": f"{TAGS}/-1"}, {**BASE["spec"], "tags": ["a"]}),
    "replace sets what is missing": ({"op": "replace", "path": "/spec/x", "value": 1}, {**BASE["spec"], "x": 1}),
    "add without a value adds null": ({"op": "add", "path": "/spec/x"}, {**BASE["spec"], "x": None}),
    "copy of nothing is null": ({"op": "copy", "from": "/spec/no", "path": "/spec/x"}, {**BASE["spec"], "x": None}),
    "copy": ({"op": "copy", "from": "/spec/size", "path": "/spec/x"}, {**BASE["spec"], "x": 3}),
    "slashes and tildes are escaped": (
        {"op": "replace", "path": "/spec/a~1b/~0", "value": 2},
        {**BASE["spec"], "a/b": {"~": 2}},
    ),
}

UNFIT = {
    "a test that fails": {"op": "test", "path": "/spec/size", "value": 4},
    "a test of a number against true": {"op": "test", "path": "/spec/a~1b/~0", "value": True},
    "a removal of nothing": {"op": "remove", "path": "/spec/nope"},
    "a path through nothing": {"op": "add", "path": "/nope/x", "value": 1},
    "a path through a number": {"op": "add", "path": "/spec/size/x", "value": 1},
    "an index out of range": {"op": "add", "path": f"{TAGS}/9", "value": "c"},
    "an index that is none": {"op": "add", "path": f"{TAGS}/x", "value": "c"},
    "a replaced item that is not there": {"op": "replace", "path": f"{TAGS}/5", "value": "c"},
    "a move of nothing": {"op": "move", "from": "/spec/nope", "path": "/spec/x"},
    "an unknown operation": {"op": "frob", "path": "/spec/x"},
    "no operation": {"path": "/spec/x"},
    "no path": {"op": "add", "value": 1},
    "the whole document": {"op": "add", "path": "", "value": {}},
}


@pytest.mark.parametrize(("operation", "spec"), APPLIED.values(), ids=APPLIED.keys())
def test_an_operation_is_applied(operation: Any, spec: Any) -> None:
    before = copy.deepcopy(BASE)
    assert patch.apply_json(BASE, [operation]) == {"spec": spec}
    assert before == BASE


@pytest.mark.parametrize("operation", UNFIT.values(), ids=UNFIT.keys())
def test_an_operation_that_does_not_fit_is_refused_and_nothing_changes(operation: Any) -> None:
    before = copy.deepcopy(BASE)
    with pytest.raises(ApiError) as caught:
        patch.apply_json(BASE, [{"op": "add", "path": "/spec/x", "value": 1}, operation])
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message == "the server rejected our request due to an error in our request"
    assert before == BASE


@pytest.mark.parametrize("operations", [{"op": "add"}, "x", 3, None, [1], [[]]])
def test_a_json_patch_that_is_no_list_of_operations_is_a_bad_request(operations: Any) -> None:
    with pytest.raises(ApiError) as caught:
        patch.apply_json(BASE, operations)
    assert caught.value.code == 400
    assert caught.value.message.startswith("error decoding patch: json: cannot unmarshal ")


def test_a_json_patch_has_a_bounded_length() -> None:
    with pytest.raises(ApiError) as caught:
        patch.apply_json(BASE, [{"op": "test", "path": "/spec/size", "value": 3}] * 10_001)
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ([1], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (None, "Invalid JSON Patch"),
    ],
)
def test_a_merge_patch_that_is_no_object_is_a_bad_request(change: Any, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        patch.apply_merge(BASE, change)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_a_merge_patch_that_changes_nothing_gives_the_object_itself() -> None:
    assert patch.apply_merge(BASE, {"spec": {"size": 3, "nope": None}, "status": None}) is BASE


json_values = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


def merge_diff(old: Any, new: Any) -> Any:
    """The merge patch from one object to another."""
    diff: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            below = merge_diff(before, value)
            if below:
                diff[key] = below
        elif not patch.operations.same_json(before, value) or key not in old:
            diff[key] = value
    return diff


@FEW
@given(objects, objects)
def test_the_merge_patch_from_one_object_to_another_leads_there(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    assert patch.operations.same_json(patch.apply_merge(old, merge_diff(old, new)), new)
    assert old == before


@FEW
@given(objects, objects)
def test_the_json_patch_from_one_object_to_another_leads_there(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    operations = jsonpatch.make_patch(old, new).patch
    assert patch.apply_json(old, operations) == new
    assert old == before


@FEW
@given(objects, objects)
def test_a_merge_patch_applied_twice_is_as_if_applied_once(old: Any, change: Any) -> None:
    once = patch.apply_merge(old, change)
    assert patch.apply_merge(once, change) is once
