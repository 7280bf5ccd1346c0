"""The arithmetic of a rolling update: scenarios a–g, and tables around them."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, machine, machine_deployment
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.objects import MachineBuilder, MachineSetBuilder
from tests.builders.plans import created_names, creates, sizes
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


def test_a_the_unhealthy_old_machine_goes_at_once() -> None:
    """3/1/0, old {3, 2 available}, new {1 available}: peers hit a healthy one, or wait for a deadlock breaker."""
    old, new = a_set("old", 3), a_set("new", 1, NEW)
    assert next_sizes(deployment(3), old, machines(old, 2, unready=1), new, machines(new, 1)) == {"old": 2}


def test_a_and_it_is_the_unhealthy_one_that_the_set_deletes() -> None:
    world = World(machine_deployment("md").replicas(3).kubelet(OLD))
    settle(world)
    broken = world.all(MACHINE)[1]["metadata"]["name"]
    world.break_down(broken)
    set_template(world, NEW)
    for _ in range(6):
        reconcile_once(world)
        world.advance(3)
    world.make_ready()
    for _ in range(6):
        reconcile_once(world)
        world.advance(3)
    gone = [m["metadata"]["name"] for m in world.all(MACHINE) if m["metadata"].get("deletionTimestamp")]
    assert broken in gone


def test_b_a_broken_template_stops_with_the_minimum_untouched() -> None:
    """10 replicas, surge 3, unavailable 2: new 3 → 5, old 8, then frozen with 8 available."""
    world = World(machine_deployment("md").replicas(10).rolling("25%", "25%").kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    for _ in range(20):
        reconcile_once(world)
        world.finish_deletions()
        world.advance(3)
    assert sets_of(world) == {OLD: 8, NEW: 5}
    ready = [m for m in world.all(MACHINE) if (m.get("status") or {}).get("nodeRef")]
    assert len(ready) == 8
    assert reconcile_once(world) == 0


def test_c_a_third_template_makes_the_second_an_old_one_whose_unavailable_machines_go_first() -> None:
    first, second, third = a_set("first", 8, age=3000), a_set("second", 5, "1.34.5", age=2000), a_set("third", 0, NEW)
    found = next_sizes(
        deployment(10, "25%", "25%"), first, machines(first, 8), second, machines(second, 0, pending=5), third
    )
    assert found == {"second": 0}


def test_d_scaling_down_in_a_rollout_counts_what_still_has_to_go() -> None:
    """10 → 4 in a rollout: never more than 4 + surge are *created*, whatever is still going."""
    world = World(machine_deployment("md").replicas(10).rolling(3, 2).kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    for _ in range(4):
        reconcile_once(world)
        world.advance(3)
    world.make_ready()
    set_replicas(world, 4)
    before = len(world.writes)
    settle(world)
    assert sets_of(world) == {OLD: 0, NEW: 4}
    created_after = [w for w in world.writes[before:] if type(w).__name__ == "Create"]
    assert len(created_after) <= 1


def test_d_the_ceiling_after_scaling_down_is_kept_by_new_machines_that_are_not_ready() -> None:
    old, new = a_set("old", 8), a_set("new", 5, NEW)
    found = next_sizes(deployment(4, 1, 1), old, machines(old, 8), new, machines(new, 0, pending=5))
    assert found["old"] >= 3, "the minimum of 3 must stay available"
    assert found["old"] + found["new"] <= 5, "4 and a surge of 1"


def test_d_pending_deletions_take_room_from_the_surge() -> None:
    """The old set was lowered, but its Machine is still there and not even chosen: the ceiling counts it."""
    old, new = a_set("old", 2), a_set("new", 1, NEW)
    assert next_sizes(deployment(3), old, machines(old, 3), new, machines(new, 1)) == {}


SCALED_DOWN: dict[str, tuple[Any, tuple[int, int], tuple[int, int], dict[str, int]]] = {
    "what the old set has to give up takes the new set's room": (deployment(1, 2), (2, 3), (2, 0), {"new": 0}),
    "also where the sizes fit and the Machines do not": (deployment(1, 2), (2, 3), (1, 0), {"new": 0}),
    "there is room for one of two": (deployment(2, 2), (2, 3), (3, 0), {"new": 1}),
    "none has to go that is there": (deployment(2, 2), (2, 3), (1, 1), {}),
    "nobody waits where all that should be is there": (deployment(2, 2), (3, 3), (2, 1), {"new": 1}),
}
"""deployment, old (replicas, Machines), new (replicas, Machines), sizes that are set."""


@pytest.mark.parametrize("case", SCALED_DOWN)
def test_d_scaled_down_in_a_rollout_no_set_makes_a_machine_beyond_the_ceiling(case: str) -> None:
    """Seed 614: the ceiling was held by replicas, while the old set had not yet chosen who goes."""
    owner, (old_size, old_there), (new_size, new_there), want = SCALED_DOWN[case]
    old, new = scaled_for_3(a_set("old", old_size)), scaled_for_3(a_set("new", new_size, NEW))
    found = next_sizes(owner, old, machines(old, old_there), new, machines(new, new_there))
    assert found == want


def scaled_for_3(of: MachineSetBuilder) -> MachineSetBuilder:
    return of.annotated(names.DESIRED_REPLICAS_ANNOTATION, "3").annotated(names.MAX_REPLICAS_ANNOTATION, "5")


def test_d_nor_does_the_only_set_that_is_left_with_replicas() -> None:
    owner = deployment(2)
    owner.spec["paused"] = True
    old, new = scaled_for_3(a_set("old", 0)), scaled_for_3(a_set("new", 3, NEW))
    going = machines(old, 2)
    assert next_sizes(owner, old, going, new) == {"new": 1}
    assert next_sizes(owner, old, going[:1], a_set("new", 1, NEW)) == {"new": 2}, "it gets there"


def test_d_a_new_set_that_is_cut_waits_for_what_the_old_one_gives_up() -> None:
    old, new = a_set("old", 2), a_set("new", 4, NEW)
    found = next_sizes(deployment(3, 1, 1), old, machines(old, 4), new)
    assert found == {"new": 0}


def test_e_going_back_makes_the_kept_set_current_with_its_machines() -> None:
    """Rolled back in the middle: the Machines that are left of the earlier template stay, none is made twice."""
    world = World(machine_deployment("md").replicas(3).kubelet(OLD))
    settle(world)
    originals = {m["metadata"]["uid"] for m in world.all(MACHINE)}
    set_template(world, NEW)
    for _ in range(3):
        reconcile_once(world)
        world.advance(3)
    set_template(world, OLD)
    settle(world)
    assert sets_of(world) == {OLD: 3, NEW: 0}
    assert {m["metadata"]["uid"] for m in world.all(MACHINE)} == originals


def test_f_a_set_that_was_just_lowered_is_not_lowered_again() -> None:
    """Its Machines are all still there and available; who goes is known, so the budget is known to be spent."""
    old, new = a_set("old", 2), a_set("new", 1, NEW)
    assert "old" not in next_sizes(deployment(3), old, machines(old, 3), new, machines(new, 1))


def test_g_a_new_set_that_is_too_big_is_cut_at_its_unavailable_machines() -> None:
    old, new = a_set("old", 2), a_set("new", 8, NEW)
    found = next_sizes(deployment(4, 0, 1), old, machines(old, 2), new, machines(new, 2, pending=6))
    assert found["new"] + found.get("old", 2) >= 3
    assert found["new"] <= 4


STEPS: dict[str, tuple[Any, Any, Any, dict[str, int]]] = {
    "the first new Machine uses the surge": (deployment(3), (3, 3, 0), (0, 0, 0), {"new": 1}),
    "an old one goes when a new one is available": (deployment(3), (3, 3, 0), (1, 1, 0), {"old": 2}),
    "nothing happens while the new one starts": (deployment(3), (3, 3, 0), (1, 0, 1), {}),
    "both move when both limits allow": (deployment(10, 3, 2), (10, 10, 0), (0, 0, 0), {"new": 3, "old": 8}),
    "without a surge an old one must go first": (deployment(3, 0, 1), (3, 3, 0), (0, 0, 0), {"old": 2}),
    "and then a new one comes": (deployment(3, 0, 1), (2, 2, 0), (0, 0, 0), {"new": 1}),
    "all unhealthy old ones that are not needed go at once": (deployment(5, 5, 0), (5, 1, 4), (5, 5, 0), {"old": 0}),
    "unhealthy old ones stay while even they are needed as hope": (
        deployment(4, 0, 1),
        (4, 1, 3),
        (0, 0, 0),
        {"old": 3},
    ),
    "more replicas go to the new set": (deployment(6), (1, 1, 0), (2, 2, 0), {"new": 6}),
    "nothing is left to do": (deployment(3), (0, 0, 0), (3, 3, 0), {}),
    "fewer replicas": (deployment(1), (0, 0, 0), (3, 3, 0), {"new": 1}),
    "none at all": (deployment(0), (2, 2, 0), (1, 1, 0), {"new": 0, "old": 0}),
}


@pytest.mark.parametrize(("owner", "old", "new", "want"), STEPS.values(), ids=STEPS.keys())
def test_steps(owner: Any, old: tuple[int, int, int], new: tuple[int, int, int], want: dict[str, int]) -> None:
    """``old`` and ``new``: replicas, available, without a Node."""
    old_set, new_set = a_set("old", old[0]), a_set("new", new[0], NEW)
    found = next_sizes(
        owner,
        old_set,
        machines(old_set, old[1], pending=old[2]),
        new_set,
        machines(new_set, new[1], pending=new[2]),
    )
    assert found == want


def test_a_marked_machine_of_an_old_set_goes_first_among_equals() -> None:
    older, old, new = a_set("older", 1, "1.33.0", age=3000), a_set("old", 1, age=2000), a_set("new", 2, NEW)
    marked = machine("marked").of(old).ready().marked_for_deletion()
    found = next_sizes(deployment(3), older, machines(older, 1), old, marked, new, machines(new, 2))
    assert found["old"] == 0


def test_an_unhealthy_machine_behind_a_marked_one_cannot_block_for_ever() -> None:
    """The marked one goes first by the person's wish, but costs a healthy Machine; at rest one is given up."""
    old, new = a_set("old", 3), a_set("new", 1, NEW)
    marked = machine("marked").of(old).ready().marked_for_deletion()
    rest = [machine("well").of(old).ready(), machine("ill").of(old).not_ready()]
    assert next_sizes(deployment(3), old, marked, rest, new, machines(new, 1)) == {"old": 2}


