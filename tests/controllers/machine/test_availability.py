"""The condition Available: Ready for ``spec.minReadySeconds`` without a break."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.plan import NOTHING, Settled, Wait
from controllers.kernel.refs import Key
from tests.builders import Builder
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.test_birth import QUICK, born

HELD_BACK = "machine-controller.kubermatic.io/initializers"


def ready(min_ready: Any) -> tuple[Arena, Key]:
    builder = born(**QUICK)
    builder.spec["minReadySeconds"] = min_ready
    arena = Arena()
    key = arena.apply(builder)
    while "status" not in arena.machine(key) or arena.condition(key, "Ready")["status"] != "True":
        arena.round(key)
        arena.forward(0.25)
    return arena, key


def test_it_becomes_available_when_its_time_has_come_and_that_costs_one_write() -> None:
    arena, key = ready(30)
    said = arena.condition(key, "Available")
    assert (said["status"], said["reason"]) == ("False", "WaitingForMinReadySeconds")
    outcome = arena.plan(key).outcome
    assert isinstance(outcome, Wait)
    assert 29 <= outcome.after <= 30
    arena.writes.clear()
    arena.forward(outcome.after)
    assert arena.round(key).outcome == Settled()
    assert arena.condition(key, "Available")["status"] == "True"
    assert arena.writes == {"PATCH Machine status": 1}
    arena.forward(600)
    assert arena.plan(key) == NOTHING


def test_a_node_that_is_not_ready_is_not_available_and_the_time_begins_anew() -> None:
    arena, key = ready(30)
    arena.forward(60)
    arena.round(key)
    kubelets, said = arena.kubelets, arena.nodes()[0]["status"]["conditions"]
    arena.kubelets = lambda: None  # type: ignore[method-assign]  # the Node says what is said here
    for status, available in (("False", "False"), ("True", "False")):
        body = dict(arena.nodes()[0])
        node_says = [{**c, "status": status} if c["type"] == "Ready" else c for c in said]
        arena.view.put({**body, "status": {**body["status"], "conditions": node_says}})
        arena.round(key)
        assert arena.condition(key, "Available")["status"] == available
        arena.forward(1)
    arena.kubelets = kubelets  # type: ignore[method-assign]
    arena.forward(30)
    arena.round(key)
    assert arena.condition(key, "Available")["status"] == "True"


@pytest.mark.parametrize("asked", [None, 0, -5, "soon", True, 2**40])
def test_without_a_time_that_can_be_meant_it_is_available_as_soon_as_it_is_ready(asked: object) -> None:
    arena, key = ready(asked)
    assert arena.condition(key, "Available")["status"] == "True"


def test_initializers_hold_a_machine_back_until_they_are_done() -> None:
    builder: Builder = born(**QUICK).annotated(HELD_BACK, "dns,ipam")
    arena = Arena()
    key = arena.apply(builder)
    arena.run(key, 30)
    assert arena.world.hosts() == ()
    assert "dns,ipam" in arena.condition(key, "Paused")["message"]
    arena.edit(key, {"metadata": {"annotations": {HELD_BACK: ""}}})
    arena.run(key, 30)
    assert arena.condition(key, "Ready")["status"] == "True"
