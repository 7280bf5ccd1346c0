"""The CRD of ProvisioningRequests: upstream's names and fields, its limits, and a spec that does not change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.api.crd_judge import crds, judge
from tests.api.samples import examples

GOOD = examples()["provisioning-request.yaml ProvisioningRequest"]
SET = {"podTemplateRef": {"name": "worker"}, "count": 1}


def spec(**changes: Any) -> dict[str, Any]:
    obj = copy.deepcopy(GOOD)
    obj["spec"] |= changes
    return obj


def test_names_and_versions_are_upstreams() -> None:
    crd = crds()["ProvisioningRequest"]
    assert crd["metadata"] == {"name": "provisioningrequests.autoscaling.x-k8s.io"}
    assert crd["spec"]["names"]["shortNames"] == ["provreq", "provreqs"]
    served = {version["name"]: version for version in crd["spec"]["versions"]}
    assert list(served) == ["v1", "v1beta1"]
    assert [name for name, version in served.items() if version["storage"]] == ["v1"]
    assert served["v1beta1"]["deprecated"]
    assert served["v1"]["schema"] == served["v1beta1"]["schema"]
    assert all(version["served"] and version["subresources"] == {"status": {}} for version in served.values())


@pytest.mark.parametrize(
    ("changes", "want"),
    {
        "no set": ({"podSets": []}, ["spec.podSets"]),
        "too many sets": ({"podSets": [SET] * 33}, ["spec.podSets"]),
        "no pod": ({"podSets": [{**SET, "count": 0}]}, ["spec.podSets[0].count"]),
        "too many pods": ({"podSets": [{**SET, "count": 16385}]}, ["spec.podSets[0].count"]),
        "a name that is none": ({"podSets": [{**SET, "podTemplateRef": {"name": "A_b"}}]}, None),
        "a class that is no name": ({"provisioningClassName": "Check!"}, ["spec.provisioningClassName"]),
        "a long parameter": ({"parameters": {"a": "x" * 256}}, ["spec.parameters.a"]),
        "many parameters": ({"parameters": {f"p{n}": "" for n in range(101)}}, ["spec.parameters"]),
    }.values(),
    ids=lambda case: "",
)
def test_what_is_too_much_or_malformed_is_refused_with_the_field(
    changes: dict[str, Any], want: list[str] | None
) -> None:
    refused = judge(spec(**changes))
    assert refused if want is None else refused == want


def test_most_is_allowed() -> None:
    assert judge(spec(podSets=[{**SET, "count": 16384}] * 32)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"podSets": [SET]},
        {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"},
        {"parameters": {"ValidUntilSeconds": "1"}},
    ],
    ids=["podSets", "provisioningClassName", "parameters"],
)
def test_nothing_of_the_spec_changes(changes: dict[str, Any]) -> None:
    assert judge(spec(**changes), GOOD) != []


def test_nor_do_parameters_come_or_go_later() -> None:
    """Upstream's rule sees only parameters that are there before and after."""
    without = copy.deepcopy(GOOD)
    del without["spec"]["parameters"]
    assert judge(GOOD, without) != []
    assert judge(without, GOOD) != []
    assert judge(GOOD, GOOD) == []
