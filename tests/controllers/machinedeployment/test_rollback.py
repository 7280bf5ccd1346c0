"""onFailure: Rollback. The controller records that a rollout failed, and never writes the user's spec."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.actions import Patch
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, machine_deployment
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.objects import MachineDeploymentBuilder
from tests.builders.plans import condition_of, events, sizes
from tests.controllers.machinedeployment.stories import NEW, OLD, a_set, deployment, machines, set_template, sets_of

BROKEN = "0.0.0"
DEADLINE = 100


def owner(replicas: int = 3, on_failure: str = "Rollback") -> MachineDeploymentBuilder:
    body = machine_deployment("md").replicas(replicas).rolling(1, 1).kubelet(OLD).progress_deadline(DEADLINE)
    return body.rollout(onFailure=on_failure)


def rolled(version: str, *, seconds: float = DEADLINE + 60, on_failure: str = "Rollback") -> World:
    """A rollout to ``version`` whose Machines never come up, so many seconds later."""
    world = World(owner(on_failure=on_failure))
    settle(world)
    set_template(world, version)
    go_on(world, seconds)
    return world


def go_on(world: World, seconds: float) -> None:
    """Rounds for so long; only Machines that are not broken come up."""
    for _ in range(int(seconds // 5)):
        reconcile_once(world)
        good = [m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] != BROKEN]
        world.make_ready(good)
        world.finish_deletions()
        world.change_hosts()
        world.advance(5)


def status(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.get(MACHINE_DEPLOYMENT, "md")["status"]
    return found


def progressing(world: World) -> tuple[str, str]:
    return next((c["status"], c["reason"]) for c in status(world)["conditions"] if c["type"] == "Progressing")


def test_a_rollout_that_fails_is_taken_back_and_the_spec_stays_as_the_user_wrote_it() -> None:
    world = rolled(BROKEN)
    assert sets_of(world) == {OLD: 3, BROKEN: 0}
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {OLD}
    spec = world.get(MACHINE_DEPLOYMENT, "md")["spec"]
    assert spec["template"]["spec"]["versions"]["kubelet"] == BROKEN
    touched = [w for w in world.writes if isinstance(w, Patch) and w.target.kind == MACHINE_DEPLOYMENT]
    assert not any("spec" in write.patch for write in touched)


def test_it_is_told_in_status_condition_and_one_event() -> None:
    world = rolled(BROKEN)
    record = status(world)["rollback"]
    assert (record["fromRevision"], record["toRevision"]) == (2, 1)
    assert "no progress since" in record["message"]
    assert progressing(world) == ("False", "RolledBack")
    assert len([event for event in world.events if event.reason == "RolledBack"]) == 1


def test_the_write_that_takes_it_back_says_so_in_its_condition() -> None:
    """A program that waits for the rollout ends at the first failure: it has to see what was done about it."""
    world = World(owner())
    settle(world)
    set_template(world, BROKEN)
    seen = set()
    for _ in range(40):
        go_on(world, 5)
        seen.add(progressing(world))
    assert ("False", "RolledBack") in seen
    assert ("False", "ProgressDeadlineExceeded") not in seen


def test_then_nothing_is_written_any_more() -> None:
    world = rolled(BROKEN, seconds=400)
    assert reconcile_once(world) == 0


def test_applying_the_failed_template_again_changes_nothing() -> None:
    """A tool that applies manifests does so every few minutes: no fight."""
    world = rolled(BROKEN)
    before = len(world.all(MACHINE_SET))
    set_template(world, BROKEN)
    settle(world)
    assert sets_of(world) == {OLD: 3, BROKEN: 0}
    assert len(world.all(MACHINE_SET)) == before


def test_another_template_ends_it() -> None:
    world = rolled(BROKEN)
    set_template(world, NEW)
    settle(world)
    assert sets_of(world)[NEW] == 3
    assert "rollback" not in status(world)
    assert progressing(world) == ("True", "RolloutComplete")


def test_writing_the_earlier_template_into_the_spec_ends_it_too_and_moves_no_machine() -> None:
    world = rolled(BROKEN)
    settle(world)
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    set_template(world, OLD)
    settle(world)
    assert "rollback" not in status(world)
    assert {m["metadata"]["uid"] for m in world.all(MACHINE)} == before


def test_the_failed_template_is_tried_again_after_a_restart_was_asked_for() -> None:
    world = rolled(BROKEN)
    stamp = {"annotations": {"nodewright.dev/restartedAt": "2026-06-01T13:00:00Z"}}
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["metadata"].update(stamp))
    go_on(world, 30)
    tried = [
        b
        for b in world.all(MACHINE_SET)
        if b["spec"]["replicas"] and "annotations" in b["spec"]["template"]["metadata"]
    ]
    assert len(tried) == 1
    assert "rollback" not in status(world)


def test_labels_still_follow_the_spec_while_it_is_in_force() -> None:
    world = rolled(BROKEN)
    world.change(
        MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["spec"].update(metadata={"labels": {"rack": "7"}})
    )
    go_on(world, 30)
    assert all(m["spec"]["metadata"]["labels"] == {"rack": "7"} for m in world.all(MACHINE))
    assert sets_of(world) == {OLD: 3, BROKEN: 0}


def test_scaling_goes_on_with_the_template_in_force() -> None:
    world = rolled(BROKEN)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(replicas=5))
    settle(world)
    assert sets_of(world) == {OLD: 5, BROKEN: 0}


def test_it_returns_to_what_was_rolled_out_completely_and_not_to_another_failure() -> None:
    """1 is good, 2 fails and is given up for 3, which fails as well: back to 1, not to 2."""
    world = World(owner().history_limit(5))
    settle(world)
    set_template(world, BROKEN)
    go_on(world, 40)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["spec"].update(failureDomain="nowhere"))
    go_on(world, DEADLINE + 60)
    assert status(world)["rollback"]["toRevision"] == 1
    assert sum(b["spec"]["replicas"] for b in world.all(MACHINE_SET)) == 3
    assert sets_of(world)[OLD] == 3


def test_without_an_earlier_template_there_is_nothing_to_go_back_to() -> None:
    world = World(owner().kubelet(BROKEN))
    go_on(world, DEADLINE + 60)
    assert "rollback" not in status(world)
    assert progressing(world) == ("False", "ProgressDeadlineExceeded")


@pytest.mark.parametrize(("on_failure", "left"), [("Continue", 2), ("Pause", 2)])
def test_who_did_not_ask_for_it_gets_none(on_failure: str, left: int) -> None:
    world = rolled(BROKEN, on_failure=on_failure)
    assert "rollback" not in status(world)
    assert sets_of(world)[OLD] == left


def test_a_rollback_that_stands_still_is_seen_through_and_not_taken_back_again() -> None:
    world = rolled(BROKEN)
    world.advance(10_000)
    for body in list(world.all(MACHINE)):
        world.change(
            MACHINE, body["metadata"]["name"], lambda m: m["metadata"].update(deletionTimestamp="2026-06-01T12:00:00Z")
        )
    for _ in range(30):
        reconcile_once(world)
        world.finish_deletions()
        world.advance(5)
    assert status(world)["rollback"]["toRevision"] == 1
    assert len([event for event in world.events if event.reason == "RolledBack"]) == 1
    assert sets_of(world) == {OLD: 3, BROKEN: 0}


def test_a_rollout_that_is_resumed_after_a_long_pause_is_not_late_at_once() -> None:
    """The clock of the deadline does not run while paused; it would be over the moment the pause ends."""
    world = rolled(BROKEN, seconds=20)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=True))
    go_on(world, 20)
    world.advance(10_000)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=False))
    go_on(world, 40)
    assert "rollback" not in status(world)
    assert progressing(world) == ("True", "RollingOut")


@pytest.mark.parametrize("on_failure", ["Pause", "Rollback"])
def test_going_back_to_a_kept_set_long_after_is_not_late_at_once(on_failure: str) -> None:
    """Nothing had moved for a day, and no MachineSet is made: the rollout was stopped before its first step."""
    world = World(owner(on_failure=on_failure))
    settle(world)
    set_template(world, NEW)
    settle(world)
    world.advance(86_400)
    set_template(world, OLD)
    settle(world)
    assert sets_of(world) == {OLD: 3, NEW: 0}


def test_people_who_take_their_time_with_on_delete_are_not_late() -> None:
    world = World(owner().on_delete())
    settle(world)
    set_template(world, NEW)
    settle(world)
    world.advance(10_000)
    reconcile_once(world)
    assert progressing(world)[0] == "True"


def test_a_crash_right_after_the_record_goes_on_where_it_was() -> None:
    world = rolled(BROKEN, seconds=30)
    world.advance(DEADLINE)
    found = plan_for(world.view(), MACHINE_DEPLOYMENT, "md")
    assert events(found)
    world.run(found, limit=1)
    assert "rollback" in status(world)
    go_on(world, 60)
    assert sets_of(world) == {OLD: 3, BROKEN: 0}


def test_a_record_that_can_t_be_read_is_none() -> None:
    body = deployment(3).build()
    body["status"] = {"rollback": {"failedHash": 7}}
    new = a_set("new", 3, NEW)
    found = plan_for(World(body, new, *machines(new, 3)).view(), MACHINE_DEPLOYMENT, "md")
    assert sizes(found) == {}
    assert condition_of(found, "Progressing")["status"] == "True"
