"""Scale-down: which Nodes go, when, and what is finished after a crash."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.autoscaler.backoff import Backoff
from controllers.autoscaler.memory import Addition, Memory, read, write
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, Range, ShrinkOptions
from controllers.kernel.actions import Event, Patch, Scale
from controllers.scaling.resize import Scaler
from tests.controllers.autoscaler.fleet import START, Fleet

LONG = timedelta(minutes=11)


def fleet_of(nodes: int, least: int = 0, growth: GrowthOptions | None = None, **shrink: Any) -> Fleet:
    """Empty Nodes web-1, web-2, … of four cores."""
    fleet = Fleet(AutoscalerOptions(growth or GrowthOptions(), ShrinkOptions(**shrink)))
    fleet.group("web", least)["spec"]["replicas"] = nodes
    for _ in range(nodes):
        fleet.join(fleet.machine("web"))
    return fleet


def gone(fleet: Fleet) -> list[str]:
    """Nodes that go after they were unneeded for long enough."""
    fleet.round(after=LONG)
    return [victim.node for victim in fleet.decide().scale_down.victims]


def test_pods_gone_the_group_shrinks_to_its_minimum() -> None:
    fleet = fleet_of(5, least=1)
    assert not fleet.round().steps, "not unneeded for long enough"
    assert fleet.decide().scale_down.staying["web-1"].reason == "NotUnneededLongEnough"
    fleet.now += LONG
    decision = fleet.round()
    kinds = [[type(action) for action in step] for step in decision.steps]
    assert kinds == [[Patch] * 4, [Scale], [Event] * 4], "marks before the size, events last"
    assert fleet.size("web") == 1
    fleet.settle()
    assert not fleet.round(after=LONG).steps
    assert not fleet.round().steps, "the steady state writes nothing"
    assert fleet.decide().scale_down.staying["web-5"].reason == "NodeGroupMinSizeReached"


def test_a_node_that_is_needed_for_a_moment_begins_anew() -> None:
    fleet = fleet_of(1)
    fleet.round(after=timedelta(minutes=8))
    fleet.pod("busy", "3", node="web-1")
    fleet.round(after=timedelta(minutes=8))
    assert fleet.decide().scale_down.staying["web-1"].reason == "NotUnderutilized"
    del fleet.pods["busy"]
    assert not fleet.round(after=timedelta(minutes=8)).scale_down.victims
    assert fleet.decide().scale_down.victims == ()


def test_what_is_known_survives_a_restart() -> None:
    """Fleet.round passes the memory through its text."""
    assert gone(fleet_of(1)) == ["web-1"]
    moment = START.replace(microsecond=0)
    memory = Memory(
        {"n": moment},
        {"g": Backoff(moment + LONG, moment, LONG, "no cores")},
        (Addition(moment, 3),),
        moment + LONG,
    )
    assert read(write(memory)) == memory


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"unneeded": [], "backoffs": {"g": 1}, "grown": [{}], "shrunkAt": 7}', '{"unneeded": {"n": 1}}'],
)
def test_memory_that_can_not_be_read_is_forgotten(text: str) -> None:
    assert read(text) == Memory()


def test_pods_move_one_node_at_a_time_and_only_where_they_fit() -> None:
    """Three Nodes with one pod of a core each: two of them can be emptied onto the third."""
    fleet = fleet_of(3)
    for index in (1, 2, 3):
        fleet.pod(f"p-{index}", node=f"web-{index}")
    sizes = []
    for _ in range(6):
        fleet.round(after=LONG)
        fleet.settle()
        sizes.append(fleet.size("web"))
        assert all(pod["spec"]["nodeName"] for pod in fleet.pods.values()), "no pod stays pending"
    assert sizes == [3, 2, 2, 1, 1, 1], "the Node that took the first pod was needed until then"


STAYS: dict[str, str] = {
    "disabled": "ScaleDownDisabledAnnotation",
    "control plane": "ScaleDownDisabledAnnotation",
    "blocking pod": "BlockedByPod",
    "budget": "BlockedByPod",
    "no place": "NoPlaceToMovePods",
    "rollout": "NotUnneededOtherReason",
    "somebody's mark": "NotUnneededOtherReason",
    "cores": "MinimalResourceLimitExceeded",
}


@pytest.mark.parametrize("name", STAYS)
def test_what_keeps_a_node(name: str) -> None:
    growth = GrowthOptions(cores=Range(4, 100)) if name == "cores" else None
    fleet = fleet_of(1, growth=growth)
    meta: dict[str, Any] = fleet.nodes["web-1"]["metadata"]
    if name == "disabled":
        meta["annotations"][names.SCALE_DOWN_DISABLED_ANNOTATION] = "true"
    elif name == "control plane":
        meta["labels"]["node-role.kubernetes.io/control-plane"] = ""
    elif name == "blocking pod":
        fleet.pod("alone", node="web-1")["metadata"]["ownerReferences"] = []
    elif name == "budget":
        fleet.pod("kept", node="web-1")
        budget = {"metadata": {"namespace": "default", "name": "b"}, "spec": {"selector": {}}}
        fleet.others["budgets"] = [{**budget, "status": {"disruptionsAllowed": 0}}]
    elif name == "no place":
        fleet.pod("moves", node="web-1")
    elif name == "rollout":
        old = {**fleet.sets["web"], "spec": {"replicas": 1}}
        fleet.sets["web"]["spec"]["replicas"] = 1
        fleet.sets["old"] = {**old, "metadata": {**old["metadata"], "name": "old", "uid": "ms-old"}}
    elif name == "somebody's mark":
        fleet.machines["web-1"]["metadata"]["annotations"][names.DELETE_MACHINE_ANNOTATION] = "yes"
    assert gone(fleet) == []
    staying = fleet.decide().scale_down.staying["web-1"]
    assert staying.reason == STAYS[name]
    assert staying.why


def test_as_many_at_a_time_as_may_go() -> None:
    assert len(gone(fleet_of(5, parallel=2))) == 2
    fleet = fleet_of(5, parallel=2)
    fleet.machines["web-1"]["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
    fleet.deployments["web"]["spec"]["replicas"] = 4
    assert len(gone(fleet)) == 1, "one is on its way"


def test_delays() -> None:
    fleet = fleet_of(1)
    fleet.round(after=LONG)
    for memory, why in (
        (Memory(grown=(Addition(fleet.now, 1),)), "Nodes were added"),
        (Memory(backoffs={"MachineDeployment/ns/web": Backoff(fleet.now, fleet.now, LONG, "x")}), "a group failed"),
    ):
        kept = read(fleet.text)
        fleet.text = write(Memory(kept.unneeded, memory.backoffs, memory.grown))
        decision = fleet.decide()
        assert decision.scale_down.cooldown.startswith(why)
        assert not decision.steps
        fleet.text = write(kept)
    assert fleet.decide().steps


def test_switched_off() -> None:
    assert gone(fleet_of(2, enabled=False)) == []


def test_no_node_goes_while_others_come() -> None:
    fleet = fleet_of(1)
    fleet.round(after=LONG)
    fleet.pod("huge", "8")
    fleet.group("big", cpu="16")
    assert fleet.decide().scale_down.victims == ()
    assert fleet.decide().scale_down.cooldown == "Nodes are added"


def test_room_for_pending_pods_is_no_room_to_spare() -> None:
    """A pod that is about to be bound to the Node keeps it."""
    fleet = fleet_of(1)
    fleet.round(after=LONG)
    fleet.pod("coming")
    assert fleet.decide().scale_down.staying["web-1"].reason == "ReceivesPods"
    assert fleet.decide().scale_down.victims == ()


class TestKilledInBetween:
    def test_marked_and_not_scaled_is_finished_by_the_next_round(self) -> None:
        fleet = fleet_of(3, least=1)
        fleet.round(after=LONG)
        fleet.round(steps=1)
        assert fleet.size("web") == 3
        assert len(fleet.observed().groups[0].marked) == 2
        decision = fleet.round()
        assert fleet.size("web") == 1
        assert not any(isinstance(action, Patch) for step in decision.steps for action in step), "marked once"
        assert not fleet.round().steps, "what is marked and on its way is not counted again"
        fleet.settle()
        assert not fleet.round().steps

    def test_a_mark_is_taken_back_from_a_machine_that_is_needed_again(self) -> None:
        fleet = fleet_of(2)
        fleet.round(after=LONG)
        fleet.round(steps=1)
        for name in ("web-1", "web-2"):
            fleet.pod(f"on-{name}", "3", node=name)
        fleet.round()
        assert fleet.size("web") == 2
        marks = [m["metadata"]["annotations"].get(names.DELETE_MACHINE_ANNOTATION) for m in fleet.machines.values()]
        assert marks == [None, None]


def test_a_machine_that_never_became_a_node_is_given_up() -> None:
    """Else its replica stands for a Node that never comes."""
    fleet = fleet_of(1, least=1)
    fleet.deployments["web"]["spec"]["replicas"] = 2
    fleet.machine("web")
    fleet.round(after=timedelta(minutes=14))
    assert fleet.size("web") == 2
    fleet.now += timedelta(minutes=1)
    fleet.pod("busy", "3", node="web-1")
    decision = fleet.round()
    assert fleet.size("web") == 1
    assert [victim.machine.key.name for victim in decision.scale_down.victims] == ["web-2"]
    assert fleet.machines["web-2"]["metadata"]["annotations"][names.DELETE_MACHINE_ANNOTATION] == Scaler.AUTOSCALER
    assert "MachineDeployment/ns/web" in decision.memory.backoffs


def test_a_machine_that_its_membership_status_protects_stays() -> None:
    fleet = fleet_of(3, least=0)
    kept = next(m for m in fleet.machines.values() if m["status"]["nodeRef"]["name"] == "web-2")
    kept["metadata"].setdefault("annotations", {})[names.CLOUDPOOL_MEMBERSHIP_ANNOTATION] = "{}"
    fleet.round()
    fleet.now += LONG
    assert fleet.decide().scale_down.staying["web-2"].reason == "ScaleDownDisabledAnnotation"
    fleet.round()
    assert fleet.size("web") == 1
    assert not kept["metadata"]["annotations"].get(names.DELETE_MACHINE_ANNOTATION)
