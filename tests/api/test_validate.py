"""``validate`` answers for any object at all; the table of faults is in ``test_refusals``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kinds import KINDS
from api.machine import MachineSpec
from api.machinerules import MACHINE_SPEC_FIELDS
from api.validate import FieldError, validate
from tests.api.samples import changed
from tests.examples import usually


def test_objects_of_other_groups_are_not_our_business() -> None:
    assert validate({"apiVersion": "v1", "kind": "Pod"}) == []
    assert validate({}) == []


def test_an_unknown_version_or_kind_is_named() -> None:
    errors = validate({"apiVersion": "cluster.k8s.io/v9", "kind": "Mashine", "metadata": {"name": "x"}})
    assert [error.path for error in errors] == ["apiVersion", "kind"]


@pytest.mark.parametrize("odd", [{}, {"a": 1}, [], ["Machine"], 1, None, True])
def test_a_kind_or_a_type_that_is_no_text_is_a_fault(odd: Any) -> None:
    errors = validate({"apiVersion": "cluster.k8s.io/v1alpha1", "kind": odd, "metadata": {"name": "x"}})
    assert [error.path for error in errors] == ["kind"]
    check = changed("check", {"spec.unhealthyMachineConditions": [{"type": odd, "status": "False", "timeout": "5m"}]})
    assert isinstance(validate(check), list)


def test_all_faults_are_found_at_once() -> None:
    obj = changed(
        "deployment",
        {
            "spec.replicas": -1,
            "spec.selector": {},
            "spec.strategy": {"rollingUpdate": {"maxSurge": 0}},
            "metadata.name": "B",
        },
    )
    paths = {error.path for error in validate(obj)}
    assert {"metadata.name", "spec.replicas", "spec.selector", "spec.strategy.rollingUpdate.maxUnavailable"} <= paths


def test_a_misspelt_field_says_what_is_meant() -> None:
    [error] = validate(changed("machine", {"spec.taint": []}))
    assert str(error) == "spec.taint: is unknown; taints is meant?"


def test_the_fields_known_to_the_rules_are_those_of_the_type() -> None:
    assert {field.alias for field in MachineSpec.model_fields.values()} == MACHINE_SPEC_FIELDS


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_PATHS = [
    "metadata", "metadata.name", "metadata.labels", "metadata.annotations", "spec", "spec.replicas", "spec.selector",
    "spec.selector.matchLabels", "spec.selector.matchExpressions", "spec.template", "spec.template.metadata",
    "spec.template.spec", "spec.template.spec.taints", "spec.strategy", "spec.strategy.rollingUpdate",
    "spec.strategy.rollingUpdate.partition", "spec.strategy.disruptionBudgets",
    "spec.strategy.rollingUpdate.maxSurge", "spec.strategy.rollingUpdate.maxUnavailable", "spec.minReadySeconds",
    "spec.progressDeadlineSeconds", "spec.versions", "spec.taints", "spec.providerConfig", "spec.providerSpec",
    "spec.clusterName", "spec.clusterNetwork", "spec.unhealthyConditions", "spec.unhealthyRange", "providerSpec",
]  # fmt: skip


@usually(50)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from(_PATHS), _JUNK)
def test_junk_anywhere_is_answered_not_raised(kind: str, path: str, junk: Any) -> None:
    base = {"Cluster": "cluster", "Machine": "machine", "MachineSet": "set", "MachineDeployment": "deployment"}
    obj = changed(base.get(kind, "class" if kind == "MachineClass" else "check"), {path: junk})
    assert all(isinstance(error, FieldError) and error.path and error.message for error in validate(obj))


@pytest.mark.parametrize("size", [10_000])
def test_a_huge_field_name_is_no_trouble(size: int) -> None:
    assert validate(changed("machine", {"spec." + "x" * size: 1})) == []
