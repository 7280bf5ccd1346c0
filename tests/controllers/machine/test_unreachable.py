"""A Machine whose workload cluster can't be reached: nothing is taken away, and it says so."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.actions import CreateHost, Delete, DeleteHost, Event, Evict, Patch, UpdateHost
from controllers.kernel.plan import Blocked
from controllers.kernel.refs import MACHINE, NODE, WORKLOAD_KINDS, Key
from controllers.kernel.view import MANAGEMENT_CLUSTER, Reached, Unreachable
from controllers.machine import orphaned_node
from providers.simulated.config import Cloud
from tests.builders import cluster, machine
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.pods import pod

LOST = Unreachable("prod-kubeconfig", "Unreachable", "connect: refused")
FOUND = Reached("prod-kubeconfig")
QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2, "deleteSeconds": 0.5}
HARM = (DeleteHost, UpdateHost, Evict, Delete)


def running(**config: Any) -> tuple[Arena, Key]:
    """A Machine of Cluster prod that runs there, and all that was done for it forgotten."""
    arena = Arena(Cloud(name="arena"))
    arena.view.put(cluster("prod"))
    arena.view.living_in(FOUND)
    key = arena.apply(machine("m-1").in_cluster("prod").provider_config(**{**QUICK, **config}))
    arena.run(key)
    arena.done.clear()
    return arena, key


def lost(**config: Any) -> tuple[Arena, Key]:
    arena, key = running(**config)
    arena.view.living_in(LOST)
    return arena, key


def harm(arena: Arena) -> list[str]:
    """What was done to the host, or to anything in the workload cluster."""
    kinds = [a for a in arena.done if isinstance(a, Patch | Delete | Evict) and a.target.kind in WORKLOAD_KINDS]
    return [action.why for action in [*kinds, *(a for a in arena.done if isinstance(a, HARM))]]


def test_its_node_is_unknown_and_all_else_stays_as_it_was() -> None:
    arena, key = lost()
    before = arena.machine(key)["status"]
    arena.run(key)
    status = arena.machine(key)["status"]
    assert arena.condition(key, "NodeReady")["status"] == "Unknown"
    assert arena.condition(key, "NodeReady")["reason"] == "ConnectionDown"
    assert "Cluster default/prod" in arena.condition(key, "NodeReady")["message"]
    assert arena.condition(key, "Ready")["status"] == "True"
    assert [status[name] for name in ("phase", "nodeRef", "versions")] == [
        before[name] for name in ("phase", "nodeRef", "versions")
    ]


def test_it_is_said_once() -> None:
    arena, key = lost()
    arena.run(key)
    arena.writes.clear()
    arena.run(key, 3600)
    assert arena.writes == {}


def test_it_is_taken_back_when_the_cluster_answers() -> None:
    arena, key = lost()
    arena.run(key)
    arena.view.living_in(FOUND)
    arena.run(key)
    assert arena.condition(key, "NodeReady")["status"] == "True"
    assert arena.condition(key, "Ready")["status"] == "True"
    assert harm(arena) == []


def test_deletion_waits_and_says_for_what() -> None:
    arena, key = lost()
    arena.delete(key)
    plans = arena.run(key, 3600)
    assert harm(arena) == []
    assert arena.condition(key, "Deleting")["reason"] == "ConnectionDown"
    assert names.ABANDON_NODE_ANNOTATION in arena.condition(key, "Deleting")["message"]
    assert isinstance(plans[-1].outcome, Blocked)
    assert [a.reason for a in arena.done if isinstance(a, Event)] == ["ConnectionDown"]


def test_deletion_goes_on_with_the_drain_when_the_cluster_answers() -> None:
    arena, key = lost()
    arena.delete(key)
    arena.run(key)
    arena.view.living_in(FOUND)
    arena.view.put(pod("web-1").on("m-1"))
    arena.run(key)
    assert [a.target.key.name for a in arena.done if isinstance(a, Evict)] == ["web-1"]
    assert not arena.exists(key)
    assert arena.nodes() == []
    assert arena.world.hosts() == ()


def test_a_host_that_went_by_itself_does_not_let_its_machine_go_while_its_node_is_out_of_reach() -> None:
    arena, key = lost()
    arena.delete(key)
    arena.world.lose_host(arena.machine(key)["metadata"]["uid"])
    arena.run(key, 60)
    assert arena.exists(key)
    assert "its Node stays" in arena.condition(key, "Deleting")["message"]


def test_a_machine_without_a_host_may_go() -> None:
    arena = Arena(Cloud(name="arena", quota={"hosts": 0}))
    arena.view.living_in(LOST)
    key = arena.apply(machine("m-1").in_cluster("prod").provider_config(**QUICK))
    arena.run(key, 5)
    arena.delete(key)
    arena.run(key, 60)
    assert not arena.exists(key)


def test_the_annotation_gives_up_the_node_and_its_pods() -> None:
    arena, key = lost()
    arena.delete(key)
    arena.edit(key, {"metadata": {"annotations": {names.ABANDON_NODE_ANNOTATION: ""}}})
    arena.run(key)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()
    assert len(arena.nodes()) == 1, "nobody can delete it"


def test_the_annotation_does_nothing_while_the_cluster_answers() -> None:
    arena, key = running()
    arena.delete(key)
    arena.edit(key, {"metadata": {"annotations": {names.ABANDON_NODE_ANNOTATION: ""}}})
    arena.run(key)
    assert not arena.exists(key)
    assert arena.nodes() == []


@pytest.mark.parametrize("workload", [LOST, FOUND], ids=["unreached", "reached"])
def test_a_machine_that_goes_with_its_whole_cluster_is_not_drained(workload: Any) -> None:
    arena, key = running()
    arena.view.living_in(workload).put(cluster("prod").deleting(5, names.CLUSTER_FINALIZER))
    arena.delete(key)
    arena.run(key)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()
    assert not any(isinstance(a, Patch | Delete | Evict) and a.target.kind in WORKLOAD_KINDS for a in arena.done)


def test_at_home_the_nodes_of_a_cluster_that_goes_are_drained_and_deleted() -> None:
    """They carry the pods of a cluster that stays."""
    arena, key = running()
    arena.view.put(cluster("prod").deleting(5, names.CLUSTER_FINALIZER)).living_in(MANAGEMENT_CLUSTER)
    arena.delete(key)
    arena.run(key)
    assert arena.nodes() == []
    assert any(isinstance(a, Patch) and a.target.kind == NODE for a in arena.done), "it was cordoned"


def test_a_host_is_made_and_waits_for_its_node() -> None:
    arena = Arena(Cloud(name="arena"))
    arena.view.living_in(LOST)
    key = arena.apply(machine("m-1").in_cluster("prod").provider_config(**QUICK))
    arena.run(key, 300)
    assert [type(a) for a in arena.done if isinstance(a, CreateHost)] == [CreateHost]
    assert arena.machine(key)["status"]["phase"] == "Provisioned"
    assert arena.condition(key, "Ready")["status"] == "Unknown"


@pytest.mark.parametrize("updates", ["InPlace", "DrainThenInPlace", "Replace"])
def test_a_changed_spec_waits(updates: str) -> None:
    arena, key = lost(updates=updates)
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.36.0"}}})
    arena.run(key, 300)
    assert harm(arena) == []
    assert arena.condition(key, "UpToDate")["reason"] == "ConnectionDown"
    arena.view.living_in(FOUND)
    arena.run(key, 300)
    assert arena.condition(key, "UpToDate")["status"] == "True"


def test_a_replacement_that_was_begun_waits() -> None:
    arena, key = running(updates="Replace")
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.36.0"}}})
    while not arena.machine(key)["status"].get("replacement"):
        arena.round(key)
        arena.forward(0.1)
    arena.view.living_in(LOST)
    arena.done.clear()
    arena.run(key, 300)
    assert harm(arena) == []
    assert arena.machine(key)["status"]["nodeRef"]["name"] == "m-1"


def test_a_node_that_was_left_behind_is_not_judged() -> None:
    arena, key = lost()
    arena.view.drop(MACHINE, "m-1")
    assert orphaned_node.find(key, arena.view) is None
    arena.view.living_in(FOUND)
    assert orphaned_node.find(key, arena.view) is not None


def test_a_pause_is_stronger() -> None:
    arena, key = lost()
    arena.view.put(cluster("prod").paused())
    arena.run(key)
    assert arena.condition(key, "Paused")["status"] == "True"
    assert arena.condition(key, "NodeReady")["status"] == "True", "left as it was"


def test_a_machine_that_may_be_at_home_waits_even_if_its_cluster_is_going() -> None:
    """Nobody could look for a Secret: its Node may carry the pods of a cluster that stays."""
    arena, key = running()
    arena.view.living_in(Unreachable("", "Unreachable", "Forbidden"))
    arena.view.put(cluster("prod").deleting(5, names.CLUSTER_FINALIZER))
    arena.delete(key)
    arena.run(key)
    assert harm(arena) == []
    assert arena.exists(key)
