"""The guard of the simulation: what it holds the controllers to, and the few things that it excuses."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Create, Delete, Patch
from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, Key, Ref
from nodewright.crds import load_crds
from nodewright.sim.clock import VirtualClock
from nodewright.sim.invariants import Bounds, Breach, Guard
from nodewright.sim.plane import Plane
from tests.builders import machine, machine_set
from tests.builders.objects import MachineBuilder

OWNER = machine_set("set").replicas(3)
THREE, FOUR = Bounds(3, 3), Bounds(4, 3)
SIZE = Patch(Ref(MACHINE_SET, Key("default", "set"), "uid-set"), {"spec": {"replicas": 3}}, "a size is decided")


def member(name: str) -> MachineBuilder:
    return machine(name).of(OWNER).ready().condition("UpToDate", "True", "UpToDate")


def pool(*builders: MachineBuilder) -> list[dict[str, Any]]:
    return [builder.build() for builder in builders]


@pytest.fixture
def guard() -> Guard:
    return Guard(Plane(VirtualClock(), load_crds(), Random(0)))


def delete(name: str) -> Delete:
    return Delete(Ref(MACHINE, Key("default", name), f"uid-{name}"), "too many")


def chosen(*leaving: str) -> Patch:
    return Patch(SIZE.target, {"status": {"ordinals": {"leaving": list(leaving)}}}, "a choice is recorded", "status")


def test_the_last_available_one_that_the_minimum_needs_may_not_go(guard: Guard) -> None:
    seen = pool(member("a"), member("b"), member("c"))
    guard.done(SIZE, seen, THREE)
    with pytest.raises(Breach, match="leaves 2 available of at least 3"):
        guard.before(delete("a"), seen, THREE)
    guard.before(delete("a"), [*seen, member("d").build()], THREE)


def test_one_that_is_not_available_may(guard: Guard) -> None:
    seen = pool(member("a").not_ready(), member("b"), member("c"))
    guard.done(SIZE, seen, THREE)
    guard.before(delete("a"), seen, THREE)


MARK = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("since", [True, False], ids=["marked since", "marked before"])
def test_a_mark_excuses_only_if_it_came_after_the_size_was_decided(guard: Guard, since: bool) -> None:
    marked = pool(member("a").marked_for_deletion(MARK), member("b"), member("c"))
    guard.done(SIZE, pool(member("a"), member("b"), member("c")) if since else marked, THREE)
    if since:
        guard.before(delete("a"), marked, THREE)
    else:
        with pytest.raises(Breach):
            guard.before(delete("a"), marked, THREE)


def test_who_marks_and_then_scales_is_obeyed(guard: Guard) -> None:
    marked = pool(member("a").marked_for_deletion(MARK), member("b"), member("c"))
    guard.done(SIZE, marked, FOUR)
    with pytest.raises(Breach):
        guard.before(delete("a"), marked, THREE)
    guard.done(SIZE, marked, THREE)
    guard.before(delete("a"), marked, THREE)


@pytest.mark.parametrize("since", [True, False], ids=["edited since", "edited before"])
def test_so_does_a_persons_edit_of_another_machine(guard: Guard, since: bool) -> None:
    edited = member("b").not_ready().condition("UpToDate", "False", "Replacing")
    edited.status["conditions"][-1]["observedGeneration"] = 2
    now = pool(member("a"), edited, member("c"), member("d"))
    guard.done(SIZE, pool(member("a"), member("b"), member("c"), member("d")) if since else now, THREE)
    if since:
        guard.before(delete("a"), now, THREE)
    else:
        with pytest.raises(Breach):
            guard.before(delete("a"), now, THREE)


@pytest.mark.parametrize("since", [True, False], ids=["broken since", "broken before"])
def test_so_does_another_machines_host_that_broke(guard: Guard, since: bool) -> None:
    """Seed 172 with health checks: a host fell silent between the decision and the delete."""
    now = pool(member("a"), member("b").not_ready(), member("c"), member("d"))
    guard.done(SIZE, pool(member("a"), member("b"), member("c"), member("d")) if since else now, THREE)
    if since:
        guard.before(delete("a"), now, THREE)
        with pytest.raises(Breach):
            guard.before(delete("c"), [machine for machine in now if machine["metadata"]["name"] != "a"], THREE)
    else:
        with pytest.raises(Breach):
            guard.before(delete("a"), now, THREE)


def test_a_template_that_was_handed_out_is_no_persons_edit(guard: Guard) -> None:
    seen = pool(member("a"), member("b"), member("c"), member("d"), member("e"))
    guard.done(SIZE, seen, THREE)
    notes = {"metadata": {"annotations": {names.TEMPLATE_ANNOTATION: "digest"}}, "spec": {"versions": {"kubelet": "2"}}}
    for name in ("b", "c"):
        guard.before(Patch(Ref(MACHINE, Key("default", name), f"uid-{name}"), notes, "gets it"), seen, THREE)
    handed = [member(name).not_ready().condition("UpToDate", "False", "Replacing") for name in ("b", "c")]
    for one in handed:
        one.status["conditions"][-1]["observedGeneration"] = 2
    with pytest.raises(Breach):
        guard.before(delete("a"), pool(member("a"), *handed, member("d"), member("e")), THREE)


def test_a_choice_made_while_it_was_down_excuses_until_it_is_taken_back(guard: Guard) -> None:
    down, up = pool(member("a").not_ready(), member("b"), member("c")), pool(member("a"), member("b"), member("c"))
    guard.done(SIZE, down, THREE)
    guard.done(chosen("a"), down, THREE)
    guard.before(delete("a"), up, THREE)
    guard.done(chosen(), up, THREE)
    guard.done(chosen("a"), up, THREE)
    with pytest.raises(Breach):
        guard.before(delete("a"), up, THREE)


def test_a_size_that_was_refused_promises_nothing(guard: Guard) -> None:
    """Seed 1362: the API refused the smaller size, and the set went on to what it had been told before."""
    guard.done(SIZE, [], FOUR)
    guard.before(SIZE, [], Bounds(0, 0))
    guard.before(Create(MACHINE, member("x").build(), "needed"), [], Bounds(0, 0))
    guard.done(SIZE, [], Bounds(0, 0))
    with pytest.raises(Breach, match="would be number 1 of at most 0"):
        guard.before(Create(MACHINE, member("x").build(), "needed"), [], Bounds(0, 0))


@pytest.mark.parametrize("node", ["Unknown", "True"])
@pytest.mark.parametrize("selected_for_deletion", [True, False], ids=["condemned", "not condemned"])
def test_whom_a_health_check_condemned_for_silence_may_go_though_its_status_lags(
    node: str, selected_for_deletion: bool
) -> None:
    """Silence alone excuses nothing: the controllers did not know of it. Nor does a condemnation of one that serves."""
    plane = Plane(VirtualClock(), load_crds(), Random(0))
    guard = Guard(plane)
    plane.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
    said = [{"type": "Ready", "status": node}]
    plane.patch(NODE, Key("", "node-a"), {"status": {"conditions": said}}, "status")
    victim = member("a")
    if selected_for_deletion:
        victim.condition("OwnerRemediated", "False", "WaitingForRemediation")
    seen = pool(victim, member("b"), member("c"))
    guard.done(SIZE, seen, THREE)
    if selected_for_deletion and node == "Unknown":
        guard.before(delete("a"), seen, THREE)
    else:
        with pytest.raises(Breach):
            guard.before(delete("a"), seen, THREE)
