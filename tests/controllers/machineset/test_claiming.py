"""Adopting and releasing Machines."""

from __future__ import annotations

from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders import FakeView, World, cluster, machine, machine_set
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.objects import Builder, MachineBuilder
from tests.builders.plans import condition_of, creates, deletes, patches


def pool(replicas: int) -> Builder:
    return machine_set("pool").replicas(replicas).observed()


def lost(name: str) -> MachineBuilder:
    return machine(name).labelled(pool="pool").ready()


def plan(*objects: Builder) -> Plan:
    return plan_for(FakeView(*objects), MACHINE_SET, "pool")


def test_an_orphan_that_matches_is_adopted_with_a_guard_on_both_sides() -> None:
    found = plan(pool(1).version("7"), lost("a").version("9"))
    adoption = patches(found, MACHINE)["a"]
    assert adoption.resource_version == "9"
    assert adoption.target.uid == "uid-a"
    (reference,) = adoption.patch["metadata"]["ownerReferences"]
    assert reference["uid"] == "uid-pool"
    guard = patches(found, MACHINE_SET, "status")["pool"]
    assert guard.resource_version == "7", "a set deleted in the meantime would drag the Machine with it"


def test_references_of_other_owners_are_kept() -> None:
    orphan = lost("a").owned_by(cluster("c"))
    orphan.metadata["ownerReferences"][0]["controller"] = False
    adoption = patches(plan(pool(1), orphan), MACHINE)["a"]
    assert [reference["uid"] for reference in adoption.patch["metadata"]["ownerReferences"]] == ["uid-c", "uid-pool"]


def test_deleting_orphans_and_those_of_other_namespaces_are_left_alone() -> None:
    elsewhere = machine("b", "elsewhere").labelled(pool="pool").ready()
    assert patches(plan(pool(0), lost("a").deleting(), elsewhere), MACHINE) == {}


def test_a_deleting_set_adopts_nobody() -> None:
    assert patches(plan(pool(1).deleting(), lost("a")), MACHINE) == {}


def test_a_machine_whose_labels_stopped_matching_is_released_and_still_counted() -> None:
    stray = machine("a").of(pool(1)).ready().labelled(pool="aside").version("9")
    found = plan(pool(1), stray)
    release = patches(found, MACHINE)["a"]
    assert release.patch["metadata"]["ownerReferences"] == []
    assert release.resource_version == "9"
    assert creates(found) == [], "its place is filled when the release is seen"


def test_a_machine_that_leaves_by_its_labels_takes_no_other_one_with_it() -> None:
    """Three of two asked for, one of them a stray: releasing it and deleting another one would leave one."""
    owner = pool(2)
    stray = machine("a").of(owner).ready().labelled(pool="aside")
    found = plan(owner, stray, machine("b").of(owner).ready(), machine("c").of(owner).ready())
    assert deletes(found) == []
    assert patches(found, MACHINE)["a"].patch["metadata"]["ownerReferences"] == []


def test_a_released_machine_is_replaced_and_lives_on() -> None:
    world = World(pool(1), machine("a").of(pool(1)).ready().labelled(pool="aside"))
    settle(world)
    machines = {m["metadata"]["name"]: m for m in world.all(MACHINE)}
    assert len(machines) == 2
    assert machines["a"]["metadata"]["ownerReferences"] == []


def test_a_released_machine_that_matches_again_comes_back() -> None:
    back = lost("a").annotated("nodewright.dev/released-from", "uid-pool")
    adoption = patches(plan(pool(1), back), MACHINE)["a"]
    assert adoption.patch["metadata"]["annotations"] == {"nodewright.dev/released-from": None}


def test_strays_are_kept_and_counted_once_too_many_released_ones_exist() -> None:
    released = [
        machine(f"old-{n}").labelled(pool="aside").annotated("nodewright.dev/released-from", "uid-pool")
        for n in range(3)
    ]
    stray = machine("a").of(pool(1)).ready().labelled(pool="aside")
    found = plan(pool(2), stray, *released)
    assert patches(found, MACHINE) == {}
    assert len(creates(found)) == 1, "one of two is there"
    assert condition_of(found, "Frozen")["status"] == "True"


def test_more_orphans_than_places_are_adopted_and_the_surplus_goes_by_the_usual_order() -> None:
    world = World(pool(1), lost("a"), lost("b").marked_for_deletion())
    settle(world)
    assert [m["metadata"]["name"] for m in world.all(MACHINE)] == ["a"]
    assert reconcile_once(world) == 0


def test_a_set_with_an_empty_selector_claims_nobody() -> None:
    broken = machine_set("pool").replicas(1).selecting({})
    found = plan(broken, lost("a"))
    assert patches(found, MACHINE) == {}
    assert deletes(found) == []
