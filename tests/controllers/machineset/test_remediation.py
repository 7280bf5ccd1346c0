"""What a MachineSet does with Machines that a health check asks it to replace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api import names
from controllers.kernel.plan import Wait
from controllers.kernel.refs import MACHINE, MACHINE_SET
from controllers.kernel.remediation import remediation_data_of
from tests.builders import FakeView, World, ago, machine, machine_deployment, machine_set
from tests.builders.loop import plan_for, settle
from tests.builders.objects import Builder, MachineBuilder, MachineSetBuilder
from tests.builders.plans import condition_of, creates, deletes, status_of


def pool(replicas: int = 3) -> MachineSetBuilder:
    return machine_set("pool").replicas(replicas).observed()


def member(name: str) -> MachineBuilder:
    return machine(name).of(machine_set("pool"))


def sick(name: str, created: float = 3600) -> MachineBuilder:
    found = member(name).not_ready().created(created).condition("HealthCheckSucceeded", "False", "UnhealthyNode")
    return found.condition("OwnerRemediated", "False", "WaitingForRemediation")


def plan(*objects: Builder) -> Any:
    return plan_for(FakeView(*objects), MACHINE_SET, "pool")


def condemn(world: World, name: str) -> None:
    conditions = [
        {"type": type_, "status": "False", "reason": "UnhealthyNode", "lastTransitionTime": ago(0)}
        for type_ in ("Ready", "HealthCheckSucceeded", "OwnerRemediated")
    ]
    world.change(MACHINE, name, lambda body: body["status"].update(conditions=conditions))


def alive(world: World) -> list[str]:
    return sorted(m["metadata"]["name"] for m in world.all(MACHINE) if not m["metadata"].get("deletionTimestamp"))


def test_condemned_machines_are_deleted_and_remembered_before_that() -> None:
    found = plan(pool(), member("a").ready(), sick("old", 900), sick("new", 100))
    assert deletes(found) == ["new", "old"]
    status = status_of(found)
    assert status["ordinals"]["leaving"] == ["new", "old"]
    assert [entry["machine"] for entry in status["remediated"]] == ["new", "old"]
    assert condition_of(found, "Remediating")["message"] == "2 unhealthy Machines are being replaced"


def test_a_condemned_machine_that_somebody_preserves_is_replaced_and_stays_until_then() -> None:
    kept = sick("kept").annotated(names.PRESERVE_UNTIL_ANNOTATION, ago(-600))
    found = plan(pool(2), member("a").ready(), kept)
    assert deletes(found) == []
    assert len(creates(found)) == 1
    late = FakeView(pool(2), member("a").ready(), member("b").ready(), kept).at(601)
    assert deletes(plan_for(late, MACHINE_SET, "pool")) == ["kept"]


def test_an_unhealthy_machine_that_nobody_condemned_stays() -> None:
    unhealthy = member("b").not_ready().condition("HealthCheckSucceeded", "False", "UnhealthyNode")
    assert deletes(plan(pool(2), member("a").ready(), unhealthy)) == []


def test_an_unhealthy_machine_that_is_ready_goes_after_an_unready_one_when_there_are_too_many() -> None:
    """Found by simulation (seed 83): the one that served went and the silent one stayed, below the minimum."""
    unhealthy = member("b").ready().condition("HealthCheckSucceeded", "False", "NodeStartupTimeout")
    assert deletes(plan(pool(2), member("a").not_ready(), unhealthy, member("c").ready())) == ["a"]
    assert deletes(plan(pool(1), member("a").not_ready(), unhealthy, member("c").ready())) == ["a", "b"]


def test_the_replacement_says_whose_place_it_took_and_the_memory_ends_with_it() -> None:
    world = World(machine_set("pool").replicas(3))
    settle(world)
    victim = alive(world)[1]
    condemn(world, victim)
    settle(world)
    assert victim not in alive(world)
    assert len(alive(world)) == 3
    heirs = [m for m in world.all(MACHINE) if names.REMEDIATION_FOR_ANNOTATION in m["metadata"]["annotations"]]
    assert [remediation_data_of(heir).machine for heir in heirs] == [victim]
    assert "remediated" not in world.get(MACHINE_SET, "pool")["status"]
    conditions = world.get(MACHINE_SET, "pool")["status"]["conditions"]
    assert [c["status"] for c in conditions if c["type"] == "Remediating"] == ["False"]


def test_a_place_remembers_when_it_was_replaced_before() -> None:
    world = World(machine_set("pool").replicas(1))
    settle(world)
    for round_ in range(3):
        world.advance(600)
        condemn(world, alive(world)[0])
        settle(world)
        (heir,) = world.all(MACHINE)
        assert len(remediation_data_of(heir).times) == round_ + 1


def test_a_crash_after_any_action_replaces_exactly_the_condemned_ones() -> None:
    for survived in range(6):
        world = World(machine_set("pool").replicas(3))
        settle(world)
        first = alive(world)
        for name in first[:2]:
            condemn(world, name)
        world.run(plan_for(world.view(), MACHINE_SET, "pool"), limit=survived)
        settle(world)
        assert len(alive(world)) == 3, survived
        assert first[2] in alive(world), survived
        assert not set(first[:2]) & set(alive(world)), survived
        heirs = {remediation_data_of(m).machine for m in world.all(MACHINE)} - {""}
        assert heirs == set(first[:2]), survived


def test_raised_replicas_take_no_condemned_machine_back() -> None:
    view = pool(3)
    view.status["ordinals"] = {"next": 3, "leaving": ["b"]}
    found = plan(view, member("a").ready(), sick("b"), member("c").ready())
    assert deletes(found) == ["b"]
    assert creates(found) == []


def test_a_replacement_is_made_when_the_delete_is_seen_and_not_before() -> None:
    """Found by simulation: the server refused one of two deletes, and both places were filled at once."""
    ordinals = pool(3)
    ordinals.status["ordinals"] = {"next": 3, "leaving": ["b", "c"]}
    found = plan(ordinals, member("a").ready(), sick("b"), sick("c").deleting())
    assert deletes(found) == ["b"]
    assert len(creates(found)) == 1


def test_one_that_has_just_become_ready_is_spared_until_its_check_has_had_a_look() -> None:
    """Found by simulation: its Node joined when it had just been condemned for not joining, and a good Machine went."""
    recovered = sick("a").ready(since=5)
    found = plan(pool(2), recovered, member("b").ready())
    assert deletes(found) == []
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == 25
    view = FakeView(pool(2), recovered, member("b").ready()).at(26)
    assert deletes(plan_for(view, MACHINE_SET, "pool")) == ["a"], "the check still says so: it is not about readiness"


@pytest.mark.parametrize("reason", ["NodeStartupTimeout", "NodeMissing"])
def test_one_that_is_ready_is_never_deleted_for_having_no_node(reason: str) -> None:
    """Found by simulation (seed 255): its health check had no turn for a minute after its Node had joined."""
    recovered = sick("a").ready(since=600).condition("HealthCheckSucceeded", "False", reason)
    found = plan(pool(2), recovered, member("b").ready())
    assert deletes(found) == []
    assert condition_of(found, "Remediating")["reason"] == "RemediationDeferred"
    assert deletes(plan(pool(2), sick("a").condition("HealthCheckSucceeded", "False", reason))) == ["a"]


def test_nothing_is_deleted_when_nothing_would_be_made_instead() -> None:
    """machine-api-operator#736: deleting what fails by its configuration only makes the next one fail."""
    broken = member("a").failed().condition("HealthCheckSucceeded", "False", "MachineFailed")
    broken.condition("OwnerRemediated", "False", "WaitingForRemediation")
    found = plan(pool(1), broken)
    assert deletes(found) == []
    said = condition_of(found, "Remediating")
    assert (said["status"], said["reason"]) == ("True", "RemediationDeferred")


