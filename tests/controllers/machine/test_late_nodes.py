"""The Node of a replaced host that turns up late: seed 631 of the simulation lost the event that told of it.

It would belong to nobody, and the new host of the same name could never register.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Delete, DeleteHost, Event, Evict
from controllers.kernel.in_place import Revision
from controllers.kernel.plan import Plan
from controllers.kernel.refs import NODE, POD, Key, Obj
from controllers.kernel.view import HostPresent, Reached, Unreachable
from controllers.machine import node_takeover as taken_over_rules
from providers.base.contract import Host, HostState
from providers.simulated.kubelet import node_for
from tests.builders import cluster, machine
from tests.controllers.machine.arena import Arena, Refused
from tests.controllers.machine.pods import budget, pod

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
    arena.forward(1)  # Kubernetes tells times in whole seconds
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
    node["metadata"]["annotations"].pop(names.NODE_MACHINE_UID_ANNOTATION)
    node["metadata"]["annotations"].pop(names.NODE_MACHINE_ANNOTATION, None)
    return node


def deleted(arena: Arena) -> list[str]:
    return [a.target.uid for a in arena.done if isinstance(a, Delete) and a.target.kind is NODE]


def provider_ids(nodes: list[Obj]) -> list[str]:
    return [node["spec"]["providerID"] for node in nodes]


def test_a_late_node_that_says_nothing_stays_since_nothing_proves_whose_it_is() -> None:
    """``status.replacement`` is no proof: whoever may write a Machine's status could name any host there."""
    arena, key, late = replaced_unseen()
    arena.view.put(without_words(late))
    arena.run(key)
    assert deleted(arena) == []


def test_a_late_node_of_a_replaced_host_goes_and_the_new_host_joins() -> None:
    arena, key, late = replaced_unseen()
    arena.view.put(late)
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
    late["metadata"]["annotations"][names.NODE_MACHINE_UID_ANNOTATION] = "uid-of-another"
    arena.view.put(late)
    arena.run(key, 20)
    assert deleted(arena) == []


def test_a_node_whose_provider_id_another_machine_has_by_now_stays() -> None:
    """Bare metal comes back: what was our old host may be another's new one."""
    arena, key, late = replaced_unseen()
    arena.view.put(machine("m-2").provider_id(late["spec"]["providerID"]), without_words(late))
    arena.run(key, 20)
    assert deleted(arena) == []


def test_a_provider_id_that_somebody_wrote_in_another_namespace_keeps_no_node() -> None:
    arena, key, late = replaced_unseen()
    rival = machine("m-2", "hostile").uid("rival").provider_id(late["spec"]["providerID"])
    arena.view.put(rival.annotated("cluster.x-k8s.io/paused", "true"), late)
    arena.run(key, 20)
    assert deleted(arena) == [late["metadata"]["uid"]]


def test_one_whose_host_was_seen_in_another_namespace_does() -> None:
    arena, key, late = replaced_unseen()
    other = machine("m-2", "other").uid("other").provider_id(late["spec"]["providerID"])
    other.status["hostScope"] = "simulated/default"
    arena.view.put(other, late)
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
    arena.view.living_in(Unreachable("prod-kubeconfig", "Unreachable", "connect: refused"))
    arena.round(key)
    assert deleted(arena) == []
    arena.view.living_in(Reached("prod-kubeconfig"))
    arena.run(key)
    assert deleted(arena) == [late["metadata"]["uid"]]
    assert arena.condition(key, "Ready")["status"] == "True"


def node_takeover() -> tuple[Arena, Key, dict[str, Any]]:
    """The kubelet of the new host has found the Node of the old one, and reports on it; a pod runs there."""
    arena, key = booted_unseen()
    taken = node_of_its_host(arena)
    upgrade(arena, key, "1.34.1")
    arena.registered.update(host.id for host in arena.world.hosts())
    arena.view.put(taken, pod("web").on("m-1"))
    while not list(arena.world.booted()):
        arena.forward(0.5)
    return arena, key, taken


def plan_on_a_list_that_lags(arena: Arena, key: Key) -> Plan:
    """It shows the host as it was a moment ago."""
    reads = arena.reads(key)
    assert isinstance(reads.host, HostPresent)
    before = replace(reads.host.host, state=HostState.PENDING)
    observed = arena.reconciler.observe(key, arena.view, replace(reads, host=HostPresent(before)))
    assert observed is not None
    return arena.reconciler.plan(observed)


