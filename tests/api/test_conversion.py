"""Conversion between the generations of providerConfig: nothing but the one field moves, and it can be moved back."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.conversion import Field, convert
from api.providerconfig import ProviderConfigError, find
from tests.examples import usually

VALUE = {"cloudProvider": "hetzner", "cloudProviderSpec": {"token": {"secretKeyRef": {"name": "s", "key": "k"}}}}
BY_CLASS = {"machineClass": {"name": "small"}}
TEXT = "cloudProvider: hetzner\n"


def obj(kind: str, **spec: Any) -> dict[str, Any]:
    body = {"template": {"spec": spec}, "replicas": 2} if kind in ("MachineSet", "MachineDeployment") else spec
    top = spec if kind == "MachineClass" else {"spec": body}
    return {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": kind, "metadata": {"name": "x"}, **top}


CASES: dict[str, tuple[dict[str, Any], Field, dict[str, Any]]] = {
    "providerSpec becomes providerConfig": (
        obj("Machine", providerSpec={"value": VALUE}, versions={"kubelet": "1.30.5"}),
        "providerConfig",
        obj("Machine", providerConfig={"value": VALUE}, versions={"kubelet": "1.30.5"}),
    ),
    "and back": (
        obj("Machine", providerConfig={"value": VALUE}),
        "providerSpec",
        obj("Machine", providerSpec={"value": VALUE}),
    ),
    "in the template of a MachineDeployment": (
        obj("MachineDeployment", providerSpec={"value": VALUE}),
        "providerConfig",
        obj("MachineDeployment", providerConfig={"value": VALUE}),
    ),
    "a reference to a class moves as it is": (
        obj("MachineSet", providerSpec={"valueFrom": BY_CLASS}),
        "providerConfig",
        obj("MachineSet", providerConfig={"valueFrom": BY_CLASS}),
    ),
    "text becomes an object": (
        obj("Machine", providerConfig=TEXT),
        "providerConfig",
        obj("Machine", providerConfig={"value": {"cloudProvider": "hetzner"}}),
    ),
    "text becomes a providerSpec": (
        obj("Cluster", providerConfig=TEXT),
        "providerSpec",
        obj("Cluster", providerSpec={"value": {"cloudProvider": "hetzner"}}),
    ),
    "text under value becomes an object": (
        obj("Machine", providerConfig={"value": TEXT}),
        "providerConfig",
        obj("Machine", providerConfig={"value": {"cloudProvider": "hetzner"}}),
    ),
    "a class holds it without value": (
        obj("MachineClass", providerSpec=VALUE),
        "providerConfig",
        obj("MachineClass", providerConfig=VALUE),
    ),
    "the empty field of an older client gives way": (
        obj("Machine", providerConfig={}, providerSpec={"value": VALUE}),
        "providerConfig",
        obj("Machine", providerConfig={"value": VALUE}),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_field_moves_and_nothing_else(case: str) -> None:
    given_, to, wanted = CASES[case]
    before = copy.deepcopy(given_)
    assert convert(given_, to) == wanted
    assert given_ == before, "what was handed in is left alone"


@pytest.mark.parametrize("there", [obj("Machine", providerConfig={"value": VALUE}), obj("Machine"), {"kind": "Pod"}])
def test_what_needs_nothing_is_handed_back_itself(there: dict[str, Any]) -> None:
    assert convert(there, "providerConfig") is there


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (obj("Machine", providerConfig={"value": VALUE}, providerSpec={"value": VALUE}), "spec.providerSpec"),
        (obj("MachineSet", providerSpec="text"), "spec.template.spec.providerSpec"),
        (obj("Machine", providerConfig="a: ["), "spec.providerConfig"),
        (obj("MachineClass"), "providerSpec"),
    ],
)
def test_what_can_not_be_read_is_named_from_the_root(broken: dict[str, Any], field: str) -> None:
    with pytest.raises(ProviderConfigError) as fault:
        convert(broken, "providerConfig")
    assert fault.value.field == field


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
values = st.dictionaries(
    words,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | words,  # as YAML of others may have
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
        max_leaves=4,
    ),
    min_size=1,
    max_size=4,
)
configs = values.map(lambda value: {"value": value}) | st.just({"valueFrom": BY_CLASS})
kinds = st.sampled_from(["Machine", "MachineSet", "MachineDeployment", "Cluster"])


@usually(12)
@given(kinds, configs, values)
def test_there_and_back_is_where_it_was(kind: str, config: dict[str, Any], unknown: dict[str, Any]) -> None:
    start = obj(kind, providerConfig=config, **{f"x-{name}": value for name, value in unknown.items()})
    there = convert(start, "providerSpec")
    assert find(there)[0] is not None
    assert convert(there, "providerConfig") == start
    for form in (start, there):
        config_read, _ = find(form)
        assert config_read is not None
        assert config_read.value == config.get("value"), "whatever the field, the same is read"