def test_min_ready_seconds_delay_the_next_step() -> None:
    owner = deployment(3).min_ready(60)
    old, new = a_set("old", 3).min_ready(60), a_set("new", 1, NEW).min_ready(60)
    fresh = machine("fresh").of(new).ready(since=30)
    assert next_sizes(owner, old, machines(old, 3), new, fresh) == {}
    assert next_sizes(owner, old, machines(old, 3), new, fresh.ready(since=60)) == {"old": 2}


def test_the_partition_keeps_some_machines_old() -> None:
    owner = deployment(5)
    owner.spec["strategy"]["rollingUpdate"]["partition"] = 3
    world = World(owner.kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    settle(world)
    assert sets_of(world) == {OLD: 3, NEW: 2}
    assert reconcile_once(world) == 0


def test_the_first_set_gets_its_size_at_birth() -> None:
    plan = plan_for(World(machine_deployment("md").replicas(3)).view(), MACHINE_DEPLOYMENT, "md")
    (body,) = creates(plan)
    assert body["spec"]["replicas"] == 3


def test_a_set_for_a_new_template_gets_what_the_surge_allows_at_birth() -> None:
    old = a_set("old", 3)
    view = World(deployment(3, 2, 0), old, *machines(old, 3)).view()
    (body,) = creates(plan_for(view, MACHINE_DEPLOYMENT, "md"))
    assert body["spec"]["replicas"] == 2


def test_creating_the_new_set_is_all_that_is_done_until_it_is_seen() -> None:
    old = a_set("old", 3)
    plan = plan_for(World(deployment(3, 1, 1), old, *machines(old, 3)).view(), MACHINE_DEPLOYMENT, "md")
    assert len(created_names(plan)) == 1
    assert sizes(plan) == {}


def test_each_step_stands_alone() -> None:
    """Each of two changes, applied without the other, keeps both limits: they are worked out on what is there."""
    old, new = a_set("old", 10), a_set("new", 0, NEW)
    found = next_sizes(deployment(10, 3, 2), old, machines(old, 10), new)
    assert found["old"] >= 8
    assert 10 + found["new"] <= 13


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), ("25%", "25%"), (3, 0), (0, "50%"), ("100%", 0)])
@pytest.mark.parametrize("replicas", [1, 2, 5, 10])
def test_every_rollout_arrives(replicas: int, surge: int | str, unavailable: int | str) -> None:
    world = World(machine_deployment("md").replicas(replicas).rolling(surge, unavailable).kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    settle(world)
    assert sets_of(world) == {OLD: 0, NEW: replicas}
    assert len(world.all(MACHINE)) == replicas
    assert len(world.all(MACHINE_SET)) == 2


SURGE_IS_OVER: dict[str, dict[str, Any]] = {
    "a rollout in place ends": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "inPlace": "Prefer"}}
    },
    "it is paused in the middle": {"paused": True},
    "replacing is preferred again": {},
}


