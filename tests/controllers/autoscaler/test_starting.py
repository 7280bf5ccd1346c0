"""Nodes that have joined and can't take their pods yet: startup taints, and devices that are not offered yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler.explaining import explain_group, explain_node
from controllers.autoscaler.health import count, resting, upcoming
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, ShrinkOptions
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import MACHINE_DEPLOYMENT, ref_of
from tests.controllers.autoscaler.fleet import READY, Fleet
from tests.controllers.autoscaler.test_explaining import told
from tests.controllers.autoscaler.town import observed_of

WEB, GPU = "MachineDeployment/ns/web", "nvidia.com/gpu"
STARTUP = "startup-taint.cluster-autoscaler.kubernetes.io/warming-up"
USUAL = (
    STARTUP,
    "ignore-taint.cluster-autoscaler.kubernetes.io/warming-up",
    "node.cilium.io/agent-not-ready",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/not-ready",
    "ebs.csi.aws.com/agent-not-ready",
)
WHOLE = "3"
"""Cores: one such pod on each Node of four."""


def fleet_of(nodes: int, **growth: Any) -> Fleet:
    """A group with so many Nodes that have just joined."""
    fleet = Fleet(AutoscalerOptions(GrowthOptions(**growth), ShrinkOptions(delay_after_add=timedelta(0))))
    fleet.group("web")["spec"]["replicas"] = nodes
    for _ in range(nodes):
        fleet.join(fleet.machine("web"))
    for node in fleet.nodes.values():
        node["status"]["conditions"] = [{**READY, "lastTransitionTime": format_time(fleet.now)}]
    return fleet


def tainted(fleet: Fleet, key: str, effect: str = "NoSchedule") -> None:
    for node in fleet.nodes.values():
        node["spec"]["taints"] = [{"key": key, "effect": effect}]


def gpu_fleet(nodes: int) -> Fleet:
    """Its annotations promise two GPUs on each Node; no device plugin has spoken yet."""
    fleet = fleet_of(nodes)
    annotations = fleet.deployments["web"]["metadata"]["annotations"]
    annotations |= {names.CAPACITY_GPU_TYPE_ANNOTATION: GPU, names.CAPACITY_GPU_COUNT_ANNOTATION: "2"}
    return fleet


def gpu_pod(fleet: Fleet, name: str, gpus: int = 1) -> None:
    fleet.pod(name)["spec"]["containers"][0]["resources"]["requests"][GPU] = str(gpus)


@pytest.mark.parametrize("key", USUAL)
def test_pods_that_wait_grow_a_group_whose_only_node_still_starts(key: str) -> None:
    """One of three pods will run on the Node that starts."""
    fleet = fleet_of(1)
    tainted(fleet, key)
    for index in range(3):
        fleet.pod(f"p-{index}", WHOLE)
    assert fleet.decide().scale_up.added == {WEB: 2}


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_pods_that_a_starting_node_will_take_need_no_other(effect: str) -> None:
    fleet = fleet_of(1)
    tainted(fleet, STARTUP, effect)
    fleet.pod("p", WHOLE)
    decision = fleet.decide()
    assert (decision.scale_up.added, decision.scale_up.left) == ({}, ())


def test_a_taint_of_another_kind_is_the_next_nodes_too() -> None:
    fleet = fleet_of(1)
    tainted(fleet, "team")
    fleet.pod("p", WHOLE)
    assert fleet.decide().scale_up.added == {}


@pytest.mark.parametrize(("option", "added"), [("example.com/warming", 2), ("example.com/", 2), ("example.com/war", 0)])
def test_an_option_names_further_startup_taints(option: str, added: int) -> None:
    fleet = fleet_of(1, startup_taints=(option,))
    tainted(fleet, "example.com/warming")
    for index in range(3):
        fleet.pod(f"p-{index}", WHOLE)
    assert fleet.decide().scale_up.added.get(WEB, 0) == added


def test_an_empty_group_whose_machines_begin_with_a_startup_taint_grows() -> None:
    fleet = fleet_of(0)
    group = fleet.deployments["web"]
    group["spec"]["template"]["spec"]["taints"] = [{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}]
    group["metadata"]["annotations"][names.CAPACITY_TAINTS_ANNOTATION] = f"{STARTUP}=x:NoSchedule"
    fleet.pod("p", WHOLE)
    assert fleet.decide().scale_up.added == {WEB: 1}


def test_what_runs_on_a_starting_node_already_takes_its_room() -> None:
    fleet = fleet_of(1)
    tainted(fleet, STARTUP)
    (name,) = fleet.nodes
    fleet.pod("early", WHOLE, node=name)
    fleet.pod("p", WHOLE)
    assert fleet.decide().scale_up.added == {WEB: 1}


def test_gpus_that_are_promised_are_waited_for() -> None:
    """Five pods of one GPU, two on each Node: one Node is there, two more are needed."""
    fleet = gpu_fleet(1)
    for index in range(2):
        gpu_pod(fleet, f"p-{index}")
    assert fleet.decide().scale_up.added == {}
    for index in range(2, 5):
        gpu_pod(fleet, f"p-{index}")
    assert fleet.decide().scale_up.added == {WEB: 2}


def test_a_node_that_offers_some_of_its_gpus_is_taken_as_it_is() -> None:
    fleet = gpu_fleet(1)
    (node,) = fleet.nodes.values()
    node["status"]["allocatable"][GPU] = "1"
    gpu_pod(fleet, "p-0")
    gpu_pod(fleet, "p-1")
    assert fleet.decide().scale_up.added == {WEB: 1}


@pytest.mark.parametrize("late", [False, True])
def test_a_starting_node_is_not_unneeded_until_its_time_is_over(late: bool) -> None:
    fleet = gpu_fleet(1)
    fleet.now += timedelta(minutes=15 if late else 14)
    scale_down = fleet.decide().scale_down
    (name,) = fleet.nodes
    assert (name in scale_down.unneeded) is late
    assert late or "still starting: 2 nvidia.com/gpu are promised" in scale_down.staying[name].why


def test_pods_of_a_node_that_might_go_do_not_count_on_one_that_starts() -> None:
    fleet = fleet_of(2)
    old, new = sorted(fleet.nodes)
    fleet.nodes[new]["spec"]["taints"] = [{"key": STARTUP, "effect": "NoSchedule"}]
    fleet.pod("p", "1", node=old)
    assert old not in fleet.decide().scale_down.unneeded
    del fleet.nodes[new]["spec"]["taints"]
    assert {old, new} & fleet.decide().scale_down.unneeded.keys()


def test_a_node_that_does_not_start_in_its_time_is_told_of_and_its_group_rests() -> None:
    fleet = gpu_fleet(1)
    gpu_pod(fleet, "p")
    (name,) = fleet.nodes
    fleet.now += timedelta(minutes=15)
    decision = fleet.decide()
    assert decision.scale_up.added == {}
    why = f"Node {name} has not started after 15m0s: 2 {GPU} are promised and none is offered yet by a device plugin"
    assert decision.memory.backoffs[WEB].why == why


def test_another_group_is_taken_while_one_rests_whose_node_did_not_start() -> None:
    fleet = fleet_of(1)
    tainted(fleet, STARTUP)
    fleet.group("spare", most=1)
    fleet.pod("p", WHOLE)
    fleet.now += timedelta(minutes=15)
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/spare": 1}


def test_a_node_that_never_starts_does_not_keep_its_group_from_growing_for_ever() -> None:
    fleet = fleet_of(1)
    tainted(fleet, STARTUP)
    fleet.pod("p", WHOLE)
    fleet.now += timedelta(minutes=15)
    fleet.round()
    fleet.now += timedelta(minutes=5)
    assert fleet.decide().scale_up.added == {WEB: 1}


def test_a_node_has_its_time_anew_when_it_was_rebooted() -> None:
    """Its Machine is a day old; the device plugin starts after the kubelet."""
    fleet = gpu_fleet(1)
    fleet.now += timedelta(days=1)
    for node in fleet.nodes.values():
        node["status"]["conditions"] = [{**READY, "lastTransitionTime": format_time(fleet.now)}]
    gpu_pod(fleet, "p")
    decision = fleet.decide()
    assert (decision.scale_up.added, decision.memory.backoffs) == ({}, {})


def test_a_clock_that_is_ahead_does_not_keep_a_node_starting_for_ever() -> None:
    fleet = gpu_fleet(1)
    fleet.now += timedelta(minutes=15)
    for node in fleet.nodes.values():
        node["status"]["conditions"] = [{**READY, "lastTransitionTime": format_time(fleet.now + timedelta(days=9))}]
    assert not fleet.observed().workload.starting


def test_the_groups_own_time_counts() -> None:
    fleet = gpu_fleet(1)
    fleet.deployments["web"]["metadata"]["annotations"] |= {
        "cluster.k8s.io/autoscaling-options-maxnodeprovisiontime": "2m"
    }
    fleet.now += timedelta(minutes=2)
    assert "after 2m0s" in resting(fleet.observed())[WEB].why


def test_it_is_told_what_is_waited_for() -> None:
    fleet = gpu_fleet(2)
    name = min(fleet.nodes)
    fleet.nodes[max(fleet.nodes)]["status"]["allocatable"][GPU] = "2"
    observed = observed_of(fleet)
    group = told(explain_group(observed, ref_of(MACHINE_DEPLOYMENT, fleet.deployments["web"])))
    assert "1 joined, 1 on their way" in group
    assert f"Node {name} is waited for: 2 {GPU} are promised and none is offered yet" in group
    assert f"is starting: 2 {GPU} are promised" in told(explain_node(observed, name))
    fleet.now += timedelta(minutes=15)
    observed = observed_of(fleet)
    assert f"has not started in its time: 2 {GPU} are promised" in told(explain_node(observed, name))


def test_it_counts_as_not_started_in_the_status() -> None:
    cluster = gpu_fleet(3).observed()
    (state,) = cluster.groups
    counts = count(state, cluster)
    assert (counts.ready, counts.not_started, upcoming(state, cluster)) == (0, 3, 0)


def test_annotations_that_can_not_be_read_promise_nothing() -> None:
    fleet = gpu_fleet(1)
    fleet.deployments["web"]["metadata"]["annotations"][names.CAPACITY_GPU_COUNT_ANNOTATION] = "two"
    assert not fleet.observed().workload.starting


@given(
    keys=st.lists(st.sampled_from([*USUAL, "team", "node.kubernetes.io/memory-pressure"]), max_size=4),
    minutes=st.integers(0, 14),
    pods=st.integers(0, 4),
)
def test_startup_taints_change_no_size_while_their_nodes_are_waited_for(
    keys: list[str], minutes: int, pods: int
) -> None:
    asked = []
    for kept in (keys, [key for key in keys if key not in USUAL]):
        fleet = fleet_of(2)
        for node in fleet.nodes.values():
            node["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"} for key in kept]
        for index in range(pods):
            fleet.pod(f"p-{index}", WHOLE)
        fleet.now += timedelta(minutes=minutes)
        asked.append(fleet.decide().scale_up.added)
    assert asked[0] == asked[1]
