"""What comes before a host may go, in which order, and what each stage waits for at most."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Delete, DeleteHost, Event, Evict
from controllers.kernel.refs import MACHINE, NODE, POD, VOLUME_ATTACHMENT, Key
from controllers.kernel.view import Reached
from tests.builders import Builder, cluster, machine
from tests.controllers.machine.arena import Arena, Refused
from tests.controllers.machine.pods import attachment, budget, daemon_set, pod, volume
from tests.controllers.machine.test_deletion import QUICK, deleted, running

STUCK = (pod("web").on("m-1").ready(), budget("keep").over("web").allowing(0))


def wanting(**spec: Any) -> Builder:
    found = machine("m-1").provider_config(**QUICK)
    found.spec.update(spec)
    return found


def reason(arena: Arena, key: Key) -> str:
    return str(arena.condition(key, "Deleting")["reason"])


def clock(arena: Arena, key: Key, name: str) -> str:
    return str(arena.machine(key)["status"]["deletion"].get(name, ""))


def test_volumes_are_waited_for_after_the_pods_and_before_the_host() -> None:
    arena, key = running(pod("db").on("m-1").claiming("data"), volume("pv", "data"), attachment("pv", "m-1"))
    deleted(arena, key, 300)
    assert reason(arena, key) == "WaitingForVolumeDetach"
    assert "Node: pv" in arena.condition(key, "Deleting")["message"]
    assert arena.condition(key, "Drained")["reason"] == "Drained"
    assert clock(arena, key, "waitForNodeVolumeDetachStartTime")
    assert len(arena.world.hosts()) == 1
    arena.writes.clear()
    arena.run(key, 300)
    assert arena.writes == {}, "waiting costs no writes"
    arena.view.drop(VOLUME_ATTACHMENT, "csi-pv")
    arena.run(key)
    assert not arena.exists(key)


def test_node_volume_detach_timeout_ends_the_waiting() -> None:
    arena, key = running(attachment("pv", "m-1"), builder=wanting(nodeVolumeDetachTimeout="2m"))
    deleted(arena, key, 90)
    assert arena.exists(key)
    arena.run(key, 90)
    assert not arena.exists(key)


@pytest.mark.parametrize("annotation", [names.NO_VOLUME_WAIT_ANNOTATION, names.OWN_NO_VOLUME_WAIT_ANNOTATION])
def test_an_annotation_skips_the_waiting_for_volumes(annotation: str) -> None:
    arena, key = running(attachment("pv", "m-1"))
    arena.edit(key, {"metadata": {"annotations": {annotation: ""}}})
    deleted(arena, key)
    assert not arena.exists(key)


def test_volumes_of_pods_that_a_given_up_drain_leaves_are_not_waited_for() -> None:
    """CAPI waits for them as well, and so for ever: nobody detaches the volume of a pod that runs."""
    held = pod("web").on("m-1").ready().claiming("data")
    drain_context = (held, STUCK[1], volume("pv", "data"), attachment("pv", "m-1"))
    arena, key = running(*drain_context, builder=wanting(nodeDrainTimeout="1m"))
    deleted(arena, key, 120)
    assert not arena.exists(key)


def test_volumes_of_an_unreachable_node_are_not_waited_for() -> None:
    """cluster-api#10661: nobody there can unmount them."""
    arena, key = running(attachment("pv", "m-1"))
    arena.kubelets = lambda: None  # type: ignore[method-assign]
    node = arena.nodes()[0]
    since = arena.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    silent = [{"type": "Ready", "status": "Unknown", "lastTransitionTime": since}]
    arena.view.put({**node, "status": {**node["status"], "conditions": silent}})
    deleted(arena, key, 30)
    assert arena.exists(key)
    arena.run(key, 60)
    assert not arena.exists(key)


def test_hooks_drain_volumes_and_host_come_in_this_order() -> None:
    hooks = {f"{names.PRE_DRAIN_HOOK_PREFIX}/a": "", f"{names.PRE_TERMINATE_HOOK_PREFIX}/b": ""}
    arena, key = running(pod("web").on("m-1"), attachment("pv", "m-1"))
    arena.edit(key, {"metadata": {"annotations": hooks}})
    deleted(arena, key)
    assert reason(arena, key) == "WaitingForHook"
    assert not arena.nodes()[0]["spec"].get("unschedulable"), "nothing is begun before the pre-drain hook is gone"
    assert "deletion" not in arena.machine(key)["status"]
    arena.edit(key, {"metadata": {"annotations": {f"{names.PRE_DRAIN_HOOK_PREFIX}/a": None}}})
    arena.run(key)
    assert reason(arena, key) == "WaitingForVolumeDetach"
    arena.view.drop(VOLUME_ATTACHMENT, "csi-pv")
    arena.run(key)
    assert reason(arena, key) == "WaitingForHook"
    assert clock(arena, key, "waitForPreTerminateHookStartTime")
    arena.edit(key, {"metadata": {"annotations": {f"{names.PRE_TERMINATE_HOOK_PREFIX}/b": None}}})
    arena.run(key)
    assert not arena.exists(key)


