"""The CRD of SSHHostPools refuses what no host could be reached by, and names the field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.api.crd_judge import crds, judge
from tests.api.samples import examples

GOOD = examples()["ssh.yaml SSHHostPool"]
HOST = GOOD["spec"]["hosts"][0]


def with_host(**changes: Any) -> dict[str, Any]:
    obj = copy.deepcopy(GOOD)
    obj["spec"]["hosts"] = [{name: value for name, value in {**HOST, **changes}.items() if value is not None}]
    return obj


def test_it_is_a_kind_of_the_provider_with_a_status_of_its_own() -> None:
    crd = crds()["SSHHostPool"]
    assert crd["metadata"]["name"] == "sshhostpools.ssh.nodewright.dev"
    assert crd["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Rack 1"}, "name"),
        ({"address": ""}, "address"),
        ({"address": "-oProxyCommand=x y"}, "address"),
        ({"port": 0}, "port"),
        ({"port": 65536}, "port"),
        ({"user": "root; reboot"}, "user"),
        ({"hostKeys": []}, "hostKeys"),
        ({"hostKeys": ["rubbish"]}, "hostKeys[0]"),
        ({"hostCAs": ["rubbish"]}, "hostCAs[0]"),
        ({"certificateName": "*.racks"}, "certificateName"),
        ({"labels": {"disk": "no label value!"}}, "labels.disk"),
        ({"zone": "z" * 64}, "zone"),
    ],
    ids=lambda case: "" if isinstance(case, dict) else str(case),
)
def test_a_host_that_can_not_be_is_refused_with_the_field(changes: dict[str, Any], field: str) -> None:
    assert judge(with_host(**changes)) == [f"spec.hosts[0].{field}"]


def test_two_hosts_of_one_name_are_refused() -> None:
    obj = copy.deepcopy(GOOD)
    obj["spec"]["hosts"] = [HOST, HOST]
    assert judge(obj) == ["spec.hosts[1]"]


def test_a_pool_needs_a_secret_and_a_host() -> None:
    assert judge({**GOOD, "spec": {"secretName": "key", "hosts": []}}) == ["spec.hosts"]
    assert judge({**GOOD, "spec": {"hosts": [HOST]}}) == ["spec.secretName"]


JUMP = {"address": "10.0.0.1", "user": "jump"}
CA = HOST["hostKeys"][0]


@pytest.mark.parametrize(
    "changes",
    [{"hostKeys": None}, {"proxyJump": JUMP}, {"proxyJumps": [{**JUMP, "hostKeys": [CA]}, JUMP]}],
    ids=["a host", "its jump", "one of its jumps"],
)
def test_each_machine_has_a_key_or_a_ca_of_its_own_or_of_the_pool(changes: dict[str, Any]) -> None:
    obj = with_host(**changes)
    assert judge(obj) == ["spec.hosts"]
    assert judge({**obj, "spec": {**obj["spec"], "hostCAs": [CA]}}) == []


def test_a_host_may_have_a_ca_of_its_own_in_place_of_keys() -> None:
    assert judge(with_host(hostKeys=None, hostCAs=[CA], certificateName="rack1.example.com")) == []
