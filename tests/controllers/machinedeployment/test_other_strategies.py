"""OnDelete, Recreate, and scaling while paused."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, is_deleting
from tests.builders import World, machine_deployment
from tests.builders.loop import plan_for, reconcile_once, settle
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


def user_deletes(world: World, version: str) -> None:
    victim = next(m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] == version)
    stamp = {"deletionTimestamp": "2026-06-01T12:00:00Z"}
    world.change(MACHINE, victim["metadata"]["name"], lambda m: m["metadata"].update(stamp))


class TestOnDelete:
    def world(self, replicas: int = 3) -> World:
        world = World(machine_deployment("md").replicas(replicas).on_delete().kubelet(OLD))
        settle(world)
        set_template(world, NEW)
        settle(world)
        return world

    def test_a_new_template_replaces_nothing_by_itself(self) -> None:
        assert sets_of(self.world()) == {OLD: 3, NEW: 0}

    def test_each_machine_that_somebody_deletes_comes_back_new(self) -> None:
        world = self.world()
        for left in (2, 1, 0):
            user_deletes(world, OLD)
            settle(world)
            assert sets_of(world) == {OLD: left, NEW: 3 - left}
        assert {m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)} == {NEW}

    def test_old_sets_don_t_refill_and_the_mark_goes_when_the_strategy_does(self) -> None:
        world = self.world()
        old = next(b for b in world.all(MACHINE_SET) if b["spec"]["replicas"] == 3)
        assert names.DISABLE_CREATE_ANNOTATION in old["metadata"]["annotations"]
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(strategy={"type": "RollingUpdate"}))
        settle(world)
        assert sets_of(world) == {OLD: 0, NEW: 3}
        assert not [
            b for b in world.all(MACHINE_SET) if names.DISABLE_CREATE_ANNOTATION in b["metadata"]["annotations"]
        ]

    def test_a_mark_that_a_person_set_stays(self) -> None:
        world = World(machine_deployment("md").replicas(1).kubelet(OLD))
        settle(world)
        (body,) = world.all(MACHINE_SET)
        mark = {names.DISABLE_CREATE_ANNOTATION: "mine"}
        world.change(MACHINE_SET, body["metadata"]["name"], lambda b: b["metadata"]["annotations"].update(mark))
        settle(world)
        (body,) = world.all(MACHINE_SET)
        assert body["metadata"]["annotations"][names.DISABLE_CREATE_ANNOTATION] == "mine"

    def test_empty_old_sets_beyond_the_limit_are_forgotten_though_the_rollout_never_ends(self) -> None:
        world = World(machine_deployment("md").replicas(3).on_delete().kubelet(OLD).history_limit(1))
        settle(world)
        for version in ("1.40.1", "1.40.2", "1.40.3", "1.40.4"):
            set_template(world, version)
            settle(world)
        assert sets_of(world) == {OLD: 3, "1.40.3": 0, "1.40.4": 0}

    def test_more_replicas_are_new_ones(self) -> None:
        world = self.world()
        set_replicas(world, 5)
        settle(world)
        assert sets_of(world) == {OLD: 3, NEW: 2}

    def test_fewer_replicas_take_old_ones_and_the_unhealthy_first(self) -> None:
        owner = deployment(2).on_delete()
        old, new = a_set("old", 2), a_set("new", 1, NEW)
        objects: list[Any] = [old, *machines(old, 1, unready=1), new, *machines(new, 1)]
        assert next_sizes(owner, objects) == {"old": 1}


class TestRecreate:
    def test_new_machines_wait_until_the_last_old_host_is_gone(self) -> None:
        world = World(machine_deployment("md").replicas(2).strategy("Recreate").kubelet(OLD))
        settle(world)
        set_template(world, NEW)
        for _ in range(10):
            reconcile_once(world)
            world.advance(3)
        assert sets_of(world) == {OLD: 0, NEW: 0}, "hosts of old Machines are still there"
        settle(world)
        assert sets_of(world) == {OLD: 0, NEW: 2}

    def test_versions_never_mix(self) -> None:
        world = World(machine_deployment("md").replicas(3).strategy("Recreate").kubelet(OLD))
        settle(world)
        set_template(world, NEW)
        for _ in range(30):
            reconcile_once(world)
            world.make_ready()
            assert len({m["spec"]["versions"]["kubelet"] for m in world.all(MACHINE)}) <= 1
            world.finish_deletions()
            world.advance(3)


class TestPaused:
    def mid_rollout(self, replicas: int = 10) -> World:
        """10 replicas, surge 3, unavailable 2: 8 old ones and 5 new ones, then ``spec.paused``."""
        world = World(machine_deployment("md").replicas(replicas).rolling(3, 2).kubelet(OLD))
        settle(world)
        set_template(world, NEW)
        for _ in range(10):
            reconcile_once(world)
            world.finish_deletions()
            world.advance(3)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=True))
        return world

    def test_a_paused_rollout_stands_still_though_new_machines_become_ready(self) -> None:
        world = self.mid_rollout()
        before = sets_of(world)
        settle(world)
        assert sets_of(world) == before == {OLD: 8, NEW: 5}

    def test_a_new_template_makes_no_set_while_paused(self) -> None:
        world = self.mid_rollout()
        set_template(world, "1.99.0")
        settle(world)
        assert len(world.all(MACHINE_SET)) == 2

    def test_more_replicas_are_shared_in_proportion(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 20)
        settle(world)
        assert sets_of(world) == {OLD: 14, NEW: 9}, "23 = 20 and a surge of 3; 8:5 of 13 before"

    def test_fewer_replicas_take_the_machines_that_are_not_available_first(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 5)
        settle(world, machines_work=False)
        assert sets_of(world) == {OLD: 5, NEW: 0}
        assert all((m.get("status") or {}).get("nodeRef") for m in world.all(MACHINE) if not is_deleting(m))

    def test_nothing_is_left_for_no_replicas(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 0)
        settle(world)
        assert sets_of(world) == {OLD: 0, NEW: 0}

    def test_a_single_set_just_follows(self) -> None:
        world = World(machine_deployment("md").replicas(2).kubelet(OLD).paused())
        settle(world)
        assert world.all(MACHINE_SET) == [], "paused from the start: no rollout, so no set"
        world = World(machine_deployment("md").replicas(2).kubelet(OLD))
        settle(world)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].update(paused=True, replicas=4))
        settle(world)
        assert sets_of(world) == {OLD: 4}

    def test_machines_that_still_have_to_go_take_up_room(self) -> None:
        """Found by simulation: paused while an old set had its size but not yet its victim, it overshot."""
        md = deployment(3, surge=0, unavailable=1).paused()
        old, new = a_set("md-old", 0, of=md), a_set("md-new", 2, NEW, of=md)
        assert next_sizes(md, old, new, machines(old, available=1), machines(new, available=2)) == {}
        assert next_sizes(md, old, new, machines(new, available=2)) == {"md-new": 3}

    def test_the_rollout_goes_on_when_the_pause_ends(self) -> None:
        world = self.mid_rollout()
        set_replicas(world, 6)
        settle(world)
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].pop("paused"))
        settle(world)
        assert sets_of(world) == {OLD: 0, NEW: 6}

    def test_the_autoscaler_sees_the_pause_and_its_end(self) -> None:
        """It reads only the annotation cluster.x-k8s.io/paused."""
        world = self.mid_rollout()
        settle(world)
        assert names.CAPI_PAUSED_ANNOTATION in world.get(MACHINE_DEPLOYMENT, "md")["metadata"]["annotations"]
        world.change(MACHINE_DEPLOYMENT, "md", lambda b: b["spec"].pop("paused"))
        settle(world)
        assert names.CAPI_PAUSED_ANNOTATION not in world.get(MACHINE_DEPLOYMENT, "md")["metadata"]["annotations"]

    @pytest.mark.parametrize("cut", range(6))
    def test_a_crash_while_sharing_ends_in_the_same_sizes(self, cut: int) -> None:
        world = self.mid_rollout()
        set_replicas(world, 20)
        world.run(plan_for(world.view(), MACHINE_DEPLOYMENT, "md"), limit=cut)
        settle(world)
        assert sets_of(world) == {OLD: 14, NEW: 9}
