"""A set hands an edit of its MachineClass to running Machines within its budget, and not at all without one."""

from __future__ import annotations

from typing import Any

from controllers.kernel.provider_config import class_digest
from controllers.kernel.refs import MACHINE, MACHINE_CLASS, MACHINE_SET
from tests.builders import World, machine_class, machine_set
from tests.builders.loop import reconcile_once, settle
from tests.builders.world import conditions_of

GIVEN = "nodewright.dev/machine-class"
SPEC = {"providerConfig": {"valueFrom": {"machineClass": {"name": "small"}}}}


def digest(world: World) -> str:
    return class_digest(SPEC, "default", world.view())


def hosts_have(world: World, names: list[str]) -> None:
    """The Machine controller's part: these hosts are as the class says now."""
    for name in names:
        world.change(MACHINE, name, lambda m: m["status"].update(machineClassDigest=digest(world)))


def given(world: World) -> list[str]:
    """Machines that were given the class as it is."""
    now = digest(world)
    found = (m["metadata"] for m in world.all(MACHINE))
    return sorted(meta["name"] for meta in found if meta["annotations"].get(GIVEN) == now)


def a_world(**update: Any) -> World:
    """Four Machines that are as their class asks; it has just been edited."""
    owner = machine_set("pool").replicas(4)
    owner.template["spec"]["providerConfig"] = SPEC["providerConfig"]
    if update:
        owner.spec["inPlaceUpdate"] = update
    world = World(owner, machine_class("small").provider_config(cpus=1))
    settle(world)
    assert len(given(world)) == 4, "they are born with it"
    hosts_have(world, given(world))
    settle(world)
    world.change(MACHINE_CLASS, "small", lambda body: body["providerConfig"].update(cpus=2))
    return world


def test_without_a_budget_running_machines_keep_what_they_have() -> None:
    world = a_world()
    settle(world)
    assert given(world) == []


def test_new_machines_get_the_class_as_it_is() -> None:
    world = a_world()
    world.change(MACHINE_SET, "pool", lambda body: body["spec"].update(replicas=5))
    settle(world)
    assert len(given(world)) == 1


def test_no_more_at_once_than_the_budget_allows_though_nobody_says_yet_that_it_is_outdated() -> None:
    """Their UpToDate is still of the class before: the hosts are known by the digest that they have."""
    world = a_world(minAvailable=3)
    for _ in range(5):
        reconcile_once(world)
    first = given(world)
    assert len(first) == 1
    hosts_have(world, first)
    for _ in range(5):
        reconcile_once(world)
    assert len(given(world)) == 2
    for _ in range(4):
        hosts_have(world, given(world))
        settle(world)
    assert len(given(world)) == 4
    assert reconcile_once(world) == 0


def test_one_that_was_never_given_a_class_is_known_by_its_host() -> None:
    world = a_world(minAvailable=0)
    for machine in world.all(MACHINE):
        world.change(MACHINE, machine["metadata"]["name"], lambda m: m["metadata"]["annotations"].pop(GIVEN))
    settle(world)
    assert len(given(world)) == 4


def test_a_budget_of_none_is_none() -> None:
    world = a_world(minAvailable=0, maxUpdating=0)
    settle(world)
    assert given(world) == []
    said = next(c for c in conditions_of(world.get(MACHINE_SET, "pool")) if c["type"] == "MachinesUpToDate")
    assert (said["status"], said["message"]) == ("False", "4 Machines of an earlier template")


def test_a_host_that_got_the_class_on_its_own_way_is_not_waited_for() -> None:
    """Its Machine was made from a view without the edit, its host after it."""
    world = a_world(minAvailable=0, maxUpdating=0)
    hosts_have(world, [m["metadata"]["name"] for m in world.all(MACHINE)])
    settle(world)
    said = next(c for c in conditions_of(world.get(MACHINE_SET, "pool")) if c["type"] == "MachinesUpToDate")
    assert said["status"] == "True"