def test_a_drain_timeout_does_not_run_while_a_pre_drain_hook_waits() -> None:
    hook = f"{names.PRE_DRAIN_HOOK_PREFIX}/backup"
    arena, key = running(*STUCK, builder=wanting(nodeDrainTimeout="1m"))
    arena.edit(key, {"metadata": {"annotations": {hook: ""}}})
    deleted(arena, key, 600)
    arena.edit(key, {"metadata": {"annotations": {hook: None}}})
    arena.run(key, 45)
    assert reason(arena, key) == "DrainBlocked"
    arena.run(key, 60)
    assert not arena.exists(key)


def test_what_lands_on_the_node_while_a_pre_terminate_hook_waits_is_left_to_whoever_holds_it() -> None:
    arena, key = running(pod("web").on("m-1"))
    arena.edit(key, {"metadata": {"annotations": {f"{names.OWN_PRE_TERMINATE_HOOK_PREFIX}/b": ""}}})
    deleted(arena, key)
    assert arena.condition(key, "Drained")["reason"] == "Drained"
    arena.view.put(pod("copy").on("m-1"))
    arena.run(key, 60)
    assert [a.target.key.name for a in arena.done if isinstance(a, Evict)] == ["web"]
    assert arena.condition(key, "Drained")["reason"] == "Drained"


def test_stages_escalate_only_as_the_spec_says() -> None:
    arena, key = running(*STUCK, builder=wanting(nodeDrainDeleteAfter="1m"))
    deleted(arena, key, 50)
    assert not any(isinstance(a, Delete) for a in arena.done)
    arena.run(key, 60)
    (pod_delete,) = [a for a in arena.done if isinstance(a, Delete) and a.target.kind == POD]
    assert pod_delete.grace_seconds is None
    assert not arena.exists(key)


def test_a_timeout_that_is_set_during_the_drain_counts_from_its_beginning() -> None:
    """cluster-api#10588: a change of the drain timeout was ignored once a Machine was being deleted."""
    arena, key = running(*STUCK)
    deleted(arena, key, 600)
    assert arena.exists(key)
    arena.edit(key, {"spec": {"nodeDrainTimeout": "5m"}})
    arena.run(key, 30)
    assert not arena.exists(key)


def test_the_whole_cluster_going_there_is_no_drain() -> None:
    """cluster-api#5881: evicted pods would have nowhere to go."""
    arena, key = running(*STUCK, attachment("pv", "m-1"), builder=wanting().in_cluster("prod"))
    arena.view.living_in(Reached("prod-kubeconfig")).put(cluster("prod").deleting())
    deleted(arena, key)
    assert not arena.exists(key)
    assert not any(isinstance(a, Evict) for a in arena.done)
    assert [n["metadata"]["name"] for n in arena.nodes()] == ["m-1"], "nobody needs it any more"


def test_the_cluster_going_whose_pods_live_at_home_there_is_a_drain() -> None:
    """Its Nodes carry the pods of a cluster that stays."""
    arena, key = running(pod("web").on("m-1"), builder=wanting().in_cluster("prod"))
    arena.view.put(cluster("prod").deleting())
    deleted(arena, key)
    assert [a.target.key.name for a in arena.done if isinstance(a, Evict)] == ["web"]
    assert not arena.exists(key)


CONTROL_PLANE: dict[str, Any] = {"versions": {"kubelet": "1.34.0", "controlPlane": "1.34.0"}}


def test_the_last_machine_of_a_control_plane_goes_without_drain_and_leaves_its_node() -> None:
    """release-0.1: nobody would be left to answer."""
    arena, key = running(*STUCK, builder=wanting(**CONTROL_PLANE))
    arena.view.put(machine("worker"))
    deleted(arena, key)
    assert not arena.exists(key)
    assert [n["metadata"]["name"] for n in arena.nodes()] == ["m-1"]


def test_one_of_several_is_drained_and_takes_its_node_along() -> None:
    other = machine("other")
    other.spec.update(CONTROL_PLANE)
    arena, key = running(pod("web").on("m-1"), other, builder=wanting(**CONTROL_PLANE))
    deleted(arena, key)
    assert [a.target.key.name for a in arena.done if isinstance(a, Evict)] == ["web"]
    assert not arena.exists(key)
    assert arena.nodes() == []


