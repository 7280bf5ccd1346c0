"""What holds of field ownership whatever is written: idempotence, taking back, and nobody's fields."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.apiserver import managedfields, patch
from nodewright.apiserver.managedfields import fieldsets
from nodewright.apiserver.values import ApiError, Obj, Resource
from tests.examples import usually

CRD = json.loads((Path(__file__).parent.parent / "validation/golden/widgets.crd.json").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
WIDGETS = Resource(
    "example.com",
    "v1",
    "Widget",
    "widgets",
    "widget",
    "WidgetList",
    True,
    subresources=frozenset({"status"}),
    schema=SCHEMA,
    builtin=False,
)
NODES = Resource("", "v1", "Node", "nodes", "node", "NodeList", False, subresources=frozenset({"status"}))
SCHEMALESS = replace(WIDGETS, schema=None)


FEW = usually(12)


@dataclass(frozen=True)
class Author:
    manager: str
    operation: str = "Apply"
    subresource: str = ""
    now: str = "2026-11-20T20:00:00Z"


names = st.sampled_from(["a", "b", "c"])
ports = st.lists(
    st.fixed_dictionaries({"port": st.integers(1, 4)}, optional={"name": names, "protocol": st.just("UDP")}),
    unique_by=lambda p: (p["port"], p.get("protocol", "TCP")),
    max_size=4,
)
raw = st.recursive(names, lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3), max_leaves=6)
specs = st.fixed_dictionaries(
    {"size": st.integers(0, 9)},
    optional={
        "tags": st.lists(names, unique=True, min_size=1, max_size=3),
        "atomics": st.lists(names, min_size=1, max_size=3),
        "atomicMap": st.fixed_dictionaries({}, optional={"a": names, "b": names}),
        "labels": st.dictionaries(names, names, min_size=1),
        "ports": ports.filter(bool),
        "raw": st.dictionaries(names, raw, min_size=1, max_size=3),
        "mode": names,
    },
)


def widget(spec: Any, **metadata: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", **metadata}, "spec": spec}


def owned(obj: Obj, manager: str) -> set[tuple[str, ...]]:
    entries = [e for e in obj["metadata"].get("managedFields", []) if e["manager"] == manager]
    return {path for entry in entries for path in fieldsets.paths(entry["fieldsV1"])}


def spec_of(obj: Obj) -> Any:
    """The spec with the lists that have no order of their own put in one."""
    spec = dict(obj.get("spec") or {})
    for field in ("tags", "ports"):
        if field in spec:
            spec[field] = sorted(spec[field], key=lambda item: json.dumps(item, sort_keys=True))
    return spec


@FEW
@given(specs)
def test_applying_twice_changes_nothing(spec: Any) -> None:
    once = managedfields.apply(WIDGETS, None, widget(spec), Author("alice"), False)
    again = managedfields.apply(WIDGETS, once, widget(spec), Author("alice", now="2026-11-20T21:00:00Z"), False)
    assert again == once


@FEW
@given(specs, specs)
def test_the_only_applier_gets_exactly_what_it_applied_last(first: Any, second: Any) -> None:
    live = managedfields.apply(WIDGETS, None, widget(first), Author("alice"), False)
    before = copy.deepcopy(live)
    live_after = managedfields.apply(WIDGETS, live, widget(second), Author("alice"), False)
    assert spec_of(live_after) == spec_of(widget(second))
    assert live == before


@FEW
@given(specs, specs, specs)
def test_a_forced_apply_has_its_way_and_leaves_the_rest_to_the_other(first: Any, second: Any, third: Any) -> None:
    live = managedfields.apply(WIDGETS, None, widget(first), Author("alice"), False)
    live = managedfields.apply(WIDGETS, live, widget(second), Author("bob"), True)
    merged = managedfields.apply(WIDGETS, live, widget(second), Author("bob"), False)
    assert merged == live
    live = managedfields.apply(WIDGETS, live, widget(third), Author("carol"), True)
    assert live["spec"]["size"] == third["size"]
    assert ("f:spec", "f:size") in owned(live, "carol")


@FEW
@given(specs)
def test_every_leaf_of_a_new_object_belongs_to_its_creator(spec: Any) -> None:
    live = managedfields.track(WIDGETS, None, widget(spec, labels={"x": "y"}), Author("ctl", "Update"))
    mine = owned(live, "ctl")
    assert {("f:metadata", "f:labels", "f:x"), ("f:spec",), *((("f:spec", f"f:{key}")) for key in spec)} <= mine


@FEW
@given(specs, specs)
def test_what_an_update_changed_belongs_to_the_updater_alone(first: Any, second: Any) -> None:
    live = managedfields.track(WIDGETS, None, widget(first, uid="1"), Author("a", "Update"))
    new = {**live, "spec": second}
    after = managedfields.track(WIDGETS, live, new, Author("b", "Update"))
    assert not owned(after, "a") & owned(after, "b")
    whole = managedfields.track(WIDGETS, None, widget(second), Author("x", "Update"))
    assert owned(after, "a") | owned(after, "b") == owned(whole, "x")


@FEW
@given(specs)
def test_an_update_that_changes_nothing_leaves_the_entries_alone(spec: Any) -> None:
    live = managedfields.track(WIDGETS, None, widget(spec, uid="1"), Author("a", "Update"))
    same = copy.deepcopy(live)
    assert managedfields.track(WIDGETS, live, same, Author("b", "Update", now="2027-01-01T00:00:00Z")) is same


@FEW
@given(specs, specs)
def test_taking_back_everything_leaves_nothing_of_an_applier(first: Any, second: Any) -> None:
    live = managedfields.apply(WIDGETS, None, widget(first), Author("alice"), False)
    live = managedfields.apply(WIDGETS, live, widget(second), Author("bob"), True)
    bare = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    live = managedfields.apply(WIDGETS, live, bare, Author("bob"), False)
    assert not owned(live, "bob")
    left = managedfields.apply(WIDGETS, live, bare, Author("alice"), False)
    assert "spec" not in left
    assert "managedFields" not in left["metadata"]


def test_a_kind_without_a_schema_owns_maps_by_entry_and_lists_whole() -> None:
    live = managedfields.apply(SCHEMALESS, None, widget({"a": {"b": 1}, "l": [1]}), Author("alice"), False)
    assert owned(live, "alice") >= {("f:spec", "f:a", "f:b"), ("f:spec", "f:l")}
    with pytest.raises(ApiError) as caught:
        managedfields.apply(SCHEMALESS, live, widget({"l": [2]}), Author("bob"), False)
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "alice": .spec.l'


def test_conditions_of_a_node_are_owned_by_type() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "1"}}
    ready = {"type": "Ready", "status": "True"}
    live = managedfields.track(NODES, None, node, Author("kubelet", "Update"))
    live = patch.apply_merge({**live, "metadata": {**live["metadata"], "labels": {"a": "b"}}}, {})
    live = managedfields.track(NODES, node, {**live, "status": {"conditions": [ready]}}, Author("x", "Update"))
    assert live["metadata"].get("managedFields") is None
    fresh = managedfields.track(NODES, None, {**node, "spec": {"podCIDR": "10.0.0.0/8"}}, Author("a", "Update"))
    after = {**fresh, "status": {"conditions": [ready]}}
    after = managedfields.track(NODES, fresh, after, Author("kubelet", "Update", "status"))
    assert ("f:status", "f:conditions", 'k:{"type":"Ready"}', "f:status") in owned(after, "kubelet")


def test_entries_that_a_client_wrote_are_kept_and_one_empty_entry_clears_them() -> None:
    live = managedfields.track(WIDGETS, None, widget({"size": 1}, uid="1"), Author("a", "Update"))
    renamed = copy.deepcopy(live)
    renamed["metadata"]["managedFields"][0]["manager"] = "kubectl"
    assert owned(managedfields.track(WIDGETS, live, renamed, Author("b", "Update")), "kubectl")
    cleared = copy.deepcopy(live)
    cleared["metadata"]["managedFields"] = [{}]
    after = managedfields.track(WIDGETS, live, cleared, Author("b", "Update"))
    assert "managedFields" not in after["metadata"]


@pytest.mark.parametrize("entries", [[{"operation": "Nope"}], "x", [3], [{"manager": "m", "operation": "Update"}]])
def test_unreadable_entries_of_a_client_are_ignored(entries: Any) -> None:
    live = managedfields.track(WIDGETS, None, widget({"size": 1}, uid="1"), Author("a", "Update"))
    changed = copy.deepcopy(live)
    changed["metadata"]["managedFields"] = entries
    after = managedfields.track(WIDGETS, live, changed, Author("b", "Update"))
    assert after["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_an_apply_must_name_the_version_that_is_served() -> None:
    body = {**widget({"size": 1}), "apiVersion": "example.com/v2"}
    with pytest.raises(ApiError) as caught:
        managedfields.apply(WIDGETS, None, body, Author("alice"), False)
    assert caught.value.code == 400
    assert "Specified patch version: example.com/v2, expected: example.com/v1" in caught.value.message
