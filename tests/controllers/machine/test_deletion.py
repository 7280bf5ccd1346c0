"""A Machine that goes takes its host and its Node along, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.actions import DeleteHost, Evict
from controllers.kernel.plan import NOTHING
from controllers.kernel.refs import NODE, Key
from tests.builders import Builder, machine, node
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.pods import budget, daemon_set, pod

QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2, "deleteSeconds": 0.5}


def running(*deletion_guards: Builder, builder: Builder | None = None) -> tuple[Arena, Key]:
    arena = Arena()
    arena.view.put(*deletion_guards)
    key = arena.apply(builder or machine("m-1").provider_config(**QUICK))
    arena.run(key)
    arena.done.clear()
    arena.writes.clear()
    return arena, key


def deleted(arena: Arena, key: Key, seconds: float = 60) -> None:
    arena.delete(key)
    arena.run(key, seconds)


def test_host_node_and_machine_go_in_this_order() -> None:
    arena, key = running()
    deleted(arena, key)
    assert not arena.exists(key)
    assert arena.nodes() == []
    assert arena.world.hosts() == ()
    why = [action.why for action in arena.done]
    assert why[-2:] == ["Node m-1: its host is gone", "Machine m-1 may go: its host is gone"]


def test_a_machine_that_never_had_a_host_goes_at_once() -> None:
    arena = Arena()
    key = arena.apply(machine("m-1"))
    deleted(arena, key, 1)
    assert not arena.exists(key)
    assert arena.writes == {"POST Machine": 1, "PATCH Machine main": 1}


def test_a_machine_whose_host_still_boots_leaves_nothing() -> None:
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(bootSeconds=30))
    arena.run(key, 5)
    deleted(arena, key)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()


def test_pods_are_evicted_before_the_host_goes() -> None:
    agents = (daemon_set("log"), pod("log").on("m-1").of_daemon_set())
    arena, key = running(pod("web").on("m-1"), *agents, pod("other").on("m-2"))
    deleted(arena, key)
    assert [a.target.key.name for a in arena.done if isinstance(a, Evict)] == ["web"]
    deeds = [type(a) for a in arena.done if isinstance(a, Evict | DeleteHost)]
    assert deeds.index(Evict) < deeds.index(DeleteHost)
    assert not arena.exists(key)


def test_a_blocked_pod_is_named_with_its_budget_and_nothing_is_forced() -> None:
    arena, key = running(pod("web").on("m-1"), budget("keep").over("web").allowing(0))
    deleted(arena, key, 600)
    said = arena.condition(key, "Deleting")
    assert said["reason"] == "DrainBlocked"
    assert "default/web (PodDisruptionBudget default/keep)" in said["message"]
    assert arena.condition(key, "Drained")["status"] == "False"
    assert len(arena.world.hosts()) == 1


def test_a_drain_that_is_blocked_costs_no_writes_while_it_waits() -> None:
    arena, key = running(pod("web").on("m-1"), budget("keep").over("web").allowing(0))
    deleted(arena, key, 60)
    arena.writes.clear()
    arena.run(key, 600)
    assert arena.writes == {}


def test_node_drain_timeout_ends_a_blocked_drain() -> None:
    blocked = machine("m-1").provider_config(**QUICK)
    blocked.spec["nodeDrainTimeout"] = "2m"
    arena, key = running(pod("web").on("m-1"), budget("keep").over("web").allowing(0), builder=blocked)
    deleted(arena, key, 90)
    assert arena.exists(key)
    arena.run(key, 120)
    assert not arena.exists(key)
    assert not any(isinstance(action, Evict) for action in arena.done)


@pytest.mark.parametrize(
    ("annotation", "where"),
    [
        (names.NO_DRAIN_ANNOTATION, "Machine"),
        (names.OWN_NO_DRAIN_ANNOTATION, "Machine"),
        (names.NODE_SKIP_EVICTION_ANNOTATION, "Node"),
    ],
)
def test_an_annotation_skips_the_drain(annotation: str, where: str) -> None:
    arena, key = running(pod("web").on("m-1"), budget("keep").over("web").allowing(0))
    if where == "Machine":
        arena.edit(key, {"metadata": {"annotations": {annotation: "true"}}})
    else:
        body = arena.nodes()[0]
        arena.view.put({**body, "metadata": {**body["metadata"], "annotations": {annotation: "true"}}})
    deleted(arena, key)
    assert not [a for a in arena.done if isinstance(a, Evict)]
    assert not arena.exists(key)


@pytest.mark.parametrize(
    ("prefix", "evicted_before"),
    [
        (names.PRE_DRAIN_HOOK_PREFIX, 0),
        (names.OWN_PRE_DRAIN_HOOK_PREFIX, 0),
        (names.PRE_TERMINATE_HOOK_PREFIX, 1),
        (names.OWN_PRE_TERMINATE_HOOK_PREFIX, 1),
    ],
)
def test_a_hook_holds_the_deletion_up_until_it_is_removed(prefix: str, evicted_before: int) -> None:
    arena, key = running(pod("web").on("m-1"))
    arena.edit(key, {"metadata": {"annotations": {f"{prefix}/backup": "owner"}}})
    deleted(arena, key, 300)
    assert arena.condition(key, "Deleting")["reason"] == "WaitingForHook"
    assert f"{prefix}/backup" in arena.condition(key, "Deleting")["message"]
    assert len(arena.world.hosts()) == 1
    assert len([a for a in arena.done if isinstance(a, Evict)]) == evicted_before
    arena.edit(key, {"metadata": {"annotations": {f"{prefix}/backup": None}}})
    arena.run(key)
    assert not arena.exists(key)


def test_while_the_cloud_does_not_answer_the_machine_stays() -> None:
    arena, key = running()
    arena.cloud_answers = False
    deleted(arena, key, 300)
    assert arena.exists(key)
    assert arena.condition(key, "Deleting")["reason"] == "ProviderUnreachable"
    arena.cloud_answers = True
    arena.run(key)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()


def test_a_person_may_abandon_a_host_that_nobody_can_see() -> None:
    arena, key = running()
    arena.cloud_answers = False
    arena.edit(key, {"metadata": {"annotations": {names.ABANDON_HOST_ANNOTATION: "yes"}}})
    deleted(arena, key)
    assert not arena.exists(key)


def test_legacy_finalizers_of_a_taken_over_machine_go_as_well_and_others_stay() -> None:
    taken = machine("m-1").provider_config(**QUICK)
    taken.finalized_by(*names.LEGACY_MACHINE_FINALIZERS, names.MACHINE_FINALIZER, "example.com/mine")
    arena, key = running(builder=taken)
    deleted(arena, key)
    assert arena.machine(key)["metadata"]["finalizers"] == ["example.com/mine"]
    assert arena.plan(key) == NOTHING


def test_the_node_of_another_machine_is_never_deleted() -> None:
    """machine-controller#75, #140: an address or a name that is used again made it take over somebody else's Node."""
    arena, key = running()
    arena.view.drop(NODE, "m-1")
    arena.view.put(node("m-1").of(machine("m-2")).provider_id(arena.machine(key)["spec"]["providerID"]))
    deleted(arena, key)
    assert not arena.exists(key)
    assert [n["metadata"]["name"] for n in arena.nodes()] == ["m-1"]


def test_a_refused_host_deletion_says_why_and_is_tried_again() -> None:
    arena, key = running()
    arena.delete(key)
    arena.round(key)
    arena.world.outage(arena.now.replace(minute=arena.now.minute + 2))
    for _ in range(4):
        arena.round(key)
        arena.forward(0.2)
    assert arena.exists(key)
    arena.run(key, 600)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()


def test_deleting_a_machine_twice_over_asks_for_one_host_deletion() -> None:
    arena, key = running()
    deleted(arena, key)
    assert sum(isinstance(action, DeleteHost) for action in arena.done) == 1
