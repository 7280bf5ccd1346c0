"""Gangs: all of their Nodes or none, over several groups in one plan; back again when a part can't be had."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler import memory
from controllers.autoscaler.backoff import Backoff
from controllers.autoscaler.gangs import APIS, read_gangs
from controllers.autoscaler.memory import GangRecord, Memory
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, ShrinkOptions
from controllers.kernel.actions import Scale
from controllers.kernel.refs import POD
from controllers.scheduling.reading import Reader
from nodewright.runtime.cache.slimming import slim
from tests.controllers.autoscaler.fleet import GANGS, START, UNSCHEDULABLE, ZONE, Fleet
from tests.examples import usually

A, B = "MachineDeployment/ns/a", "MachineDeployment/ns/b"
BETA = "scheduling.k8s.io/v1beta1"
SHORT = {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"}


def fleet_of(*, a: int = 5, b: int = 0, **growth: Any) -> Fleet:
    """Nodes of four cores in both groups, so many at most."""
    fleet = Fleet(AutoscalerOptions(GrowthOptions(gangs=(GANGS,), **growth), ShrinkOptions()))
    fleet.group("a", most=a)
    if b:
        fleet.group("b", most=b)
    return fleet


def why(fleet: Fleet) -> str:
    (left,) = [left.gang for left in fleet.decide().scale_up.left if left.gang]
    return left


def test_a_gang_gets_all_its_nodes_over_several_groups_in_one_step() -> None:
    """Five pods of four cores: three Nodes of one group, two of the other, and both sizes are in one step."""
    fleet = fleet_of(a=3, b=2)
    fleet.gang("train", 5, "4")
    decision = fleet.decide()
    assert decision.scale_up.added == {A: 3, B: 2}
    (sizes,) = [step for step in decision.steps if any(isinstance(each, Scale) for each in step)]
    assert sorted(each.replicas for each in sizes if isinstance(each, Scale)) == [2, 3]


def test_a_gang_that_can_not_have_all_gets_none_and_says_how_many_are_short() -> None:
    fleet = fleet_of(a=3, b=1)
    fleet.gang("train", 5, "4")
    decision = fleet.decide()
    assert not decision.scale_up.added
    assert why(fleet) == "scheduling.k8s.io default/train needs room for 5 pods at once; 1 of them would have none"


def test_without_the_option_pods_are_asked_for_one_by_one() -> None:
    fleet = fleet_of(a=3)
    fleet.gang("train", 5, "4")
    fleet.pod_groups.clear()
    assert fleet.decide().scale_up.added == {A: 3}


def test_of_two_gangs_that_fit_alone_one_gets_all_and_then_the_other() -> None:
    fleet = fleet_of(a=4)
    fleet.gang("first", 3, "4")
    fleet.gang("second", 3, "4")
    fleet.round()
    fleet.settle()
    assert (fleet.bound("first"), fleet.bound("second"), fleet.size("a")) == (3, 0, 3)
    fleet.round()
    fleet.settle()
    assert (fleet.bound("second"), fleet.size("a")) == (0, 3)
    for name in [name for name in fleet.pods if name.startswith("first")]:
        del fleet.pods[name]
    fleet.round()
    fleet.settle()
    assert fleet.bound("second") == 3


def test_the_gang_of_higher_priority_is_served_first_and_so_are_single_pods_of_a_higher_one() -> None:
    fleet = fleet_of(a=3)
    fleet.gang("low", 3, "4", priority=1)
    fleet.gang("high", 3, "4", priority=10)
    decision = fleet.decide()
    assert {pod.name[:4] for helped in decision.scale_up.helped for pod in helped.pods} == {"high"}
    fleet.pod("urgent", "4", priority=100)
    decision = fleet.decide()
    assert [pod.name for helped in decision.scale_up.helped for pod in helped.pods] == ["urgent"]
    assert sum(1 for left in decision.scale_up.left if left.gang) == 2


def test_a_gang_that_waits_holds_no_room_that_single_pods_could_take() -> None:
    fleet = fleet_of(a=2)
    fleet.gang("train", 3, "4", priority=10)
    fleet.pod("single", "4")
    decision = fleet.decide()
    assert decision.scale_up.added == {A: 1}
    assert [pod.name for helped in decision.scale_up.helped for pod in helped.pods] == ["single"]


def test_pods_beyond_the_minimum_come_if_they_can() -> None:
    fleet = fleet_of(a=3)
    fleet.gang("train", 5, "4", least=3)
    assert fleet.decide().scale_up.added == {A: 3}
    fleet = fleet_of(a=5)
    fleet.gang("train", 5, "4", least=3)
    assert fleet.decide().scale_up.added == {A: 5}


def test_a_gang_whose_pods_are_not_all_made_waits_for_them() -> None:
    fleet = fleet_of()
    fleet.gang("train", 2, "4", least=3)
    assert not fleet.decide().scale_up.added
    assert why(fleet) == "scheduling.k8s.io default/train waits for 1 pod more"


def test_a_gang_that_runs_is_none_any_more_and_its_other_pods_grow_alone() -> None:
    fleet = fleet_of()
    fleet.gang("train", 3, "4", least=2)
    fleet.round()
    fleet.settle()
    assert fleet.bound("train") == 3
    fleet.pod("train-9", "4", schedulingGroup={"podGroupName": "train"})
    assert fleet.decide().scale_up.added == {A: 1}


def zones(fleet: Fleet, **most: int) -> None:
    for zone, count in most.items():
        body = fleet.group(f"in-{zone}", most=count)
        body["metadata"]["annotations"][names.CAPACITY_LABELS_ANNOTATION] = f"{ZONE}={zone}"


def test_a_gang_that_wishes_for_one_zone_gets_all_its_nodes_there() -> None:
    fleet = fleet_of(a=0)
    zones(fleet, x=2, y=3)
    fleet.gang("train", 3, "4", zone=True)
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/in-y": 3}
    fleet.gang("wide", 4, "4", zone=True)
    assert "in one topology.kubernetes.io/zone" in why(fleet)


def test_a_zone_with_nodes_that_are_free_is_cheaper() -> None:
    fleet = fleet_of(a=0)
    zones(fleet, x=3, y=3)
    fleet.deployments["in-y"]["spec"]["replicas"] = 2
    fleet.settle()
    for node in fleet.nodes.values():
        node["metadata"]["labels"][ZONE] = "y"
    fleet.gang("train", 3, "4", zone=True)
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/in-y": 1}


def test_a_stock_out_half_way_leaves_nothing_and_the_gang_rests() -> None:
    fleet = fleet_of(a=3, b=2)
    fleet.gang("train", 5, "4")
    fleet.round()
    for _ in range(3):
        fleet.join(fleet.machine("a"))
    for _ in range(2):
        fleet.machine("b", SHORT)
    decision = fleet.round()
    assert (fleet.size("a"), fleet.size("b")) == (0, 0), decision.scale_down
    assert len(decision.scale_down.victims) == 5
    fleet.settle()
    fleet.round()
    assert not fleet.nodes
    assert "rests until" in why(fleet)
    fleet.now += timedelta(minutes=31)
    assert fleet.decide().scale_up.added == {A: 3, B: 2}


def test_a_part_that_another_group_has_is_taken_there_and_nothing_goes_back() -> None:
    fleet = fleet_of(a=3, b=1)
    fleet.gang("train", 4, "4")
    fleet.round()
    for _ in range(3):
        fleet.join(fleet.machine("a"))
    fleet.machine("b", SHORT)
    fleet.group("c", most=1)
    decision = fleet.round()
    assert decision.scale_up.added == {"MachineDeployment/ns/c": 1}
    assert fleet.size("a") == 3
    fleet.settle()
    assert fleet.bound("train") == 4


def test_what_others_use_or_a_person_keeps_does_not_go_back() -> None:
    fleet = fleet_of(a=3, b=2)
    fleet.gang("train", 5, "4")
    fleet.round()
    first, second, third = (fleet.join(fleet.machine("a")) for _ in range(3))
    for _ in range(2):
        fleet.machine("b", SHORT)
    fleet.pod("other", "1", node=first["metadata"]["name"])
    second["metadata"]["annotations"][names.SCALE_DOWN_DISABLED_ANNOTATION] = "true"
    gone = {victim.node for victim in fleet.decide().scale_down.victims if victim.node}
    assert gone == {third["metadata"]["name"]}


def test_a_death_between_the_two_sizes_is_made_good() -> None:
    """Memory first; then one of two groups has its size: the rest is asked for, and nothing twice."""
    fleet = fleet_of(a=3, b=2)
    fleet.gang("train", 5, "4")
    decision = fleet.decide()
    fleet.text = memory.write(decision.memory)
    fleet.deployments["a"]["spec"]["replicas"] = 3
    assert fleet.decide().scale_up.added == {B: 2}
    fleet.round()
    assert not fleet.decide().scale_up.added


@pytest.mark.parametrize("api", sorted(APIS))
def test_each_api_says_how_many_pods_belong_together(api: str) -> None:
    native = api.startswith("scheduling.k8s.io")
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}} if native else {"minMember": 2}
    meta = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}} if "x-k8s" in api else {}
    meta |= {"annotations": {"scheduling.k8s.io/group-name": "g"}} if "volcano" in api else {}
    named = {"schedulingGroup": {"podGroupName": "g"}} if native else {}
    pods = [
        {
            "metadata": {"namespace": "ns", "name": name, "uid": name, **meta},
            "spec": {"containers": [], **named},
            "status": {"conditions": [UNSCHEDULABLE]},
        }
        for name in ("p", "q")
    ]
    group = {"metadata": {"namespace": "ns", "name": "g", "uid": "u"}, "spec": spec}
    kept = [slim(POD, copy.deepcopy(pod)) for pod in pods]
    pending = [Reader().pod(pod) for pod in kept]
    (gang,) = read_gangs({api: [group]}, kept, pending=pending, nodes=())
    assert (gang.need, len(gang.pods), gang.missing, gang.uid) == (2, 2, 0, "u")


def of_1_37(fleet: Fleet) -> Fleet:
    """The same PodGroups, as an API server of Kubernetes 1.37 serves them."""
    fleet.options = AutoscalerOptions(GrowthOptions(gangs=(BETA,)), ShrinkOptions())
    fleet.pod_groups[BETA] = fleet.pod_groups.pop(GANGS)
    return fleet


def test_the_priority_of_a_pod_group_counts_instead_of_its_pods() -> None:
    fleet = fleet_of(a=3)
    fleet.gang("first", 3, "4", priority=10)
    fleet.gang("second", 3, "4")["spec"]["priority"] = 20
    decision = of_1_37(fleet).decide()
    assert {pod.name[:6] for helped in decision.scale_up.helped for pod in helped.pods} == {"second"}


def test_a_gang_gets_nodes_where_the_cluster_has_none() -> None:
    """kube-scheduler 1.37 then has an error for its pods. Those of no group wait for something else."""
    fleet = fleet_of(a=3)
    fleet.gang("train", 3, "4")
    fleet.pod("alone", "4")
    for pod in fleet.pods.values():
        pod["status"]["conditions"] = [{**UNSCHEDULABLE, "reason": "SchedulerError"}]
    decision = of_1_37(fleet).decide()
    assert decision.scale_up.added == {A: 3}
    assert {pod.name for helped in decision.scale_up.helped for pod in helped.pods} == {"train-0", "train-1", "train-2"}


def test_a_part_of_a_composite_group_gets_nothing_and_says_why() -> None:
    fleet = fleet_of(a=3)
    fleet.gang("train", 3, "4")["spec"]["parentCompositePodGroupName"] = "whole"
    of_1_37(fleet)
    assert not fleet.decide().scale_up.added
    assert why(fleet) == "scheduling.k8s.io default/train is a part of CompositePodGroup whole: not served"


@pytest.mark.parametrize("spec", [None, [], {"schedulingPolicy": 1}, {"schedulingPolicy": {"basic": {}}},
                                  {"schedulingPolicy": {"gang": {"minCount": "many"}}},
                                  {"schedulingPolicy": {"gang": {"minCount": True}}}])  # fmt: skip
def test_a_group_that_says_no_number_is_no_gang(spec: Any) -> None:
    fleet = fleet_of()
    fleet.gang("train", 2)["spec"] = spec
    assert fleet.decide().scale_up.added == {A: 1}


def test_what_was_made_for_gangs_outlives_the_process() -> None:
    rest = Backoff(until=START, failed_at=START, pause=timedelta(minutes=5), why="StockOut")
    kept = Memory(gangs={"g": GangRecord("u", {A: 2}, START, rest), "h": GangRecord("v")})
    assert memory.read(memory.write(kept)).gangs == kept.gangs


def test_a_look_in_which_no_pod_waits_forgets_nothing() -> None:
    """Between two tries of the scheduler no pod of the gang may be Unschedulable."""
    fleet = fleet_of(a=3, b=2)
    fleet.gang("train", 5, "4")
    fleet.round()
    for pod in fleet.pods.values():
        pod["status"]["conditions"] = []
    fleet.round()
    assert memory.read(fleet.text).gangs["scheduling.k8s.io default/train"].groups == {A: 3, B: 2}
    for pod in fleet.pods.values():
        pod["status"]["conditions"] = [UNSCHEDULABLE]
    del fleet.deployments["b"], fleet.sets["b"]
    for _ in range(3):
        fleet.join(fleet.machine("a"))
    fleet.round()
    assert fleet.size("a") == 0


sizes = st.tuples(st.integers(1, 4), st.sampled_from(["1", "3", "4"]), st.integers(0, 2))


@usually(10)
@given(st.lists(sizes, min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_no_gang_ever_holds_a_part_after_settling(
    gangs: list[tuple[int, str, int]], most_a: int, most_b: int, stock: int
) -> None:
    """Groups with too few places and too little stock; the autoscaler is killed now and then."""
    fleet = fleet_of(a=most_a, b=most_b)
    for number, (count, cpu, priority) in enumerate(gangs):
        fleet.gang(f"g{number}", count, cpu, priority=priority)
    for number in range(40):
        fleet.round(steps=number % 3 + 1, after=timedelta(minutes=1))
        _come(fleet, stock)
        fleet.schedule()
    for number, (count, _, _) in enumerate(gangs):
        assert fleet.bound(f"g{number}") in (0, count)
    assert any(not _idle(fleet, stock) for _ in range(12)), "Nodes without pods are left"


def _idle(fleet: Fleet, stock: int) -> set[str]:
    """Ten seconds later: Nodes without pods. A try that has just begun ends within two minutes, the pause after it is
    longer."""
    fleet.round()
    _come(fleet, stock)
    fleet.schedule()
    busy = {pod["spec"]["nodeName"] for pod in fleet.pods.values() if pod["spec"].get("nodeName")}
    return fleet.nodes.keys() - busy


def _come(fleet: Fleet, stock: int) -> None:
    """Sets follow their sizes; group b gets so many hosts and no more."""
    for group, body in fleet.deployments.items():
        mine = [m for m in fleet.machines.values() if m["metadata"]["ownerReferences"][0]["uid"] == f"ms-{group}"]
        mine.sort(key=lambda m: not m["metadata"]["annotations"].get(names.DELETE_MACHINE_ANNOTATION))
        for surplus in mine[: max(0, len(mine) - body["spec"]["replicas"])]:
            fleet._lose(surplus["metadata"]["name"])
        for _ in range(body["spec"]["replicas"] - len(mine)):
            there = sum(1 for name in fleet.nodes if name.startswith(f"{group}-"))
            machine = fleet.machine(group, SHORT if group == "b" and there >= stock else None)
            if not (group == "b" and there >= stock):
                fleet.join(machine)