@pytest.mark.parametrize("fields", SURGE_IS_OVER.values(), ids=SURGE_IS_OVER.keys())
def test_a_surge_that_is_over_goes_only_when_the_minimum_can_do_without(fields: dict[str, Any]) -> None:
    """Found by simulation: a marked Machine that served went, while one that was just changed did not serve yet."""
    owner = deployment(3)
    owner.spec.update(fields)
    now = a_set("now", 4, NEW).annotated(names.DESIRED_REPLICAS_ANNOTATION, "3")
    marked, *others = machines(now, 3, pending=1)
    assert isinstance(marked, MachineBuilder)
    marked.marked_for_deletion()
    assert next_sizes(owner, now, marked, others) == {}
    assert next_sizes(owner, now, machines(now, 3, pending=1)) == {"now": 3}, "the one that does not serve goes"
    assert next_sizes(owner, now, marked, machines(now, 4)[1:]) == {"now": 3}, "three are left that serve"


def test_who_scales_down_is_obeyed_at_once() -> None:
    """The Cluster Autoscaler marks a Machine and then asks for one less: that one, whatever becomes of the others."""
    now = a_set("now", 4, NEW).annotated(names.DESIRED_REPLICAS_ANNOTATION, "4")
    marked, *others = machines(now, 3, pending=1)
    assert isinstance(marked, MachineBuilder)
    assert next_sizes(deployment(3), now, marked.marked_for_deletion(), others) == {"now": 3}


def hidden(*others: Any) -> dict[str, int]:
    """The next sizes where a silent old Machine hides behind a marked one, and nothing can be spared."""
    owner = machine_deployment("md").replicas(2).rolling(1, 0).kubelet(NEW)
    old, new = a_set("old", 3), a_set("new", 0, NEW)
    marked, silent = machines(old, 1, unready=1)
    assert isinstance(marked, MachineBuilder)
    return next_sizes(owner, old, marked.marked_for_deletion(), silent, [other.of(old) for other in others], new)


def test_a_rollout_that_a_marked_machine_holds_up_gets_on_by_one() -> None:
    assert hidden(machine("third").ready()) == {"old": 2}


def test_but_not_while_one_comes_up_that_the_minimum_lacks() -> None:
    """Found by simulation (seed 114 with broken hosts): the only Machine that served was taken."""
    assert hidden(machine("third").pending()) == {}
    assert hidden(machine("third").failed()) == {"old": 2}
