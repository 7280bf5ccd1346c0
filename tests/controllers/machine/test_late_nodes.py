"""The Node of a replaced host that turns up late: seed 631 of the simulation lost the event that told of it.

It would belong to nobody, and the new host of the same name could never register.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Delete
from controllers.kernel.refs import NODE, Key, Obj
from controllers.kernel.view import Reached, Unreached
from providers.simulated.kubelet import node_for
from tests.builders import cluster, machine
from tests.controllers.machine.arena import Arena

SLOW: dict[str, Any] = {"bootSeconds": 5, "joinSeconds": 0.2, "deleteSeconds": 0.5, "updates": "Replace"}


def booted_unseen() -> tuple[Arena, Key]:
    """A Machine whose host runs and has registered its Node, of which the controllers have not heard."""
    arena = Arena()
    arena.view.put(cluster("prod"))
    key = arena.apply(machine("m-1").in_cluster("prod").provider_config(**SLOW))
    boot_unseen(arena, key)
    return arena, key


def boot_unseen(arena: Arena, key: Key) -> None:
    while not arena.world.hosts():
        arena.round(key)
    arena.registered.update(host.id for host in arena.world.hosts())
    arena.run(key, 20)
    assert "nodeRef" not in arena.machine(key)["status"]


def node_of_its_host(arena: Arena) -> dict[str, Any]:
    (host,) = arena.world.booted()
    node = copy.deepcopy(dict(node_for(host, host.request_at(arena.now), arena.now)))
    node["metadata"].update(uid=f"uid-{host.id}", creationTimestamp="2026-01-01T00:00:00Z", resourceVersion="1")
    return node


def upgrade(arena: Arena, key: Key, version: str) -> None:
    """To a host that is asked for and does not run yet."""
    before = arena.machine(key)["spec"]["providerID"]
    arena.edit(key, {"spec": {"versions": {"kubelet": version}}})
    while arena.machine(key)["spec"].get("providerID") in {None, before}:
        arena.round(key)
        arena.forward(0.1)
    assert not list(arena.world.booted())


def replaced_unseen() -> tuple[Arena, Key, dict[str, Any]]:
    """Its old host was replaced before its Node was seen; that Node is handed back, silent."""
    arena, key = booted_unseen()
    node = node_of_its_host(arena)
    upgrade(arena, key, "1.34.1")
    return arena, key, silent(node)


def silent(node: dict[str, Any]) -> dict[str, Any]:
    node["status"]["conditions"] = [{**c, "status": "Unknown"} for c in node["status"]["conditions"]]
    return node


def without_words(node: dict[str, Any]) -> dict[str, Any]:
    """Nothing on it says whose it is, but its providerID."""
    node["metadata"]["labels"].pop(names.NODE_OWNED_BY_LABEL)
    node["metadata"]["annotations"].pop(names.NODE_MACHINE_ANNOTATION, None)
    return node


def deleted(arena: Arena) -> list[str]:
    return [a.target.uid for a in arena.done if isinstance(a, Delete) and a.target.kind is NODE]


def provider_ids(nodes: list[Obj]) -> list[str]:
    return [node["spec"]["providerID"] for node in nodes]


@pytest.mark.parametrize("words", [True, False], ids=["that says whose it is", "that says nothing"])
def test_a_late_node_of_a_replaced_host_goes_and_the_new_host_joins(words: bool) -> None:
    arena, key, late = replaced_unseen()
    arena.view.put(late if words else without_words(late))
    arena.run(key)
    assert deleted(arena) == [late["metadata"]["uid"]]
    assert provider_ids(arena.nodes()) == [arena.machine(key)["spec"]["providerID"]]
    assert arena.condition(key, "Ready")["status"] == "True"


def test_the_old_host_is_on_record_until_a_node_of_the_new_one_has_joined() -> None:
    arena, key, late = replaced_unseen()
    arena.registered.update(host.id for host in arena.world.hosts())
    arena.run(key, 150)
    assert "no Node" in arena.machine(key)["status"]["lastOperation"]["description"]
    assert arena.machine(key)["status"]["replacement"]["providerID"] == late["spec"]["providerID"]
    arena.view.put(node_of_its_host(arena))
    arena.run(key)
    assert "replacement" not in arena.machine(key)["status"]
    assert arena.condition(key, "Ready")["status"] == "True"


def test_a_second_replacement_before_the_first_one_joined_forgets_neither_host() -> None:
    arena, key, late = replaced_unseen()
    first = late["spec"]["providerID"]
    second = arena.machine(key)["spec"]["providerID"]
    upgrade(arena, key, "1.34.2")
    record = arena.machine(key)["status"]["replacement"]
    assert (record["earlierProviderIDs"], record["providerID"]) == ([first], second)
    arena.view.put(late)
    arena.run(key)
    assert deleted(arena) == [late["metadata"]["uid"]]
    assert "replacement" not in arena.machine(key)["status"]


def test_the_clocks_of_one_replacement_are_not_those_of_the_next() -> None:
    arena, key, _ = replaced_unseen()
    machine_ = copy.deepcopy(dict(arena.machine(key)))
    machine_["status"]["replacement"]["waitForNodeVolumeDetachStartTime"] = "2026-01-01T00:00:00Z"
    arena.view.put(machine_)
    upgrade(arena, key, "1.34.2")
    assert "waitForNodeVolumeDetachStartTime" not in arena.machine(key)["status"]["replacement"]


def test_a_machine_that_is_deleted_takes_the_late_node_along() -> None:
    arena, key, late = replaced_unseen()
    arena.delete(key)
    arena.view.put(late)
    arena.run(key)
    assert not arena.exists(key)
    assert arena.nodes() == []


def test_a_node_that_says_it_is_anothers_stays() -> None:
    arena, key, late = replaced_unseen()
    late["metadata"]["labels"][names.NODE_OWNED_BY_LABEL] = "uid-of-another"
    arena.view.put(late)
    arena.run(key, 20)
    assert deleted(arena) == []


def test_a_node_whose_provider_id_another_machine_has_by_now_stays() -> None:
    """Bare metal comes back: what was our old host may be another's new one."""
    arena, key, late = replaced_unseen()
    arena.view.put(machine("m-2").provider_id(late["spec"]["providerID"]), without_words(late))
    arena.run(key, 20)
    assert deleted(arena) == []