def rolled(set_revision: int, **spec: Any) -> list[Builder]:
    deployment = machine_deployment("herd").replicas(1).annotated(names.REVISION_ANNOTATION, "2")
    deployment.spec.update(spec)
    owned = machine_set("pool").of(deployment).replicas(1).observed().revision(set_revision)
    body = machine("a").of(owned).not_ready().condition("OwnerRemediated", "False", "WaitingForRemediation")
    return [deployment, owned, body]


def test_an_old_revision_leaves_its_unhealthy_machines_to_the_rollout() -> None:
    assert deletes(plan(*rolled(1))) == []
    assert "revision 2 is being rolled out" in condition_of(plan(*rolled(1)), "Remediating")["message"]


def test_an_old_revision_that_nobody_rolls_away_replaces_its_own() -> None:
    assert deletes(plan(*rolled(1, paused=True))) == ["a"]
    assert deletes(plan(*rolled(1, strategy={"type": "OnDelete"}))) == ["a"]
    assert deletes(plan(*rolled(2))) == ["a"]


def test_an_unreadable_memory_is_no_memory() -> None:
    world = machine_set("pool").replicas(1).observed()
    world.status["remediated"] = ["junk", {"machine": 3}, {"machine": "x", "times": ["yesterday", 4]}]
    (body,) = creates(plan(world))
    assert json.loads(body["metadata"]["annotations"][names.REMEDIATION_FOR_ANNOTATION])["machine"] == "x"
