"""From a Machine to a Ready Node: what is called, what is written, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.actions import CreateHost
from controllers.kernel.plan import NOTHING, Settled
from controllers.kernel.refs import Key
from tests.builders import Builder, machine
from tests.controllers.machine.arena import Arena

QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2}
SLOW: dict[str, Any] = {"bootSeconds": 45, "joinSeconds": 15}


def born(name: str = "m-1", **config: Any) -> Builder:
    """As a MachineSet makes it: with everything it will need."""
    return machine(name).provider_config(**config)


def writes_to_ready(config: dict[str, Any], builder: Builder | None = None) -> tuple[Arena, Key]:
    arena = Arena()
    key = arena.apply(builder or born(**config))
    arena.run(key, 300)
    assert arena.condition(key, "Ready")["status"] == "True"
    return arena, key


def test_a_quick_machine_costs_three_writes_to_ready() -> None:
    arena, _ = writes_to_ready(QUICK)
    assert arena.writes == {"POST Machine": 1, "PATCH Machine main": 1, "PATCH Machine status": 1}


def test_a_slow_machine_costs_no_more_than_four_writes_to_ready() -> None:
    arena, _ = writes_to_ready(SLOW)
    assert sum(arena.writes.values()) <= 4, dict(arena.writes)
    assert arena.writes["PATCH Machine status"] == 2


def test_a_machine_made_by_hand_gets_its_finalizer_before_its_host() -> None:
    builder = born(**QUICK).finalized_by()
    arena, key = writes_to_ready({}, builder)
    assert arena.machine(key)["metadata"]["finalizers"] == [names.MACHINE_FINALIZER]
    assert arena.done[0].why == "hold the Machine while it may have a host"
    assert isinstance(arena.done[1], CreateHost)
    assert sum(arena.writes.values()) == 4


def test_taints_and_labels_that_the_kubelet_registered_cost_no_write() -> None:
    builder = born(**QUICK)
    builder.spec["metadata"] = {"labels": {"pool": "a"}, "annotations": {"note": "b"}}
    builder.spec["taints"] = [{"key": "gpu", "effect": "NoSchedule"}]
    arena, key = writes_to_ready({}, builder)
    assert arena.writes["PATCH Node main"] == 0
    applied = arena.machine(key)["status"]["appliedNodeMetadata"]
    assert applied["taints"] == ["gpu:NoSchedule"]
    assert "pool" in applied["labels"]


def test_a_ready_machine_tells_all_that_there_is_to_tell() -> None:
    arena, key = writes_to_ready(QUICK)
    body = arena.machine(key)
    status = body["status"]
    (node,) = arena.nodes()
    assert body["spec"]["providerID"] == node["spec"]["providerID"]
    assert status["phase"] == "Running"
    assert status["nodeRef"] == {"apiVersion": "v1", "kind": "Node", "name": "m-1", "uid": node["metadata"]["uid"]}
    assert {a["type"] for a in status["addresses"]} == {"InternalIP", "Hostname"}
    assert status["versions"]["kubelet"] == "v1.34.0"
    assert status["observedGeneration"] == body["metadata"]["generation"]
    assert status["lastOperation"]["state"] == "Successful"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Ready": "True",
        "Available": "True",
        "InfrastructureReady": "True",
        "NodeReady": "True",
        "UpToDate": "True",
    }
    assert "errorReason" not in status


def test_a_ready_machine_is_left_in_peace() -> None:
    arena, key = writes_to_ready(QUICK)
    for _ in range(5):
        arena.forward(600)
        assert arena.plan(key) == NOTHING


@pytest.mark.parametrize("config", [QUICK, SLOW], ids=["quick", "slow"])
def test_the_last_round_is_settled(config: dict[str, Any]) -> None:
    arena = Arena()
    key = arena.apply(born(**config))
    assert arena.run(key, 300)[-1].outcome == Settled()


def test_a_slow_machine_shows_where_it_is() -> None:
    arena = Arena()
    key = arena.apply(born(**SLOW))
    arena.run(key, 10)
    assert arena.machine(key)["status"]["phase"] == "Provisioning"
    assert arena.condition(key, "InfrastructureReady")["message"] == "host m-1 is booting"
    assert arena.condition(key, "Ready")["reason"] == "Provisioning"


def test_a_host_that_never_joins_is_reported_as_provisioned_after_a_while() -> None:
    arena = Arena()
    key = arena.apply(born(zombieRate=1))
    arena.run(key, 200)
    assert arena.machine(key)["status"]["phase"] == "Provisioned"
    assert arena.condition(key, "Ready")["reason"] == "WaitingForNode"
    writes = sum(arena.writes.values())
    arena.run(key, 600)
    assert sum(arena.writes.values()) == writes, "waiting is free"


def test_a_kubelet_that_counts_seconds_in_its_message_costs_one_write() -> None:
    arena, key = writes_to_ready(QUICK)
    arena.writes.clear()
    arena.kubelets = lambda: None  # type: ignore[method-assign]  # the Node says what is said here
    for seconds in range(5):
        body = dict(arena.nodes()[0])
        said = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": f"PLEG: {seconds}s ago"}
        arena.view.put({**body, "status": {**body["status"], "conditions": [said]}})
        arena.round(key)
        arena.forward(10)
    assert arena.writes == {"PATCH Machine status": 1}
    assert arena.condition(key, "Ready")["message"] == "KubeletNotReady: PLEG: 0s ago"


def test_thirty_machines_do_not_confuse_their_nodes() -> None:
    arena = Arena()
    keys = [arena.apply(born(f"m-{n}")) for n in range(30)]
    for _ in range(60):
        for key in keys:
            arena.round(key)
        arena.forward(0.1)
    for key in keys:
        body = arena.machine(key)
        assert body["status"]["nodeRef"]["name"] == key.name
        assert body["status"]["phase"] == "Running"
    assert len(arena.nodes()) == len(arena.world.hosts()) == 30
