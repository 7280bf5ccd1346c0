"""Rollouts in place: sizes, history, undo, and what stops them."""

from __future__ import annotations

from typing import Any

from controllers.kernel.actions import Create, Delete
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, machine_deployment
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import condition_of, sizes
from tests.controllers.machinedeployment.stories import NEW, OLD, a_set, deployment, machines, set_template

LATER = "1.36.0"


def a_world(policy: str = "Require", surge: int = 0, unavailable: int = 1, **fields: Any) -> World:
    owner = machine_deployment("md").replicas(3).rolling(surge, unavailable).kubelet(OLD).history_limit(5)
    world = World(owner.rollout(inPlace=policy, **fields))
    settle(world)
    return world


def revisions(world: World) -> dict[str, tuple[str, int]]:
    """Kubelet → revision and replicas, of each MachineSet."""
    return {
        body["spec"]["template"]["spec"]["versions"]["kubelet"]: (
            body["metadata"]["annotations"]["machinedeployment.clusters.k8s.io/revision"],
            body["spec"]["replicas"],
        )
        for body in world.all(MACHINE_SET)
    }


def condition(world: World, type_: str) -> tuple[str, str]:
    found = world.get(MACHINE_DEPLOYMENT, "md")["status"]["conditions"]
    return next((c["status"], c["reason"]) for c in found if c["type"] == type_)


def test_no_machine_is_made_or_deleted_and_the_history_is_kept() -> None:
    world = a_world()
    before = len(world.writes)
    set_template(world, NEW)
    settle(world)
    touched = [w for w in world.writes[before:] if isinstance(w, Create | Delete)]
    assert [w.kind for w in touched if isinstance(w, Create)] == [MACHINE_SET]
    assert not [w for w in touched if isinstance(w, Delete)]
    assert revisions(world) == {OLD: ("1", 0), NEW: ("2", 3)}
    assert condition(world, "Progressing") == ("True", "RolloutComplete")
    assert condition(world, "MachinesUpToDate") == ("True", "UpToDate")
    assert reconcile_once(world) == 0


def test_going_back_gives_the_earlier_template_a_new_number_and_keeps_the_machines() -> None:
    world = a_world()
    set_template(world, NEW)
    settle(world)
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    set_template(world, OLD)
    settle(world)
    assert {m["metadata"]["uid"] for m in world.all(MACHINE)} == before
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {OLD}
    assert revisions(world)[NEW] == ("2", 0)


def test_many_revisions_never_collide_and_are_forgotten_beyond_the_limit() -> None:
    world = a_world()
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(revisionHistoryLimit=2))
    for version in (NEW, LATER, OLD, NEW, "1.37.0", OLD):
        set_template(world, version)
        settle(world)
        assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {version}
    assert len(world.all(MACHINE_SET)) <= 3
    assert "collisionCount" not in world.get(MACHINE_DEPLOYMENT, "md")["status"]


def test_while_it_goes_on_the_status_counts_machines_and_not_sets() -> None:
    world = a_world()
    set_template(world, NEW)
    for _ in range(6):
        reconcile_once(world)
        world.advance(3)
    status = world.get(MACHINE_DEPLOYMENT, "md")["status"]
    assert status["updatedReplicas"] == 1
    assert condition(world, "RollingOut") == ("True", "RollingOut")
    assert condition(world, "MachinesUpToDate") == ("False", "NotUpToDate")


def test_a_provider_that_can_t_stops_it_and_the_deployment_says_so() -> None:
    world = a_world()
    set_template(world, NEW)
    for _ in range(8):
        reconcile_once(world)
        world.change_hosts(refused="another flavor needs another host")
        world.advance(3)
    assert condition(world, "MachinesUpToDate") == ("False", "NeedsReplacement")
    assert len([m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] == OLD]) == 2


def test_it_is_taken_back_in_place_when_that_is_asked_for() -> None:
    world = a_world(onFailure="Rollback")
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(progressDeadlineSeconds=60))
    settle(world)
    set_template(world, NEW)
    for _ in range(40):
        reconcile_once(world)
        world.change_hosts(refused="" if "rollback" in _status(world) else "not in this life")
        world.advance(3)
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {OLD}
    assert condition(world, "Progressing") == ("False", "RolledBack")
    assert reconcile_once(world) == 0


def test_machines_of_another_set_are_not_replaced_where_in_place_is_required() -> None:
    """A rollout that began by replacing: the choice is the user's."""
    owner = deployment(4, 1, 1).rollout(inPlace="Require")
    old, new = a_set("old", 2), a_set("new", 2, NEW)
    found = plan_for(World(owner, old, new, *machines(old, 2), *machines(new, 2)).view(), MACHINE_DEPLOYMENT, "md")
    assert sizes(found) == {}
    assert condition_of(found, "RollingOut")["reason"] == "NeedsReplacement"


def test_a_pause_holds_what_was_not_handed_out_yet() -> None:
    world = a_world()
    set_template(world, NEW)
    for _ in range(3):
        reconcile_once(world)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=True))
    settle(world)
    assert len([m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] == OLD]) == 2
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=False))
    settle(world)
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {NEW}


def test_a_restart_replaces_since_no_host_could_be_changed_for_it() -> None:
    world = a_world("Prefer")
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    stamp = {"annotations": {"nodewright.dev/restartedAt": "2026-06-01T13:00:00Z"}}
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["template"]["metadata"].update(stamp))
    settle(world)
    assert not before & {m["metadata"]["uid"] for m in world.all(MACHINE)}


def _status(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.get(MACHINE_DEPLOYMENT, "md")["status"]
    return found


def test_who_scales_down_is_obeyed_before_the_set_gets_another_template() -> None:
    """Seed 34: two rounds went by for the template, in which the set replaced a deleted Machine for its former size."""
    world = a_world(surge=2, unavailable=0)
    set_template(world, NEW)
    while not any(body["spec"]["replicas"] == 5 for body in world.all(MACHINE_SET)):
        reconcile_once(world)
    set_template(world, LATER)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(replicas=1))
    decided = plan_for(world.view(), MACHINE_DEPLOYMENT, "md")
    assert set(sizes(decided).values()) == {3}
    settle(world)
    assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {LATER}
    assert revisions(world)[LATER][1] == 1


def test_a_surge_that_nobody_took_back_stays_while_the_set_gets_another_template() -> None:
    world = a_world(surge=2, unavailable=0)
    set_template(world, NEW)
    while not any(body["spec"]["replicas"] == 5 for body in world.all(MACHINE_SET)):
        reconcile_once(world)
    set_template(world, LATER)
    assert not sizes(plan_for(world.view(), MACHINE_DEPLOYMENT, "md"))