def test_while_nobody_knows_whether_the_old_host_is_gone_its_node_stays() -> None:
    arena, key = booted_unseen()
    late = node_of_its_host(arena)
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.34.1"}}})
    while arena.machine(key)["spec"].get("providerID"):
        arena.round(key)
        arena.forward(0.1)
    arena.cloud_answers = False
    arena.view.put(silent(late))
    arena.run(key, 5)
    assert deleted(arena) == []
    arena.cloud_answers = True
    arena.run(key, 5)
    assert deleted(arena) == [late["metadata"]["uid"]]


def test_while_the_workload_cluster_can_not_be_reached_nothing_of_it_is_deleted() -> None:
    arena, key, late = replaced_unseen()
    arena.view.put(late)
    arena.view.living_in(Unreached("prod-kubeconfig", "Unreachable", "connect: refused"))
    arena.round(key)
    assert deleted(arena) == []
    arena.view.living_in(Reached("prod-kubeconfig"))
    arena.run(key)
    assert deleted(arena) == [late["metadata"]["uid"]]
    assert arena.condition(key, "Ready")["status"] == "True"


def test_a_node_that_the_new_hosts_kubelet_has_taken_over_is_not_torn_away_from_its_pods() -> None:
    arena, key = booted_unseen()
    taken = node_of_its_host(arena)
    upgrade(arena, key, "1.34.1")
    arena.registered.update(host.id for host in arena.world.hosts())
    arena.forward(10)
    assert arena.world.booted()
    arena.view.put(taken)
    arena.run(key, 20)
    assert deleted(arena) == []
    assert "belongs to another host" in arena.condition(key, "NodeReady")["message"]
