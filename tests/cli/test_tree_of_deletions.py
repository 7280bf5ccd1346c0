"""``describe`` names what a deletion waits for, on the owner and never folded away, for one Machine and for 300."""

from __future__ import annotations

import pytest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from nodewright.cli.rollout.rollout_status import rollout_status
from nodewright.reports.tree.branch import Branch, Mood, wrong
from nodewright.reports.tree.builder import shown_once
from nodewright.reports.tree.drawing import lines
from nodewright.reports.tree.values import branch_value
from nodewright.reports.tree.warnings import latest
from tests.builders import NOW, FakeView, World, machine, machine_deployment, machine_set
from tests.builders.loop import plan_for, settle
from tests.builders.machines import MachineBuilder
from tests.builders.plans import condition_of, status_of
from tests.cli.test_tree import line, tree_of

BUDGET = "PodDisruptionBudget default/keep"


def held(name: str) -> MachineBuilder:
    message = f"draining Node {name}: blocked: default/web-{name} ({BUDGET}); no nodeDrainTimeout is set"
    blocked = machine(name).of(machine_set("pool")).deleting(60)
    blocked.condition("Ready", "False", "DrainBlocked", message)
    return blocked.condition("Deleting", "True", "DrainBlocked", message)


def pool(machines: int) -> list[MachineBuilder]:
    return [held(f"m-{n}") for n in range(machines)]


@pytest.mark.parametrize("count", [1, 30, 300])
def test_the_cause_stands_on_the_set_and_on_its_machines_in_few_lines(count: int) -> None:
    owner, machines = machine_set("pool").replicas(0).observed(), pool(count)
    decided = plan_for(FakeView(owner, *machines), MACHINE_SET, "pool")
    status = status_of(decided)
    owner.status.update(status)
    tree = tree_of(MACHINE_SET, owner, *machines)
    assert tree.mood is Mood.BAD
    assert wrong(tree)
    drawn = [str(one) for one in lines(tree, NOW, 80)]
    assert len(drawn) <= 40
    text = " ".join(" ".join(drawn).split())
    assert f"{count}× DrainBlocked" in text
    assert BUDGET in text
    assert "Give the PodDisruptionBudget room" in text
    assert status["deletingReplicas"] == count
    assert condition_of(decided, "Ready")["reason"] == "DrainBlocked"
    assert condition_of(decided, "ScalingDown")["reason"] == "DrainBlocked"


def test_a_hook_that_waits_is_wrong_and_named() -> None:
    text = "waiting until the annotation pre-drain.delete.hook.machine.cluster.x-k8s.io/backup is removed"
    waiting = machine("m").of(machine_set("pool")).deleting(5).condition("Deleting", "True", "WaitingForHook", text)
    tree = tree_of(MACHINE, waiting.condition("Ready", "False", "WaitingForHook", text))
    assert line(tree, "Machine/m").reason == "WaitingForHook"
    assert wrong(tree)


def test_a_deletion_on_its_way_is_not_wrong() -> None:
    text = "host m is being deleted"
    going = machine("m").of(machine_set("pool")).deleting(5).condition("Deleting", "True", "DeletingHost", text)
    assert not wrong(tree_of(MACHINE, going.condition("Ready", "False", "DeletingHost", text)))


def test_a_rollout_is_done_and_says_which_old_machine_is_held_up() -> None:
    world = World(machine_deployment("md").replicas(1).rolling(1, 0).kubelet("1.34.0").history_limit(5))
    settle(world)
    body = world.get(MACHINE_DEPLOYMENT, "md")
    assert rollout_status(body).going == ""
    body["status"]["deletingReplicas"] = 1
    body["status"]["conditions"].append(
        {"type": "ScalingDown", "status": "True", "message": f"1 Machine is being deleted: 1× DrainBlocked: {BUDGET}"}
    )
    body["status"]["conditions"] = [
        one for one in body["status"]["conditions"] if one["type"] != "ScalingDown" or BUDGET in one["message"]
    ]
    said = rollout_status(body)
    assert said.state == "done"
    assert BUDGET in said.going


def blocked_deployment(count: int) -> Branch:
    """The tree of a deployment whose controllers have decided about ``count`` Machines behind one budget."""
    deployment = machine_deployment("web").replicas(0)
    owner = machine_set("pool").of(deployment).replicas(0).observed()
    machines = [each.of(owner) for each in pool(count)]
    owner.status.update(status_of(plan_for(FakeView(owner, *machines), MACHINE_SET, "pool")))
    deployment.status.update(status_of(plan_for(FakeView(deployment, owner, *machines), MACHINE_DEPLOYMENT, "web")))
    return tree_of(MACHINE_DEPLOYMENT, deployment, owner, *machines)


@pytest.mark.parametrize("count", [1, 300])
def test_the_cause_is_shown_once_for_people_and_everywhere_for_programs(count: int) -> None:
    tree = blocked_deployment(count)
    drawn = [str(one) for one in lines(shown_once(tree), NOW, 80)]
    assert len(drawn) <= 20
    text = " ".join(" ".join(drawn).split())
    assert text.count(f"{count}× DrainBlocked") == 1
    assert BUDGET in text
    assert "Give the PodDisruptionBudget room" in text
    assert str(branch_value(tree)).count(f"{count}× DrainBlocked") == 2


def test_warnings_of_many_objects_with_one_reason_are_one_line() -> None:
    about = [{"kind": "Machine", "name": f"m-{n}", "namespace": "default"} for n in range(30)]
    events = [{"type": "Warning", "involvedObject": each, "reason": "X", "message": "no"} for each in about]
    tree = Branch("MachineSet/pool", children=tuple(Branch(f"Machine/m-{n}") for n in range(30)))
    assert [line.message for line in latest(events, tree, "default", {})] == ["no (and of 29 more)"]