class Stubborn(Arena):
    """The API server does not let the Node go."""

    def perform(self, action: Any) -> None:
        if isinstance(action, Delete) and action.target.kind == NODE:
            raise Refused("a webhook says no")
        super().perform(action)


def stubborn(**spec: Any) -> tuple[Stubborn, Key]:
    arena = Stubborn()
    key = arena.apply(wanting(**spec))
    arena.run(key)
    arena.delete(key)
    for _ in range(120):
        if not arena.exists(key):
            break
        arena.round(key)
        arena.forward(1)
    return arena, key


def test_a_node_that_can_not_be_deleted_holds_the_machine_for_ever() -> None:
    arena, key = stubborn()
    assert arena.exists(key)
    assert len(arena.nodes()) == 1


def test_unless_node_deletion_timeout_says_how_long() -> None:
    arena, key = stubborn(nodeDeletionTimeout="30s")
    assert not arena.exists(key)
    assert len(arena.nodes()) == 1
    assert any(isinstance(a, Event) and "nodeDeletionTimeout" in a.why for a in arena.done)
    assert stubborn(nodeDeletionTimeout="0s")[0].exists(key)


def carrying(*deletion_guards: Builder, **annotations: str) -> tuple[Arena, Key]:
    arena = Arena(hosting_node="m-1")
    arena.view.put(*deletion_guards)
    key = arena.apply(wanting())
    arena.run(key)
    if annotations:
        arena.edit(key, {"metadata": {"annotations": annotations}})
    arena.delete(key)
    arena.run(key, 120)
    return arena, key


def test_the_machine_that_carries_this_controller_stays_and_says_why() -> None:
    arena, key = carrying()
    assert arena.exists(key)
    assert reason(arena, key) == "HostsController"
    assert names.ALLOW_SELF_DELETION_ANNOTATION in arena.condition(key, "Deleting")["message"]
    assert not arena.nodes()[0]["spec"].get("unschedulable")
    assert sum(isinstance(a, Event) for a in arena.done) == 1


def test_told_so_it_goes_but_after_all_others_that_go() -> None:
    arena, key = carrying(machine("m-2").deleting(), **{names.ALLOW_SELF_DELETION_ANNOTATION: "true"})
    assert "first go m-2" in arena.condition(key, "Deleting")["message"]
    arena.view.drop(MACHINE, "m-2")
    arena.run(key, 120)
    assert not arena.exists(key)


def test_a_node_of_that_name_in_another_cluster_does_not_carry_it() -> None:
    arena = Arena(hosting_node="m-1")
    arena.view.living_in(Reached("prod-kubeconfig"))
    key = arena.apply(wanting())
    arena.run(key)
    deleted(arena, key)
    assert not arena.exists(key)


def test_its_host_is_not_replaced_either() -> None:
    arena = Arena(hosting_node="m-1")
    key = arena.apply(machine("m-1").provider_config(**QUICK, updates="Replace"))
    arena.run(key)
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.35.0"}}})
    arena.run(key, 120)
    assert not any(isinstance(a, DeleteHost) for a in arena.done)
    assert arena.condition(key, "UpToDate")["reason"] == "HostsController"
    arena.edit(key, {"metadata": {"annotations": {names.ALLOW_SELF_DELETION_ANNOTATION: "true"}}})
    arena.run(key, 120)
    assert arena.condition(key, "UpToDate")["reason"] == "UpToDate"


def test_a_replaced_host_waits_for_its_volumes_too() -> None:
    arena, key = running(attachment("pv", "m-1"), builder=wanting(nodeVolumeDetachTimeout="1m"))
    arena.edit(key, {"spec": {"providerConfig": {"value": {"updates": "Replace"}}, "versions": {"kubelet": "1.35.0"}}})
    arena.run(key, 40)
    assert arena.condition(key, "UpToDate")["reason"] == "WaitingForVolumeDetach"
    assert not any(isinstance(a, DeleteHost) for a in arena.done)
    arena.run(key, 120)
    assert arena.condition(key, "UpToDate")["reason"] == "UpToDate"


def test_what_ends_with_a_drain_is_told_once() -> None:
    arena, key = running(pod("lone").on("m-1").bare(), daemon_set("agent"), pod("agent").on("m-1").of_daemon_set())
    deleted(arena, key)
    told = [a.why for a in arena.done if isinstance(a, Event)]
    assert told == ["this ends with the drain: default/lone (no controller makes it again)"]
