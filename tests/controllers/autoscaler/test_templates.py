"""What a Node of a group looks like before there is one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.autoscaler.templates import capacity_of, from_node, from_nothing, shape_of
from controllers.kernel.refs import CLUSTER, Key
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.shapes import HOSTNAME, NodeInfo, Taint
from providers.base import contract
from providers.base.contract import Shape
from tests.builders.view import FakeView

P = names.CAPACITY_PREFIX
SIZE = {f"{P}cpu": "2", f"{P}memory": "4Gi"}
SHAPE = Shape({"cpu": "8", "memory": "16Gi"}, {"zone": "a"}, (contract.Taint("spot", "NoSchedule", "yes"),))


def test_annotations_say_all() -> None:
    more = {
        f"{P}ephemeral-disk": "10Gi",
        f"{P}gpu-type": "example.com/gpu",
        f"{P}gpu-count": "2",
        f"{P}maxPods": "30",
        f"{P}labels": "disk=ssd, empty=",
        f"{P}taints": "dedicated=gpu:NoSchedule,soft:PreferNoSchedule",
    }
    node = from_nothing({"metadata": {"annotations": {**SIZE, **more}}}, "g")
    assert dict(node.allocatable) == {
        "cpu": 2000,
        "memory": 4 * 1024**3,
        "ephemeral-storage": 10 * 1024**3,
        "example.com/gpu": 2,
        "pods": 30,
    }
    assert node.hypothetical
    assert {"disk": "ssd", "empty": "", "kubernetes.io/os": "linux"}.items() <= node.labels.items()
    assert node.taints == (Taint("dedicated", "gpu", "NoSchedule"), Taint("soft", "", "PreferNoSchedule"))


def test_the_provider_says_what_annotations_do_not_and_the_machine_template_adds_its_own() -> None:
    taints = [{"key": "own", "effect": "NoExecute"}]
    spec = {"template": {"spec": {"metadata": {"labels": {"team": "x"}}, "taints": taints}}}
    node = from_nothing({"metadata": {"annotations": {f"{P}cpu": "4"}}, "spec": spec}, "g", shape=SHAPE)
    assert (node.amount("cpu"), node.amount("memory"), node.amount("pods")) == (4000, 16 * 1024**3, 110)
    assert (node.labels["zone"], node.labels["team"]) == ("a", "x")
    assert node.taints == (Taint("spot", "yes", "NoSchedule"), Taint("own", "", "NoExecute"))


BAD: dict[str, tuple[dict[str, str], str]] = {
    "nothing known": ({}, f"{P}cpu"),
    "memory missing": ({f"{P}cpu": "1"}, f"{P}memory"),
    "no quantity": ({**SIZE, f"{P}cpu": "two"}, f"{P}cpu"),
    "gpus of no type": ({**SIZE, f"{P}gpu-count": "1"}, f"{P}gpu-type"),
    "gpus in words": ({**SIZE, f"{P}gpu-type": "g", f"{P}gpu-count": "one"}, f"{P}gpu-count"),
    "half a label": ({**SIZE, f"{P}labels": "a=b,c"}, f"{P}labels"),
    "no such effect": ({**SIZE, f"{P}taints": "a=b:Never"}, f"{P}taints"),
    "a taint without effect": ({**SIZE, f"{P}taints": "a=b"}, f"{P}taints"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_can_not_be_read_is_named(name: str) -> None:
    annotations, field = BAD[name]
    with pytest.raises(ShapeError, match=re.escape(f"metadata.annotations[{field}]")):
        from_nothing({"metadata": {"annotations": annotations}}, "g")


def test_a_new_node_is_like_the_real_one_but_for_its_troubles() -> None:
    spot, cordon = Taint("spot", "", "NoSchedule"), Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    real = NodeInfo("n-1", {HOSTNAME: "n-1", "zone": "a"}, (("cpu", 1000),), (spot, cordon), unschedulable=True)
    new = from_node(real, "g")
    assert (new.taints, new.unschedulable, new.hypothetical) == ((spot,), False, True)
    assert new.labels["zone"] == "a"
    assert new.labels[HOSTNAME] != "n-1", "nobody can ask for it by name"


K = names.KUBELET_CONFIG_PREFIX
RESERVED = {f"{K}KubeReserved": "cpu=200m, memory=1Gi", f"{K}SystemReserved": "memory=512Mi,pid=1000"}


def test_what_kubelets_keep_for_themselves_is_not_for_pods() -> None:
    settings = {**RESERVED, f"{K}EvictionHard": "memory.available<512Mi,nodefs.available<10%,imagefs.available<15%"}
    body = {"metadata": {"annotations": {**settings, f"{P}ephemeral-disk": "100Gi"}}}
    node = from_nothing(body, "g", shape=SHAPE)
    assert dict(node.allocatable) == {
        "cpu": 7800,
        "memory": 14 * 1024**3,
        "ephemeral-storage": 90 * 1024**3,
        "pods": 110,
    }
    assert dict(capacity_of(body, SHAPE)) == {
        "cpu": 8000,
        "memory": 16 * 1024**3,
        "ephemeral-storage": 100 * 1024**3,
        "pods": 110,
    }


def test_the_template_says_it_more_exactly_than_its_group_and_capacity_annotations_go_first() -> None:
    template = {"metadata": {"annotations": {f"{K}KubeReserved": "cpu=1", f"{K}MaxPods": "30"}}}
    body = {"metadata": {"annotations": {**SIZE, f"{K}KubeReserved": "cpu=500m"}}, "spec": {"template": template}}
    node = from_nothing(body, "g", shape=SHAPE)
    assert (node.amount("cpu"), node.amount("pods")) == (1000, 30)
    body["metadata"]["annotations"][f"{P}maxPods"] = "20"
    assert from_nothing(body, "g").amount("pods") == 20


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("KubeReserved", "cpu", "'cpu' is not like name=quantity"),
        ("KubeReserved", "cpu=two", "two"),
        ("SystemReserved", "memory=4Gi", "nothing is left of memory for pods"),
        ("EvictionHard", "memory.available=1Gi", "is not like name<quantity"),
        ("EvictionHard", "memory.available<much", "much"),
        ("MaxPods", "many", "many"),
    ],
)
def test_reservations_that_can_not_be_meant_are_named(key: str, text: str, why: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(why)) as raised:
        from_nothing({"metadata": {"annotations": {**SIZE, f"{K}{key}": text}}}, "g")
    assert raised.value.field.startswith(f"metadata.annotations[{K}{key}]")


ZONE = "topology.kubernetes.io/zone"
CONFIG = {"apiVersion": "x/v1", "kind": "Config"}
SPREAD = Shape({"cpu": "8", "memory": "16Gi"}, {ZONE: "of-the-config", "disk": "ssd"}, failure_domain_label=ZONE)
PINNED = {"template": {"spec": {"failureDomain": "west", "providerConfig": {"value": CONFIG}}}}
LOOSE = {"template": {"spec": {"providerConfig": {"value": CONFIG}}}}

WHERE: dict[str, tuple[dict[str, Any], list[str] | None, str | None]] = {
    "the template names one": (PINNED, None, "west"),
    "the template's one counts before the Cluster's": (PINNED, ["east", "north"], "west"),
    "the group names one": ({**LOOSE, "failureDomains": ["west"]}, ["east", "north"], "west"),
    "the Cluster names one": (LOOSE, ["west"], "west"),
    "the group names several": ({**LOOSE, "failureDomains": ["west", "east"]}, None, None),
    "the Cluster names several": (LOOSE, ["west", "east"], None),
    "the group does not want to be spread": ({**LOOSE, "failureDomains": []}, ["west"], "of-the-config"),
    "nobody names any": (LOOSE, None, "of-the-config"),
    "what is named can't be read": ({**LOOSE, "failureDomains": "west"}, None, "of-the-config"),
    "the template's one can't be read": (
        {"template": {"spec": {**LOOSE["template"]["spec"], "failureDomain": 5}}},
        None,
        "of-the-config",
    ),
}


@pytest.mark.parametrize("name", WHERE)
def test_the_zone_of_a_group_without_nodes_is_that_of_its_only_failure_domain(name: str) -> None:
    """A wrong zone is worse than none: where Machines go to several, nothing is promised for all of them."""
    spec, of_cluster, wanted = WHERE[name]
    found = shape_of(_group(spec), _view(SPREAD, of_cluster))
    assert found == replace(SPREAD, labels={"disk": "ssd", **({ZONE: wanted} if wanted else {})})


def test_a_provider_whose_configuration_fixes_the_zone_is_believed() -> None:
    fixed = replace(SPREAD, failure_domain_label="")
    assert shape_of(_group(PINNED), _view(fixed, None)) == fixed


def test_an_annotation_counts_before_the_failure_domain() -> None:
    body = _group(PINNED)
    shape = shape_of(body, _view(SPREAD, None))
    assert isinstance(shape, Shape)
    assert from_nothing(body, "g", shape=shape).labels[ZONE] == "west"
    body["metadata"]["annotations"] = {f"{P}labels": f"{ZONE}=said"}
    assert from_nothing(body, "g", shape=shape).labels[ZONE] == "said"


def _group(spec: dict[str, Any]) -> dict[str, Any]:
    labels = {names.CLUSTER_NAME_LABEL: "prod"}
    return {"metadata": {"namespace": "ns", "name": "g", "uid": "u", "labels": labels}, "spec": spec}


def _view(shape: Shape, of_cluster: list[str] | None) -> FakeView:
    meta = {"namespace": "ns", "name": "prod", "uid": "c"}
    spec = {} if of_cluster is None else {"failureDomains": of_cluster}
    return FakeView().show(CLUSTER, {Key("ns", "prod"): {"metadata": meta, "spec": spec}}).shaped(CONFIG, shape)
