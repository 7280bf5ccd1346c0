"""The CRD of ControlPlanes refuses numbers that no quorum has, and a rollout that could never begin."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.api.crd_judge import crds, judge
from tests.api.samples import examples

GOOD = examples()["control-plane.yaml ControlPlane"]


def with_spec(**changes: Any) -> dict[str, Any]:
    obj = copy.deepcopy(GOOD)
    spec = {**obj["spec"], **changes}
    obj["spec"] = {name: value for name, value in spec.items() if value is not None}
    return obj


def test_it_can_be_scaled_and_has_a_status() -> None:
    version = crds()["ControlPlane"]["spec"]["versions"][0]
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    }
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"replicas": 0}, "spec.replicas"),
        ({"replicas": 2}, "spec.replicas"),
        ({"replicas": 4}, "spec.replicas"),
        ({"replicas": 7}, "spec.replicas"),
        ({"version": "latest"}, "spec.version"),
        ({"version": None}, "spec.version"),
        ({"clusterName": ""}, "spec.clusterName"),
        ({"clusterName": None}, "spec.clusterName"),
        ({"template": None}, "spec.template"),
        ({"replicas": 1, "rollout": {"maxSurge": 0}}, "spec.rollout.maxSurge"),
        ({"rollout": {"maxSurge": 2}}, "spec.rollout.maxSurge"),
        ({"rollout": {"inPlace": "Maybe"}}, "spec.rollout.inPlace"),
        ({"remediation": {"maxRetry": -1}}, "spec.remediation.maxRetry"),
    ],
    ids=str,
)
def test_what_can_not_be_is_refused_with_the_field(changes: dict[str, Any], field: str) -> None:
    assert judge(with_spec(**changes)) == [field]


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_odd_numbers_are_taken(replicas: int) -> None:
    assert judge(with_spec(replicas=replicas)) == []


def test_fixed_hosts_with_one_replica_are_taken_if_they_change_in_place() -> None:
    assert judge(with_spec(replicas=1, rollout={"maxSurge": 0, "inPlace": "Require"})) == []
