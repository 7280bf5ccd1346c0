"""What of a template is a new revision, and what flows in place."""

from __future__ import annotations

from typing import Any

import pytest

from api import limits, names
from controllers.kernel.template import difference, rollout_part, template_hash, template_problem

BASE: dict[str, Any] = {
    "metadata": {"labels": {"pool": "a"}},
    "spec": {"providerConfig": {"value": {"size": "small"}}, "versions": {"kubelet": "1.34.0"}},
}


def with_spec(**spec: Any) -> dict[str, Any]:
    return {**BASE, "spec": {**BASE["spec"], **spec}}


SAME = {
    "labels of the Machines": {**BASE, "metadata": {"labels": {"pool": "a", "team": "b"}}},
    "annotations of the Machines": {**BASE, "metadata": {"annotations": {"a": "b"}}},
    "labels of the Nodes": with_spec(metadata={"labels": {"a": "b"}}),
    "taints": with_spec(taints=[{"key": "a", "effect": "NoSchedule"}]),
    "drain timeout": with_spec(nodeDrainTimeout="10m"),
    "readiness gates": with_spec(readinessGates=[{"conditionType": "A"}]),
    "empty optional fields": with_spec(roles=[], configSource=None, failureDomain=""),
    "an empty version": with_spec(versions={"kubelet": "1.34.0", "controlPlane": ""}),
    "a providerID, which belongs to no template": with_spec(providerID="x://1"),
}
OTHER = {
    "kubelet version": with_spec(versions={"kubelet": "1.35.0"}),
    "provider configuration": with_spec(providerConfig={"value": {"size": "big"}}),
    "failure domain": with_spec(failureDomain="zone-2"),
    "a field that nobody knows": with_spec(flavour="new"),
    "a requested restart": {**BASE, "metadata": {"annotations": {names.RESTARTED_AT_ANNOTATION: "2026-06-01"}}},
}


@pytest.mark.parametrize("template", SAME.values(), ids=SAME.keys())
def test_this_makes_no_new_revision(template: dict[str, Any]) -> None:
    assert template_hash(template) == template_hash(BASE)


@pytest.mark.parametrize("template", OTHER.values(), ids=OTHER.keys())
def test_this_makes_a_new_revision(template: dict[str, Any]) -> None:
    assert template_hash(template) != template_hash(BASE)


def test_the_generations_of_provider_config_are_one() -> None:
    later = {**BASE, "spec": {"providerSpec": BASE["spec"]["providerConfig"], "versions": {"kubelet": "1.34.0"}}}
    assert rollout_part(later) == rollout_part(BASE)


def test_collisions_change_the_hash_and_it_stays_short() -> None:
    hashes = [template_hash(BASE, collisions) for collisions in range(6)]
    assert len(set(hashes)) == 6
    assert all(len(found) <= limits.MAX_TEMPLATE_HASH_LENGTH for found in hashes)


def test_difference_adds_changes_and_removes() -> None:
    have = {"keep": 1, "drop": 2, "inner": {"a": 1, "b": 2}}
    want = {"keep": 1, "new": [1], "inner": {"a": 1, "c": 3}}
    assert difference(have, want) == {"drop": None, "new": [1], "inner": {"b": None, "c": 3}}
    assert difference(want, want) == {}


MISSHAPEN = {
    "no object": ("text", "spec.template"),
    "spec is a list": ({"spec": []}, ""),
    "spec is text": ({"spec": "x"}, "spec.template.spec"),
    "labels hold a number": ({"metadata": {"labels": {"a": 1}}}, "spec.template.metadata.labels"),
    "annotations are a list": ({"metadata": {"annotations": ["a"]}}, "spec.template.metadata.annotations"),
    "node labels are text": ({"spec": {"metadata": {"labels": "a"}}}, "spec.template.spec.metadata.labels"),
    "a taint without an effect": ({"spec": {"taints": [{"key": "a"}]}}, "spec.template.spec.taints"),
}


@pytest.mark.parametrize(("template", "field"), MISSHAPEN.values(), ids=MISSHAPEN.keys())
def test_a_misshapen_template_names_its_field(template: object, field: str) -> None:
    assert template_problem(template).startswith(field)
    assert template_problem(template)


def test_an_empty_bootstrap_is_a_revision_of_its_own_and_empty_fields_of_it_are_none() -> None:
    """``{}`` asks for bootstrap data; what an API server fills in as empty asks for nothing more."""
    plain: dict[str, Any] = {"spec": {"versions": {"kubelet": "1.34.0"}}}
    empty, filled, mirror = (
        {"spec": {**plain["spec"], "bootstrap": bootstrap}}
        for bootstrap in ({}, {"mirror": "", "endpoint": None}, {"mirror": "https://mirror.example"})
    )
    assert template_hash(empty) == template_hash(filled)
    assert len({template_hash(each) for each in (plain, empty, mirror)}) == 3
