"""A changed Machine: in place or replaced, as its provider decides."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.actions import CreateHost, DeleteHost, UpdateHost
from controllers.kernel.in_place import Revision
from controllers.kernel.refs import Key
from tests.builders import machine
from tests.builders.objects import Builder
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.pods import daemon_set, pod

QUICK: dict[str, Any] = {"bootSeconds": 0.6, "joinSeconds": 0.2, "updateSeconds": 1, "deleteSeconds": 0.5}
UPGRADE = {"spec": {"versions": {"kubelet": "1.34.1"}}}


def running(updates: str, *deletion_guards: Builder) -> tuple[Arena, Key]:
    arena = Arena()
    arena.view.put(*deletion_guards)
    key = arena.apply(machine("m-1").provider_config(**QUICK, updates=updates))
    arena.run(key)
    assert arena.condition(key, "Ready")["status"] == "True"
    arena.done.clear()
    arena.writes.clear()
    return arena, key


def kubelet_of(arena: Arena, key: Key) -> str:
    return str(arena.machine(key)["status"]["versions"]["kubelet"])


def calls(arena: Arena) -> list[str]:
    return [type(a).__name__ for a in arena.done if isinstance(a, CreateHost | UpdateHost | DeleteHost)]


def test_in_place_the_same_host_and_node_get_the_new_kubelet() -> None:
    arena, key = running("InPlace")
    before = arena.machine(key)
    (node,) = arena.nodes()
    arena.edit(key, UPGRADE)
    arena.run(key)
    after = arena.machine(key)
    assert kubelet_of(arena, key) == "v1.34.1"
    assert after["spec"]["providerID"] == before["spec"]["providerID"]
    assert [n["metadata"]["uid"] for n in arena.nodes()] == [node["metadata"]["uid"]]
    assert calls(arena) == ["UpdateHost"]
    assert arena.condition(key, "UpToDate")["status"] == "True"
    assert after["status"]["phase"] == "Running"


def test_while_it_is_changed_in_place_the_machine_says_so() -> None:
    arena, key = running("InPlace")
    arena.edit(key, UPGRADE)
    arena.round(key)
    assert arena.machine(key)["status"]["phase"] == "Updating"
    assert arena.condition(key, "UpToDate")["reason"] == "UpdatingInPlace"


def test_by_replacement_the_same_machine_gets_a_new_host_and_node() -> None:
    arena, key = running("Replace")
    before = arena.machine(key)
    (old,) = arena.nodes()
    arena.edit(key, UPGRADE)
    arena.run(key)
    after = arena.machine(key)
    (new,) = arena.nodes()
    assert kubelet_of(arena, key) == "v1.34.1"
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["providerID"] == new["spec"]["providerID"] != before["spec"]["providerID"]
    assert after["status"]["nodeRef"]["uid"] == new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "replacement" not in after["status"]
    assert calls(arena) == ["UpdateHost", "DeleteHost", "CreateHost"]
    assert len(arena.world.hosts()) == 1


def test_a_node_is_drained_before_its_host_is_replaced() -> None:
    arena, key = running("Replace", pod("web").on("m-1"), pod("agent").on("m-1").of_daemon_set(), daemon_set("agent"))
    arena.edit(key, UPGRADE)
    arena.run(key)
    why = [action.why for action in arena.done]
    evicted = next(i for i, text in enumerate(why) if text.startswith("evict pod default/web"))
    cordoned = next(i for i, text in enumerate(why) if text.startswith("cordon Node m-1"))
    deleted = next(i for i, action in enumerate(arena.done) if isinstance(action, DeleteHost))
    assert cordoned < evicted < deleted
    assert not any("agent" in text for text in why)
    assert kubelet_of(arena, key) == "v1.34.1"


def test_a_host_that_must_be_drained_is_drained_changed_and_uncordoned() -> None:
    arena, key = running("DrainThenInPlace", pod("web").on("m-1"))
    arena.edit(key, UPGRADE)
    arena.run(key)
    assert kubelet_of(arena, key) == "v1.34.1"
    asked = [action.drained for action in arena.done if isinstance(action, UpdateHost)]
    assert asked == [False, True]
    (node,) = arena.nodes()
    assert not node["spec"].get("unschedulable")
    assert "nodewright.dev/cordoned-for" not in node["metadata"]["annotations"]


def test_a_persons_own_cordon_survives_an_update() -> None:
    arena, key = running("DrainThenInPlace")
    node = dict(arena.nodes()[0])
    node["spec"] = {**node["spec"], "unschedulable": True}
    arena.view.put(node)
    arena.edit(key, UPGRADE)
    arena.run(key)
    assert kubelet_of(arena, key) == "v1.34.1"
    assert arena.nodes()[0]["spec"]["unschedulable"] is True


def test_a_change_that_the_provider_refuses_leaves_the_host_alone_and_says_what_to_do() -> None:
    arena, key = running("Refuse")
    arena.edit(key, UPGRADE)
    arena.run(key, 100)
    status = arena.machine(key)["status"]
    assert status["errorReason"] == status["failureReason"] == "UnsupportedChange"
    assert "undo the change" in status["failureMessage"]
    assert arena.condition(key, "UpToDate")["reason"] == "UnsupportedChange"
    assert kubelet_of(arena, key) == "v1.34.0"
    assert len(arena.world.hosts()) == 1


def test_undoing_a_refused_change_heals_the_machine() -> None:
    arena, key = running("Refuse")
    arena.edit(key, UPGRADE)
    arena.run(key, 100)
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.34.0"}}})
    arena.run(key)
    status = arena.machine(key)["status"]
    assert "errorReason" not in status
    assert "failureMessage" not in status
    assert arena.condition(key, "Ready")["status"] == "True"
    assert arena.condition(key, "UpToDate")["status"] == "True"


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"pool": "b"}}},
        {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        {"nodeDrainTimeout": "5m"},
    ],
    ids=["labels", "taints", "timeout"],
)
def test_metadata_taints_and_timeouts_touch_no_host(change: dict[str, Any]) -> None:
    arena, key = running("Replace")
    arena.edit(key, {"spec": change})
    arena.run(key)
    assert calls(arena) == []
    assert arena.condition(key, "UpToDate")["status"] == "True"


def test_a_version_with_and_without_the_v_is_the_same() -> None:
    arena, key = running("Replace")
    arena.edit(key, {"spec": {"versions": {"kubelet": "v1.34.0"}}})
    arena.run(key)
    assert calls(arena) == []


def test_two_changes_in_a_row_end_at_the_last_one() -> None:
    arena, key = running("Replace")
    arena.edit(key, UPGRADE)
    for _ in range(4):
        arena.round(key)
        arena.forward(0.1)
    arena.edit(key, {"spec": {"versions": {"kubelet": "1.34.2"}}})
    arena.run(key, 120)
    assert kubelet_of(arena, key) == "v1.34.2"
    assert len(arena.world.hosts()) == 1
    assert len(arena.nodes()) == 1


def required(version: str) -> dict[str, Any]:
    """What a MachineSet whose ``inPlaceUpdate`` has the policy Require writes to a Machine."""
    spec = {**machine("m-1").provider_config(**QUICK, updates="Replace").build()["spec"]}
    spec["versions"] = {"kubelet": version}
    notes = {names.TEMPLATE_ANNOTATION: Revision({"spec": spec}).digest, names.IN_PLACE_ANNOTATION: "Require"}
    return {"metadata": {"annotations": notes}, "spec": {"versions": {"kubelet": version}}}


def test_a_rollout_that_requires_in_place_replaces_no_host_and_says_so() -> None:
    """cluster-api#13863: there "can't be updated in place" always means replaced."""
    arena, key = running("Replace")
    before = arena.machine(key)["spec"]["providerID"]
    arena.edit(key, required("1.34.1"))
    arena.run(key)
    assert arena.machine(key)["spec"]["providerID"] == before
    assert calls(arena) == ["UpdateHost"]
    condition = arena.condition(key, "UpToDate")
    assert (condition["status"], condition["reason"]) == ("False", "NeedsReplacement")
    assert arena.condition(key, "Ready")["status"] == "True", "the old host still serves"
    assert "replacement" not in arena.machine(key)["status"]


def test_going_back_to_the_spec_that_the_host_has_makes_it_up_to_date_again() -> None:
    arena, key = running("Replace")
    old = arena.machine(key)["spec"]["versions"]["kubelet"]
    arena.edit(key, required("1.34.1"))
    arena.run(key)
    arena.edit(key, required(old))
    arena.run(key)
    assert arena.condition(key, "UpToDate")["status"] == "True"


def test_a_persons_own_edit_of_such_a_machine_may_replace_its_host() -> None:
    arena, key = running("Replace")
    before = arena.machine(key)["spec"]["providerID"]
    arena.edit(key, required("1.34.0"))
    arena.edit(key, UPGRADE)
    arena.run(key)
    assert arena.machine(key)["spec"]["providerID"] != before
    assert kubelet_of(arena, key) == "v1.34.1"
