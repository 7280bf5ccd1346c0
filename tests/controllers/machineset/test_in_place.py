"""A set that hands its changed template to its Machines, a few at a time."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.plan import Failed
from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders import World, machine_set
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import creates, deletes, patches
from tests.builders.world import conditions_of

OLD, NEW = "1.34.0", "1.35.0"


def a_world(replicas: int = 4, **update: Any) -> World:
    """A settled set with these Machines, whose template has just changed."""
    owner = machine_set("pool").replicas(replicas).kubelet(OLD)
    owner.spec["inPlaceUpdate"] = {"policy": "Require", **update}
    world = World(owner)
    settle(world)
    world.change(MACHINE_SET, "pool", lambda b: b["spec"]["template"]["spec"]["versions"].update(kubelet=NEW))
    return world


def updated(world: World) -> int:
    return len([m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] == NEW])


def reconciles(world: World, count: int = 3) -> None:
    for _ in range(count):
        reconcile_once(world)
        world.advance(1)


LIMITS: dict[str, tuple[dict[str, Any], int]] = {
    "as many as are not needed": ({"minAvailable": 3}, 1),
    "more": ({"minAvailable": 1}, 3),
    "none that is needed": ({"minAvailable": 4}, 0),
    "no more than may be down": ({"minAvailable": 0, "maxUpdating": 2}, 2),
    "none at all": ({"minAvailable": 0, "maxUpdating": 0}, 0),
    "all but those that stay": ({"minAvailable": 0, "partition": 3}, 1),
}


@pytest.mark.parametrize(("update", "want"), LIMITS.values(), ids=LIMITS.keys())
def test_so_many_at_once(update: dict[str, Any], want: int) -> None:
    world = a_world(**update)
    reconciles(world)
    assert updated(world) == want
    reconciles(world)
    assert updated(world) == want, "their hosts are not changed yet"


def test_the_next_follow_when_their_hosts_are_as_asked() -> None:
    world = a_world(minAvailable=3)
    before = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    for count in (1, 2, 3, 4):
        reconciles(world)
        assert updated(world) == count
        world.change_hosts()
    settle(world)
    assert {m["metadata"]["uid"] for m in world.all(MACHINE)} == before
    assert reconcile_once(world) == 0


def test_nothing_is_made_or_deleted_for_it() -> None:
    world = a_world(minAvailable=2)
    found = plan_for(world.view(), MACHINE_SET, "pool")
    assert creates(found) == []
    assert deletes(found) == []
    assert len(patches(found, MACHINE)) == 2


def test_each_patch_names_the_template_and_is_guarded() -> None:
    (patch,) = patches(plan_for(a_world(minAvailable=3).view(), MACHINE_SET, "pool"), MACHINE).values()
    assert patch.resource_version
    assert patch.patch["spec"] == {"versions": {"kubelet": NEW}}
    assert patch.patch["metadata"]["annotations"][names.IN_PLACE_ANNOTATION] == "Require"


def test_machines_that_are_down_already_go_first() -> None:
    world = a_world(minAvailable=3)
    down = sorted(m["metadata"]["name"] for m in world.all(MACHINE))[2]
    world.break_down(down)
    assert patches(plan_for(world.view(), MACHINE_SET, "pool"), MACHINE).keys() == {down}


def test_a_machine_that_a_person_edited_keeps_its_edit_until_the_template_changes() -> None:
    world = a_world(minAvailable=0)
    settle(world)
    name = world.all(MACHINE)[0]["metadata"]["name"]
    world.change(MACHINE, name, lambda m: m["spec"]["versions"].update(kubelet="9.9.9"))
    settle(world)
    assert world.get(MACHINE, name)["spec"]["versions"]["kubelet"] == "9.9.9"


def test_fields_that_left_the_template_leave_the_machine_and_its_own_stay() -> None:
    world = a_world(minAvailable=0)
    settle(world)
    world.change(MACHINE_SET, "pool", lambda b: b["spec"]["template"]["spec"].pop("versions"))
    settle(world)
    for machine in world.all(MACHINE):
        assert "versions" not in machine["spec"]
        assert machine["spec"]["providerID"]


def test_one_refusal_stops_the_set_that_requires_in_place() -> None:
    world = a_world(minAvailable=3)
    reconciles(world)
    world.change_hosts(refused="another flavor needs another host")
    reconciles(world, 6)
    assert updated(world) == 1
    (found,) = [c for c in conditions_of(world.get(MACHINE_SET, "pool")) if c["type"] == "MachinesUpToDate"]
    assert (found["status"], found["reason"]) == ("False", "NeedsReplacement")
    assert "another flavor" in found["message"]


def test_a_policy_that_was_loosened_lets_the_refused_machine_go_on() -> None:
    world = a_world(minAvailable=3)
    reconciles(world)
    world.change_hosts(refused="another flavor needs another host")
    world.change(MACHINE_SET, "pool", lambda b: b["spec"]["inPlaceUpdate"].update(policy="Prefer"))
    reconciles(world)
    marked = [m for m in world.all(MACHINE) if names.IN_PLACE_ANNOTATION in m["metadata"]["annotations"]]
    assert marked == []


def test_a_machine_of_which_nothing_is_known_is_neither_counted_on_nor_taken_for_free() -> None:
    """Found by simulation: they came up while the provider was down, and all were updated at once."""
    world = a_world(minAvailable=3)
    for machine in world.all(MACHINE)[:2]:
        kept = [c for c in conditions_of(machine) if c["type"] != "UpToDate"]
        world.change(MACHINE, machine["metadata"]["name"], lambda m, kept=kept: m["status"].update(conditions=kept))
    reconciles(world, 5)
    assert updated(world) == 0


def test_labels_flow_first_and_no_machine_is_patched_twice_in_a_round() -> None:
    world = a_world(minAvailable=2)
    world.change(MACHINE_SET, "pool", lambda b: b["spec"]["template"]["metadata"]["labels"].update(tier="new"))
    found = plan_for(world.view(), MACHINE_SET, "pool")
    assert all("spec" not in patch.patch for patch in patches(found, MACHINE).values())
    settle(world)
    assert updated(world) == 4
    assert {m["metadata"]["labels"]["tier"] for m in world.all(MACHINE)} == {"new"}


def test_without_the_field_a_changed_template_is_for_new_machines_only() -> None:
    world = World(machine_set("pool").replicas(2).kubelet(OLD))
    settle(world)
    world.change(MACHINE_SET, "pool", lambda b: b["spec"]["template"]["spec"]["versions"].update(kubelet=NEW))
    settle(world)
    assert updated(world) == 0


@pytest.mark.parametrize("update", [{"policy": "Maybe"}, {"minAvailable": -1}, {"maxUpdating": "all"}, "yes"], ids=str)
def test_what_slipped_past_the_schema_is_named_and_stops_the_set(update: Any) -> None:
    owner = machine_set("pool").replicas(1)
    owner.spec["inPlaceUpdate"] = update
    found = plan_for(World(owner).view(), MACHINE_SET, "pool")
    assert isinstance(found.outcome, Failed)
    assert "spec.inPlaceUpdate" in found.outcome.why
    assert creates(found) == []
