"""Events of a Machine: one when trouble or a replacement begins, none for each round of it, none when all goes well."""

from __future__ import annotations

from typing import Any

from controllers.kernel.actions import Event
from controllers.kernel.refs import POD, Key
from tests.builders import machine
from tests.builders.objects import Builder
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.pods import budget, pod

QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2, "updateSeconds": 1, "deleteSeconds": 0.5}
UPGRADE = {"spec": {"versions": {"kubelet": "1.34.1"}}}
HELD = (pod("web").on("m-1"), budget("keep").over("web").allowing(0))


def running(updates: str, *deletion_guards: Builder) -> tuple[Arena, Key]:
    arena = Arena()
    arena.view.put(*deletion_guards)
    key = arena.apply(machine("m-1").provider_config(**QUICK, updates=updates))
    arena.run(key)
    assert events(arena) == []
    return arena, key


def events(arena: Arena) -> list[tuple[str, str]]:
    return [(action.type, action.reason) for action in arena.done if isinstance(action, Event)]


def texts(arena: Arena) -> str:
    return "\n".join(action.why for action in arena.done if isinstance(action, Event))


def last_operation(arena: Arena, key: Key) -> tuple[str, str]:
    said = arena.machine(key)["status"]["lastOperation"]
    return said["type"], said["state"]


def test_an_update_in_place_that_works_has_no_event_and_is_the_last_operation() -> None:
    arena, key = running("InPlace")
    assert last_operation(arena, key) == ("Create", "Successful")
    arena.edit(key, UPGRADE)
    arena.run(key)
    assert events(arena) == []
    assert last_operation(arena, key) == ("Update", "Successful")


def test_a_replacement_is_told_once_with_its_reason_and_is_the_last_operation() -> None:
    arena, key = running("Replace")
    arena.edit(key, UPGRADE)
    arena.run(key)
    assert events(arena) == [("Normal", "Replacing")]
    assert "never changed in place" in texts(arena)
    assert last_operation(arena, key) == ("Update", "Successful")


def test_a_change_that_the_provider_refuses_is_told_once() -> None:
    arena, key = running("Refuse")
    arena.edit(key, UPGRADE)
    arena.run(key, 600)
    assert events(arena) == [("Warning", "UnsupportedChange")]
    assert last_operation(arena, key) == ("Update", "Failed")


def test_a_host_that_vanished_is_told_once() -> None:
    arena, key = running("InPlace")
    (host,) = arena.world.list()
    arena.world.delete(host.id)
    arena.forward(60)
    arena.run(key, 600)
    assert ("Warning", "HostMissing") in events(arena)
    assert len(events(arena)) == 1


def test_a_blocked_drain_of_a_deletion_is_told_once_with_pod_and_budget() -> None:
    arena, key = running("InPlace", *HELD)
    arena.delete(key)
    arena.run(key, 600)
    assert events(arena) == [("Warning", "DrainBlocked")]
    assert "default/web (PodDisruptionBudget default/keep)" in texts(arena)
    assert arena.condition(key, "Drained")["reason"] == "DrainBlocked"


def test_a_blocked_drain_of_a_replacement_is_told_too() -> None:
    arena, key = running("Replace", *HELD)
    arena.edit(key, UPGRADE)
    arena.run(key, 600)
    assert events(arena) == [("Normal", "Replacing"), ("Warning", "DrainBlocked")]


def test_a_blocked_drain_of_an_update_is_told_too() -> None:
    arena, key = running("DrainThenInPlace", *HELD)
    arena.edit(key, UPGRADE)
    arena.run(key, 600)
    assert events(arena) == [("Warning", "DrainBlocked")]


def test_a_drain_that_moves_on_has_no_event() -> None:
    arena, key = running("InPlace", pod("web").on("m-1"), budget("keep").over("web").allowing(1))
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)
    assert events(arena) == []


def test_a_drain_is_no_longer_blocked_when_the_pod_has_gone() -> None:
    arena, key = running("InPlace", *HELD)
    arena.delete(key)
    arena.run(key, 60)
    arena.view.drop(POD, "web", "default")
    arena.run(key)
    assert not arena.exists(key)
    assert len(events(arena)) == 1