def heartbeat(node: dict[str, Any], moment: datetime) -> dict[str, Any]:
    stamp = {"lastHeartbeatTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
    node["status"]["conditions"] = [{**c, **stamp} for c in node["status"]["conditions"]]
    return node


def test_a_node_that_the_new_hosts_kubelet_has_taken_over_is_not_torn_away_from_its_pods() -> None:
    arena, key, _ = node_takeover()
    before = arena.machine(key)["spec"]["providerID"]
    arena.run(key, 20)
    assert deleted(arena) == []
    assert arena.machine(key)["spec"]["providerID"] == before
    assert arena.view.get(POD, Key("default", "web")) is not None


def test_it_stays_though_the_list_still_shows_the_new_host_booting() -> None:
    """Seeds 505 and 558: the Node was newer news than the list, and the Machine never got another."""
    arena, key, _ = node_takeover()
    assert not [a for a in plan_on_a_list_that_lags(arena, key).actions() if isinstance(a, Delete)]


def test_and_though_its_kubelet_has_fallen_silent() -> None:
    arena, key, _ = node_takeover()
    (node,) = arena.nodes()
    arena.view.put(silent(copy.deepcopy(dict(node))))
    arena.round(key)
    assert deleted(arena) == []


def test_once_that_is_certain_its_pods_move_and_another_host_with_its_own_node_comes() -> None:
    arena, key, taken = node_takeover()
    second = arena.machine(key)["spec"]["providerID"]
    arena.run(key, 300)
    third = arena.machine(key)["spec"]["providerID"]
    assert third not in {second, taken["spec"]["providerID"]}
    assert provider_ids(arena.nodes()) == [third]
    assert arena.condition(key, "Ready")["status"] == "True"
    moved = next(i for i, done in enumerate(arena.done) if isinstance(done, Evict))
    removed = [i for i, done in enumerate(arena.done) if isinstance(done, DeleteHost)][-1]
    gone = next(i for i, done in enumerate(arena.done) if isinstance(done, Delete))
    assert moved < removed < gone
    assert [e.reason for e in arena.done if isinstance(e, Event)] == ["Replacing", "NodeTakenOver"]
    assert "replacement" not in arena.machine(key)["status"]


def test_while_the_host_is_replaced_once_more_the_machine_says_why() -> None:
    arena, key, taken = node_takeover()
    arena.view.put(budget("web").over("web").allowing(0))
    arena.run(key, 120)
    said = arena.condition(key, "NodeReady")
    assert (said["status"], said["reason"]) == ("False", "NodeTakenOver")
    assert taken["spec"]["providerID"] in said["message"]
    assert arena.condition(key, "UpToDate")["reason"] == "Replacing"
    assert deleted(arena) == []


def test_where_no_other_host_is_allowed_it_is_only_said() -> None:
    arena, key, _ = node_takeover()
    spec = arena.machine(key)["spec"]
    notes = {names.TEMPLATE_ANNOTATION: Revision({"spec": spec}).digest, names.IN_PLACE_ANNOTATION: "Require"}
    arena.edit(key, {"metadata": {"annotations": notes}})
    arena.run(key, 300)
    assert arena.condition(key, "NodeReady")["reason"] == "NodeTakenOver"
    assert arena.machine(key)["spec"]["providerID"] == spec["providerID"]
    assert deleted(arena) == []


def test_a_machine_that_is_deleted_drains_the_node_that_was_taken_over() -> None:
    arena, key, _ = node_takeover()
    arena.delete(key)
    arena.run(key, 120)
    kinds = [type(done) for done in arena.done if isinstance(done, Evict | DeleteHost)]
    assert kinds[-2:] == [Evict, DeleteHost]
    assert not arena.exists(key)
    assert arena.nodes() == []


def test_the_last_word_of_the_old_host_is_waited_for_while_the_new_one_runs() -> None:
    """Its kubelet may find the Node at any moment. One that nobody reports on becomes Unknown, and then it goes."""
    arena, key = booted_unseen()
    late = node_of_its_host(arena)
    upgrade(arena, key, "1.34.1")
    while not list(arena.world.booted()):
        arena.forward(0.5)
    arena.view.put(late)
    arena.round(key)
    assert deleted(arena) == []
    arena.view.put(silent(late))
    arena.round(key)
    assert deleted(arena) == [late["metadata"]["uid"]]


def test_a_kubelet_that_begins_to_report_meanwhile_keeps_the_node() -> None:
    arena, key, late = replaced_unseen()
    arena.view.put(late)
    (delete,) = [action for action in arena.plan(key).actions() if isinstance(action, Delete)]
    arena.forward(10)
    assert list(arena.world.booted())
    with pytest.raises(Refused):
        arena.perform(delete)


HOST = Host("h-1", "uid", "m-1", "simulated://h-1", HostState.PENDING, "hash")


@pytest.mark.parametrize("since", [-1, 1])
def test_of_a_host_that_does_not_say_when_it_was_made_only_silence_tells(since: int) -> None:
    made = datetime(2026, 6, 1, tzinfo=UTC)
    node = heartbeat({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, made + timedelta(seconds=since))
    unknown = HostPresent(HOST)
    assert taken_over_rules.among([node], unknown) is node
    assert not taken_over_rules.may_go(node, unknown)
    assert taken_over_rules.among([silent(node)], unknown) is None
    assert taken_over_rules.may_go(silent(node), unknown)
    known = HostPresent(replace(HOST, created_at=made))
    assert (taken_over_rules.among([node], known) is node) == (since > 0)


def test_while_the_provider_can_not_be_asked_no_late_node_goes() -> None:
    """The new host may have taken it over, and be cut off for a while."""
    arena, key, late = replaced_unseen()
    arena.view.put(late)
    arena.cloud_answers = False
    arena.run(key, 5)
    assert deleted(arena) == []
