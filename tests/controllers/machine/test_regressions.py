"""Bugs of the peers, each by its number, that this controller must not have."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.actions import CreateHost, Delete, DeleteHost
from controllers.kernel.plan import Failed
from controllers.kernel.refs import NODE, Key
from controllers.kernel.view import HostAbsent, HostReads
from controllers.machine.reconciler import RECONCILER
from providers.simulated.config import Cloud
from tests.builders import Builder, FakeView, ago, machine, node
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.pods import budget, pod

QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2, "deleteSeconds": 0.5}


def running(*deletion_guards: Builder, cloud: Cloud | None = None) -> tuple[Arena, Key]:
    arena = Arena(cloud or Cloud(name="arena"))
    arena.view.put(*deletion_guards)
    key = arena.apply(machine("m-1").provider_config(**QUICK))
    arena.run(key)
    arena.done.clear()
    return arena, key


def test_capi_13508_a_stopped_host_with_a_budget_does_not_hold_the_deletion_up() -> None:
    arena, key = running(pod("web").on("m-1"), budget("keep").over("web").allowing(0))
    arena.world.stop_host("uid-m-1")
    arena.forward(1)
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)
    assert any(isinstance(a, DeleteHost) and "does not run (state Stopped)" in a.why for a in arena.done)


def test_capi_13508_an_unreachable_node_does_not_hold_the_deletion_up() -> None:
    arena, key = running(pod("web").on("m-1"), budget("keep").over("web").allowing(0))
    body = dict(arena.nodes()[0])
    silent = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": ago(300)}]
    arena.kubelets = lambda: None  # type: ignore[method-assign]  # it is silent from here on
    arena.view.put({**body, "status": {**body["status"], "conditions": silent}})
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"providerConfig": {"value": {"apiVersion": "nobody.example/v1", "kind": "Nothing"}}},
        {"providerConfig": {"valueFrom": {"machineClass": {"name": "no-such-class"}}}},
        {"providerConfig": "{not yaml"},
        {"providerConfig": {}, "taints": "none"},
        {"providerConfig": 7, "versions": []},
    ],
    ids=["empty", "unknown provider", "missing class", "garbled text", "wrong types", "wronger types"],
)
def test_mc_224_and_131_a_machine_with_an_invalid_spec_can_be_deleted(spec: dict[str, Any]) -> None:
    arena = Arena()
    builder = machine("m-1")
    builder.body["spec"] = spec
    key = arena.apply(builder)
    arena.run(key, 30)
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)
    assert not any(isinstance(action, CreateHost) for action in arena.done)


def test_mc_224_a_running_machine_whose_config_became_invalid_can_be_deleted() -> None:
    arena, key = running()
    arena.edit(key, {"spec": {"providerConfig": {"value": None}}})
    arena.run(key, 30)
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()


def test_mcm_657_a_cloud_that_does_not_answer_is_not_an_empty_cloud() -> None:
    arena, key = running()
    before = arena.machine(key)
    arena.cloud_answers = False
    arena.run(key, 3600)
    assert arena.machine(key) == before, "an outage must neither fail a Machine nor cost a write"
    assert arena.done == []


def test_mcm_657_a_new_machine_gets_no_host_before_the_cloud_was_read() -> None:
    arena = Arena(cloud_answers=False)
    key = arena.apply(machine("m-1"))
    arena.run(key, 600)
    assert not any(isinstance(action, CreateHost) for action in arena.done)
    assert arena.condition(key, "InfrastructureReady")["status"] == "Unknown"


def test_mc_75_and_140_a_node_with_the_same_address_or_name_is_not_taken_over() -> None:
    old = node("m-1").address("10.64.0.1").provider_id("simulated://arena/dead-one").ready()
    arena = Arena()
    arena.view.put(old)
    key = arena.apply(machine("m-1").provider_config(zombieRate=1, bootSeconds=0.6))
    arena.run(key, 200)
    assert "nodeRef" not in arena.machine(key)["status"]
    assert "belongs to another host" in arena.condition(key, "NodeReady")["message"]


@pytest.mark.parametrize("older", [True, False], ids=["older than the Machine", "younger"])
def test_mc_140_a_node_without_provider_id_counts_only_if_it_is_younger_than_the_machine(older: bool) -> None:
    arena = Arena()
    key = arena.apply(machine("m-1").provider_config(zombieRate=1, bootSeconds=0.6))
    arena.view.put(node("m-1").created(60 if older else -1).address("10.64.0.1").ready())
    arena.run(key, 200)
    assert ("nodeRef" in arena.machine(key)["status"]) is not older


def test_mc_381_a_host_deleted_by_hand_is_reported_not_made_again() -> None:
    arena, key = running()
    arena.world.lose_host("uid-m-1")
    plan = arena.round(key)
    assert isinstance(plan.outcome, Failed)
    arena.run(key, 600)
    status = arena.machine(key)["status"]
    assert status["phase"] == "Failed"
    assert status["failureReason"] == status["errorReason"] == "HostMissing"
    assert "vanished" in status["failureMessage"]
    assert arena.world.hosts() == ()


def test_mc_1205_a_machine_with_a_provider_id_never_gets_a_second_host() -> None:
    view = FakeView(machine("m-1").provider_id("simulated://arena/sim-000001"))
    observed = RECONCILER.observe(Key("default", "m-1"), view, HostReads(HostAbsent()))
    assert observed is not None
    assert not any(isinstance(action, CreateHost) for action in RECONCILER.plan(observed).actions())


def test_provider_aws_1166_no_finalizer_is_left_when_the_host_never_came() -> None:
    arena = Arena(Cloud(name="arena", quota={"hosts": 0}))
    key = arena.apply(machine("m-1"))
    arena.run(key, 120)
    assert arena.condition(key, "Ready")["reason"] == "QuotaExceeded"
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)


def test_mcm_89_a_full_quota_is_told_in_the_providers_words_and_is_not_terminal() -> None:
    arena = Arena(Cloud(name="arena", quota={"hosts": 0}))
    key = arena.apply(machine("m-1"))
    arena.run(key, 120)
    status = arena.machine(key)["status"]
    assert "hosts: 0 of 0 are used" in arena.condition(key, "Ready")["message"]
    assert "raise the quota" in arena.condition(key, "InfrastructureReady")["message"]
    assert "errorReason" not in status
    assert arena.writes["POST Event"] == 1, "one Event for one kind of trouble"
    arena.world.adjust(Cloud(name="arena", quota={"hosts": 1}))
    arena.run(key, 600)
    assert arena.condition(key, "Ready")["status"] == "True"


def test_mao_347_a_machine_whose_host_was_terminated_can_be_deleted() -> None:
    arena, key = running()
    arena.world.lose_host("uid-m-1")
    arena.run(key, 60)
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)
    assert arena.nodes() == [], "its Node goes as well"


def test_two_nodes_with_one_provider_id_are_a_conflict_that_is_not_guessed_away() -> None:
    arena, key = running()
    arena.view.put(node("twin").provider_id(arena.machine(key)["spec"]["providerID"]))
    arena.run(key, 60)
    said = arena.condition(key, "Ready")
    assert said["reason"] == "NodeConflict"
    assert "m-1, twin" in said["message"]
    assert arena.view.get(NODE, Key("", "twin")) is not None
    assert not any(isinstance(action, Delete) for action in arena.done)
