"""partition: so many Machines stay with the old template, as a StatefulSet's; and scaling in the middle."""

from __future__ import annotations

import pytest

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT
from tests.builders import World, machine, machine_deployment
from tests.builders.loop import reconcile_once, settle
from tests.builders.objects import MachineSetBuilder
from tests.controllers.machinedeployment.stories import (
    NEW,
    OLD,
    a_set,
    deployment,
    machines,
    next_sizes,
    set_replicas,
    set_template,
    sets_of,
)


def rolled(replicas: int, partition: int | str, surge: int = 2, unavailable: int = 0) -> World:
    owner = machine_deployment("md").replicas(replicas).rolling(surge, unavailable).kubelet(OLD)
    world = World(owner.rollout(partition=partition))
    settle(world)
    set_template(world, NEW)
    settle(world)
    return world


def condition(world: World, type_: str) -> tuple[str, str]:
    found = world.get(MACHINE_DEPLOYMENT, "md")["status"]["conditions"]
    return next((c["status"], c["reason"]) for c in found if c["type"] == type_)


SHARES = {0: (0, 10), 8: (8, 2), "80%": (8, 2), "75%": (8, 2), "1%": (1, 9), "100%": (10, 0), 12: (10, 0)}


@pytest.mark.parametrize("partition", SHARES)
def test_so_many_stay_old_and_a_share_is_rounded_up(partition: int | str) -> None:
    old, new = SHARES[partition]
    assert sets_of(rolled(10, partition)) == {OLD: old, NEW: new}


def test_a_canary_that_is_there_is_told_and_is_not_late() -> None:
    world = rolled(5, 4)
    world.advance(10_000)
    assert reconcile_once(world) == 0
    assert condition(world, "RollingOut") == ("False", "PartitionReached")
    assert condition(world, "Progressing") == ("True", "RolloutComplete")
    assert "completedHash" in world.get(MACHINE_DEPLOYMENT, "md")["status"]


def test_the_rest_follows_when_the_partition_goes() -> None:
    world = rolled(5, 4)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["strategy"]["rollingUpdate"].update(partition=0))
    settle(world)
    assert sets_of(world) == {OLD: 0, NEW: 5}


def test_a_higher_partition_brings_no_old_machine_back() -> None:
    world = rolled(6, 3)
    world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"]["strategy"]["rollingUpdate"].update(partition=5))
    settle(world)
    assert sets_of(world) == {OLD: 3, NEW: 3}


def test_an_old_machine_that_is_lost_comes_back_old() -> None:
    """A StatefulSet does so too: the canary must not grow by accidents."""
    world = rolled(4, 3)
    lost = next(m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] == OLD)
    stamp = {"deletionTimestamp": "2026-06-01T12:00:00Z"}
    world.change(MACHINE, lost["metadata"]["name"], lambda m: m["metadata"].update(stamp))
    settle(world)
    assert sets_of(world) == {OLD: 3, NEW: 1}


def test_a_canary_is_not_taken_for_complete_so_a_failure_goes_back_behind_it() -> None:
    world = rolled(4, 3)
    status = world.get(MACHINE_DEPLOYMENT, "md")["status"]
    before = World(machine_deployment("md").replicas(4).kubelet(OLD))
    settle(before)
    assert status["completedHash"] == before.get(MACHINE_DEPLOYMENT, "md")["status"]["completedHash"]


def sized(body: MachineSetBuilder) -> MachineSetBuilder:
    """As it was when the deployment had 3 replicas and a surge of 3."""
    body.annotated(names.DESIRED_REPLICAS_ANNOTATION, "3")
    return body.annotated(names.MAX_REPLICAS_ANNOTATION, "6")


def a_choice(of: MachineSetBuilder, *leaving: str) -> MachineSetBuilder:
    """The set has written down who goes."""
    of.status["ordinals"] = {"next": 3, "leaving": list(leaving)}
    return of


class TestScalingInTheMiddle:
    def mid_rollout(self) -> World:
        """10 replicas, surge 3, unavailable 2: 8 old and 5 new ones, which are not up yet."""
        world = World(machine_deployment("md").replicas(10).rolling(3, 2).kubelet(OLD))
        settle(world)
        set_template(world, NEW)
        for _ in range(10):
            reconcile_once(world)
            world.finish_deletions()
            world.advance(3)
        assert sets_of(world) == {OLD: 8, NEW: 5}
        return world

    def test_more_replicas_are_shared_so_that_the_new_template_gets_no_more_than_its_part(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 20)
        reconcile_once(world)
        assert sets_of(world) == {OLD: 14, NEW: 9}

    def test_fewer_replicas_take_those_that_are_not_up(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 8)
        reconcile_once(world)
        assert sets_of(world) == {OLD: 8, NEW: 3}

    def test_machines_that_were_to_go_and_are_there_yet_are_taken_back_before_others_are_made(self) -> None:
        """Found by simulation: scaled up between the decision and the delete, an old Machine went all the same."""
        md = deployment(8, 3, 2)
        old, new = sized(a_set("old", 1, of=md)), sized(a_set("new", 3, NEW, of=md))
        found = next_sizes(md, old, machines(old, 3), new, machines(new, 1, pending=2))
        assert found["old"] >= 3

    def test_so_are_those_that_their_set_has_chosen_already(self) -> None:
        """Seed 1289: the process died between the choice and the delete, and somebody scaled up in between."""
        md = deployment(6, 3)
        old, new = sized(a_set("old", 1, of=md)), sized(a_set("new", 2, NEW, of=md))
        chosen = a_choice(old, "old-ok-1", "old-ok-2")
        assert next_sizes(md, chosen, machines(old, 3), new, machines(new, 2)) == {"old": 3, "new": 4}

    def test_but_not_one_that_goes_for_its_health(self) -> None:
        """Its set takes that choice back at no size: another would be made in its place."""
        md = deployment(6, 3)
        old, new = sized(a_set("old", 1, of=md)), sized(a_set("new", 2, NEW, of=md))
        sick = machine("old-sick").of(old).not_ready().condition("HealthCheckSucceeded", "False", "UnhealthyNode")
        sick.condition("OwnerRemediated", "False", "WaitingForRemediation")
        chosen = a_choice(old, "old-ok-1", "old-sick")
        assert next_sizes(md, chosen, machines(old, 2), sick, new, machines(new, 2))["old"] == 2

    def test_the_rollout_goes_on_afterwards(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 20)
        settle(world)
        assert sets_of(world) == {OLD: 0, NEW: 20}
