"""A host of which only parts were made: gone on with at once, and removed with its Machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from api import names
from controllers.kernel.actions import CreateHost, DeleteHost
from controllers.kernel.refs import Key
from controllers.kernel.view import Attempt
from providers.base.contract import Host, HostState
from providers.base.errors import ErrorClass
from tests.builders import machine, node
from tests.controllers.machine.arena import Arena

QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2, "deleteSeconds": 0.5}


def with_remains(arena: Arena, key: Key) -> Host:
    uid = str(arena.machine(key)["metadata"]["uid"])
    arena.leftover = Host(f"remains-{uid}", uid, key.name, "", HostState.UNFINISHED, "")
    return arena.leftover


def calls(arena: Arena) -> list[str]:
    return [type(action).__name__ for action in arena.done if isinstance(action, CreateHost | DeleteHost)]


def test_what_was_begun_is_gone_on_with_at_once() -> None:
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(**QUICK))
    with_remains(arena, key)
    arena.run(key)
    assert calls(arena) == ["CreateHost"]
    assert arena.condition(key, "Ready")["status"] == "True"


def bound_to_remains(arena: Arena, *, node_ref: bool = False) -> Key:
    """A Machine whose providerID is that of a host of which only a part was made."""
    builder = machine("m-1").provider_config(**QUICK).provider_id("simulated:///half")
    if node_ref:
        builder.status["nodeRef"] = {"name": "m-1", "uid": "n-1"}
    key = arena.apply(builder)
    arena.leftover = replace(with_remains(arena, key), provider_id="simulated:///half")
    return key


def test_the_host_that_the_machine_is_bound_to_is_gone_on_with_too() -> None:
    """It looked whole once: a host that does not answer is shown as it was last."""
    arena = Arena()
    key = bound_to_remains(arena)
    arena.run(key, 5)
    assert calls(arena) == ["CreateHost"]


def test_a_host_that_was_a_node_is_not_made_again() -> None:
    arena = Arena()
    key = bound_to_remains(arena, node_ref=True)
    arena.run(key, 5)
    assert calls(arena) == []
    assert arena.condition(key, "InfrastructureReady")["reason"] == "HostMissing"


def test_a_machine_that_goes_takes_along_what_was_made_for_it() -> None:
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(**QUICK))
    arena.cloud_answers = False
    arena.run(key, 5)
    arena.cloud_answers = True
    left = with_remains(arena, key)
    arena.delete(key)
    arena.run(key)
    assert [action.host for action in arena.done if isinstance(action, DeleteHost)] == [left]
    assert arena.leftover is None
    assert not arena.exists(key)


def test_a_creation_that_failed_does_not_hold_up_the_deletion() -> None:
    """Its back-off may take minutes, and its error says nothing about what is deleted."""
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(**QUICK).finalized_by(names.MACHINE_FINALIZER))
    left = with_remains(arena, key)
    retry_at = arena.now + timedelta(seconds=300)
    arena.attempts[left.machine_uid] = Attempt("create", ErrorClass.INTERNAL, "no", 7, arena.now, retry_at)
    arena.delete(key)
    arena.run(key, 30)
    assert not arena.exists(key)
    assert arena.now < retry_at
    assert calls(arena) == ["DeleteHost"]


def test_a_change_that_failed_does_not_hold_up_the_deletion() -> None:
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(**QUICK))
    arena.run(key)
    uid = str(arena.machine(key)["metadata"]["uid"])
    retry_at = arena.now + timedelta(seconds=600)
    arena.attempts[uid] = Attempt("update", ErrorClass.INVALID_CONFIGURATION, "no", 1, arena.now, retry_at)
    arena.delete(key)
    arena.run(key, 60)
    assert not arena.exists(key)


def test_a_host_that_vanished_but_for_its_parts_is_not_made_again() -> None:
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(**QUICK))
    arena.run(key)
    arena.done.clear()
    (host,) = arena.world.hosts()
    arena.world.lose_host(host.machine_uid)
    with_remains(arena, key)
    arena.run(key, 120)
    assert calls(arena) == []
    assert arena.condition(key, "InfrastructureReady")["reason"] == "HostMissing"


def test_what_is_left_of_a_replaced_host_goes_before_the_next_one_is_made() -> None:
    """Its parts were made for another config."""
    arena = Arena()
    builder = machine("m-1").provider_config(**QUICK).provider_id("simulated:///old")
    builder.status["replacement"] = {"providerID": "simulated:///old"}
    key = arena.apply(builder)
    left = with_remains(arena, key)
    arena.view.put(node("m-1"))
    arena.run(key)
    assert calls(arena)[:2] == ["DeleteHost", "CreateHost"]
    assert next(action.host for action in arena.done if isinstance(action, DeleteHost)) == left
