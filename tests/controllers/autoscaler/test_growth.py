"""Scale-up: who grows, by how much, and why not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, Range
from controllers.kernel.actions import Event, Scale
from controllers.kernel.conditions import format_time
from tests.controllers.autoscaler.fleet import Fleet
from tests.examples import usually

WEB, BIG = "MachineDeployment/ns/web", "MachineDeployment/ns/big"


def fleet_with(pods: int, **growth: Any) -> Fleet:
    fleet = Fleet(AutoscalerOptions(GrowthOptions(**growth)))
    for index in range(pods):
        fleet.pod(f"p-{index}")
    return fleet


def test_pending_pods_grow_a_group_from_zero() -> None:
    """Four cores a Node: 10 pods of one core need three."""
    fleet = fleet_with(10)
    fleet.group("web")
    decision = fleet.decide()
    (scale,) = (action for step in decision.steps for action in step if isinstance(action, Scale))
    assert (scale.target.key.name, scale.replicas, scale.resource_version) == ("web", 3, "7")
    reasons = [action.reason for step in decision.steps for action in step if isinstance(action, Event)]
    assert reasons == ["ScaledUpGroup"] + ["TriggeredScaleUp"] * 10


def test_a_restart_asks_for_nothing_twice() -> None:
    """The replicas themselves tell that Nodes are on their way: before Machines exist, while hosts boot, after."""
    fleet = fleet_with(10)
    fleet.group("web")
    fleet.round()
    fleet.text = ""
    assert not fleet.decide().steps
    for _ in range(3):
        fleet.machine("web")
    fleet.text = ""
    assert not fleet.decide().steps
    fleet.settle()
    assert not fleet.decide().scale_up.added
    assert all(pod["spec"].get("nodeName") for pod in fleet.pods.values())


def test_several_groups_grow_in_one_plan() -> None:
    fleet = fleet_with(10)
    fleet.group("web", most=2)
    fleet.group("big", most=1, cpu="2")
    decision = fleet.decide()
    assert decision.scale_up.added == {WEB: 2, BIG: 1}
    assert decision.scale_up.left == ()


def test_pods_that_no_group_helps_are_told_why_by_each_group() -> None:
    fleet = fleet_with(0)
    fleet.pod("huge", "64")
    fleet.pod("picky", nodeSelector={"disk": "ssd"})
    fleet.group("web")
    fleet.group("full", most=1)["spec"]["replicas"] = 1
    fleet.join(fleet.machine("full"))
    unknown = fleet.group("unknown")
    del unknown["metadata"]["annotations"][names.CAPACITY_MEMORY_ANNOTATION]
    decision = fleet.decide()
    told = {left.pods[0].name: left.why for left in decision.scale_up.left}
    assert told["huge"][WEB] == "Insufficient cpu"
    assert told["picky"][WEB] == "node(s) didn't match Pod's node affinity/selector"
    assert told["huge"]["MachineDeployment/ns/full"] == "it has its maximum of 1 Nodes"
    assert names.CAPACITY_MEMORY_ANNOTATION in told["huge"]["MachineDeployment/ns/unknown"]
    assert not decision.steps


LIMITS: dict[str, tuple[dict[str, Any], int]] = {
    "nodes of the cluster": ({"max_nodes": 2}, 2),
    "cores of the cluster": ({"cores": Range(0, 11)}, 2),
    "memory of the cluster": ({"memory": Range(0, 8 * 1024**3)}, 1),
    "rate": ({"nodes_per_window": 3}, 3),
    "none": ({}, 5),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_of_the_whole_cluster(name: str) -> None:
    growth, expected = LIMITS[name]
    fleet = fleet_with(20, **growth)
    fleet.group("web")
    fleet.round()
    assert fleet.size("web") == expected
    assert bool(fleet.decide().scale_up.left) == (expected < 5), "those on their way count"


def test_nodes_at_a_time() -> None:
    fleet = fleet_with(20, nodes_per_scale_up=4)
    fleet.group("web")
    fleet.round()
    assert fleet.size("web") == 4
    fleet.round()
    assert fleet.size("web") == 5


def test_the_rate_is_remembered_and_ends() -> None:
    fleet = fleet_with(20, nodes_per_window=2)
    fleet.group("web")
    sizes = []
    for _ in range(4):
        fleet.round(after=timedelta(minutes=6))
        sizes.append(fleet.size("web"))
        fleet.settle()
    assert sizes == [2, 2, 4, 4]


@pytest.mark.parametrize("reason", ["QuotaExceeded", "StockOut"])
def test_a_group_out_of_stock_rests_and_the_next_one_is_taken_at_once(reason: str) -> None:
    fleet = fleet_with(4, choosing=Choosing(("least-nodes",)))
    fleet.group("web")
    fleet.group("small", cpu="2")
    fleet.round()
    assert (fleet.size("web"), fleet.size("small")) == (1, 0)
    fleet.machine("web", {"type": "Ready", "status": "False", "reason": reason, "message": "no cores"})
    decision = fleet.round()
    assert (fleet.size("web"), fleet.size("small")) == (0, 2)
    assert decision.scale_up.skipped[WEB].endswith(f"{reason}: no cores")
    fleet.settle()
    fleet.pod("later", "3.5")
    assert fleet.decide().scale_up.added == {}, "it still rests"
    fleet.now += timedelta(minutes=6)
    assert fleet.decide().scale_up.added == {WEB: 1}


def test_alike_groups_share() -> None:
    fleet = fleet_with(16, balance=True)
    for zone in ("a", "b"):
        fleet.group(f"web-{zone}", labels=f"topology.kubernetes.io/zone={zone}")
    fleet.group("other", labels="disk=ssd")
    assert sorted(fleet.decide().scale_up.added.values()) in ([2, 2], [4])
    fleet.deployments.pop("other")
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/web-a": 2, "MachineDeployment/ns/web-b": 2}


def test_daemons_take_their_part() -> None:
    """A DaemonSet's pod that can't be told from a plain one is still counted."""
    fleet = fleet_with(3)
    fleet.group("web")
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    meta = {"namespace": "default", "name": "agent", "uid": "d"}
    one = {"metadata": meta, "spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}}}
    fleet.others["daemon_sets"] = [one, {**one, "metadata": {**meta, "name": "other"}}]
    decision = fleet.decide()
    assert decision.scale_up.added == {WEB: 2}, "two of four cores are the DaemonSets'"


def test_one_bad_pod_node_or_group_does_not_disturb_the_others() -> None:
    fleet = fleet_with(4)
    fleet.group("web")
    fleet.group("bad")["metadata"]["annotations"][names.AUTOSCALER_MAX_ANNOTATION] = "many"
    fleet.pod("odd", "a lot")
    fleet.pods["shapeless"] = {**fleet.pod("x"), "spec": {"containers": "none"}}
    del fleet.pods["x"]
    observed = fleet.observed()
    assert [bad.ref.key.name for bad in observed.bad] == ["bad"]
    assert "Pod default/odd" in observed.unreadable
    assert fleet.decide().scale_up.added == {WEB: 1}


def test_an_unhealthy_cluster_is_left_alone() -> None:
    fleet = fleet_with(40)
    fleet.group("web")["spec"]["replicas"] = 8
    nodes = [fleet.join(fleet.machine("web")) for _ in range(8)]
    for node in nodes[:4]:
        node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    fleet.now += timedelta(minutes=15)
    decision = fleet.decide()
    assert decision.frozen == "4 of 8 Nodes are not ready"
    assert not decision.steps


groups = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["1", "2", "4"])), min_size=1, max_size=3)


@usually(8)
@given(groups, st.lists(st.sampled_from(["1", "2", "3"]), max_size=12), st.booleans())
def test_never_beyond_the_maximum_and_no_more_than_helps(
    sizes: list[tuple[int, str]], pods: list[str], balance: bool
) -> None:
    fleet = Fleet(AutoscalerOptions(GrowthOptions(balance=balance)))
    for index, (most, cpu) in enumerate(sizes):
        fleet.group(f"g-{index}", 0, most, cpu=cpu)
    for index, cpu in enumerate(pods):
        fleet.pod(f"p-{index}", cpu)
    decision = fleet.round()
    for index, (most, _) in enumerate(sizes):
        assert fleet.size(f"g-{index}") <= most
    foreseen = sum(len(helped.pods) for helped in decision.scale_up.helped)
    left = sum(len(left.pods) for left in decision.scale_up.left)
    assert foreseen + left == len(pods)
    assert sum(decision.scale_up.added.values()) <= foreseen
    if len({cpu for _, cpu in sizes}) == 1:
        fleet.text = ""
        assert not fleet.decide().scale_up.added, "what was asked for is enough, restart or not"


def test_nodes_that_have_just_begun_are_no_sign_of_trouble() -> None:
    """A group that grows a lot at once would freeze itself."""
    fleet = fleet_with(40)
    fleet.group("web")["spec"]["replicas"] = 8
    for _ in range(8):
        node = fleet.join(fleet.machine("web"))
        node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert fleet.decide().scale_up.added == {WEB: 2}, "8 of 10 are on their way"
    fleet.now += timedelta(minutes=16)
    assert fleet.decide().frozen == "8 of 8 Nodes are not ready"


@pytest.mark.parametrize(("nominated", "added"), [("there", 0), ("going", 1), ("gone", 1), ("not ready", 1)])
def test_a_pod_has_the_room_from_which_others_are_evicted_only_while_that_node_stays(
    nominated: str, added: int
) -> None:
    """kube-scheduler takes the name away when it tries the pod the next time, which may be minutes later."""
    fleet = Fleet()
    fleet.group("web")["spec"]["replicas"] = 1
    machine = fleet.machine("web")
    node = fleet.join(machine)
    name = node["metadata"]["name"]
    fleet.pod("full", "4", name)
    fleet.pod("p", "3")["status"]["nominatedNodeName"] = "gone" if nominated == "gone" else name
    if nominated == "going":
        machine["metadata"]["deletionTimestamp"] = format_time(fleet.now)
        del fleet.pods["full"]
        fleet.deployments["web"]["spec"]["replicas"] = 0
    elif nominated == "not ready":
        node["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
        fleet.now += timedelta(hours=1)
    assert sum(fleet.decide().scale_up.added.values()) == added


def test_pods_of_a_node_that_goes_need_room_until_they_are_evicted() -> None:
    """Once a pod is being evicted, the one in its place waits for itself."""
    fleet = fleet_with(0)
    fleet.group("web")["spec"]["replicas"] = 0
    fleet.join(fleet.machine("web"))
    fleet.machines["web-1"]["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
    fleet.pod("moves", node="web-1")
    assert fleet.decide().scale_up.added == {WEB: 1}
    fleet.pods["moves"]["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
    assert fleet.decide().scale_up.added == {}
    fleet.pod("in-its-place")
    assert fleet.decide().scale_up.added == {WEB: 1}
