"""``spec.rollout.after``: other Machines of the same template once a time has come."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.kernel.conditions import format_time
from controllers.kernel.plan import Wait
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, machine_deployment
from tests.builders.clock import NOW
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import status_of


def later(seconds: float) -> str:
    return format_time(NOW + timedelta(seconds=seconds))


def a_world(after: str | None = None, **strategy: Any) -> World:
    owner = machine_deployment("md").replicas(2)
    if after:
        owner.spec["rollout"] = {"after": after}
    if strategy:
        owner.spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": strategy}
    world = World(owner)
    settle(world)
    return world


def uids(world: World) -> set[str]:
    return {m["metadata"]["uid"] for m in world.all(MACHINE)}


def set_after(world: World, after: str | None) -> None:
    world.change(
        MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(rollout={"after": after} if after else None)
    )
    settle(world)


def test_nothing_happens_before_and_it_waits_until_then() -> None:
    world = a_world(later(7200))
    before = uids(world)
    outcome = plan_for(world.view(), MACHINE_DEPLOYMENT, "md").outcome
    assert isinstance(outcome, Wait)
    assert 7200 - 600 < outcome.after <= 7200
    world.advance(7000)
    settle(world)
    assert uids(world) == before


def test_when_the_time_has_come_every_machine_is_replaced_once() -> None:
    world = a_world(later(7200))
    before = uids(world)
    world.advance(7200)
    settle(world)
    assert not before & uids(world)
    assert len(uids(world)) == 2
    after = uids(world)
    world.advance(7200)
    settle(world)
    assert uids(world) == after
    assert reconcile_once(world) == 0
    assert (
        world.get(MACHINE_DEPLOYMENT, "md")["metadata"]["annotations"]["machinedeployment.clusters.k8s.io/revision"]
        == "2"
    )


def test_what_was_made_since_is_left_alone() -> None:
    world = a_world(later(-60))
    sets = {body["metadata"]["uid"] for body in world.all(MACHINE_SET)}
    assert len(sets) == 1, "it was made after that time"
    before = uids(world)
    set_after(world, later(-3600))
    assert uids(world) == before


def test_taking_the_field_away_rolls_nothing_and_the_next_time_does() -> None:
    world = a_world()
    world.advance(600)
    set_after(world, format_time(world.now))
    first = uids(world)
    set_after(world, None)
    assert uids(world) == first
    world.advance(600)
    set_after(world, format_time(world.now))
    assert not first & uids(world)


def test_another_template_needs_no_second_rollout() -> None:
    world = a_world()
    world.advance(600)
    set_after(world, format_time(world.now))
    world.advance(600)
    new = {"versions": {"kubelet": "1.35.0"}}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"]["template"]["spec"].update(new))
    settle(world)
    assert len([s for s in world.all(MACHINE_SET) if s["spec"]["replicas"]]) == 1
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {"1.35.0"}
    assert reconcile_once(world) == 0


def test_in_place_it_makes_new_machines_as_a_restart_does() -> None:
    world = a_world(inPlace="Prefer")
    before = uids(world)
    world.advance(600)
    set_after(world, format_time(world.now))
    assert not before & uids(world)


def test_one_that_fails_is_taken_back_and_stays_so() -> None:
    world = a_world(onFailure="Rollback", maxSurge=1, maxUnavailable=0)
    before = uids(world)
    failing = {"rollout": {"after": format_time(world.now)}, "progressDeadlineSeconds": 60}
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(failing))
    for _ in range(40):
        reconcile_once(world)
        world.finish_deletions()
        world.advance(10)
    settle(world)
    assert uids(world) == before
    assert world.get(MACHINE_DEPLOYMENT, "md")["status"]["rollback"]["fromRevision"] == 2
    assert reconcile_once(world) == 0


@pytest.mark.parametrize("junk", [7, "soon", {"after": 7}, {"after": "soon"}, []])
def test_junk_is_told_with_its_field(junk: Any) -> None:
    owner = machine_deployment("md")
    owner.spec["rollout"] = junk
    found = plan_for(World(owner).view(), MACHINE_DEPLOYMENT, "md")
    assert status_of(found)["errorMessage"].startswith("spec.rollout")
