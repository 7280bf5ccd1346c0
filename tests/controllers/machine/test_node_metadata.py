"""Labels, annotations and taints flow to the Node and back off it again; what others put there stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.autoscaler.balancing import alike
from controllers.kernel.refs import NODE, Key
from controllers.machine.machine_node import metadata_record, sync_metadata
from controllers.scheduling.reading import read_node
from providers.base.contract import NodeRegistration, Taint
from tests.builders import machine, node
from tests.controllers.machine.arena import Arena, merged

GPU = Taint("gpu", "NoSchedule", "yes")


def applied(*labels: str, taints: tuple[str, ...] = ()) -> dict[str, list[str]]:
    return {"labels": list(labels), "annotations": [], "taints": list(taints)}


WANTED: dict[str, tuple[Any, Any, NodeRegistration, dict[str, Any] | None]] = {
    "nothing wanted, nothing there": (node("n"), None, NodeRegistration(), None),
    "a label is added": (
        node("n").labelled(theirs="1"),
        None,
        NodeRegistration(labels={"ours": "1"}),
        {"metadata": {"labels": {"ours": "1"}}},
    ),
    "a label that somebody changed is set again": (
        node("n").labelled(ours="2"),
        applied("ours"),
        NodeRegistration(labels={"ours": "1"}),
        {"metadata": {"labels": {"ours": "1"}}},
    ),
    "a label that is ours and not wanted any more goes": (
        node("n").labelled(ours="1", theirs="1"),
        applied("ours"),
        NodeRegistration(),
        {"metadata": {"labels": {"ours": None}}},
    ),
    "a label that was never ours stays": (node("n").labelled(theirs="1"), applied(), NodeRegistration(), None),
    "a label that is ours but gone already costs nothing": (node("n"), applied("ours"), NodeRegistration(), None),
    "a taint is added behind those of others": (
        node("n").tainted("node.kubernetes.io/not-ready"),
        None,
        NodeRegistration(taints=(GPU,)),
        {
            "spec": {
                "taints": [
                    {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"},
                    {"key": "gpu", "effect": "NoSchedule", "value": "yes"},
                ]
            }
        },
    ),
    "a taint of another value is corrected in its place": (
        node("n").tainted("gpu", "no").tainted("z"),
        applied(taints=("gpu:NoSchedule",)),
        NodeRegistration(taints=(GPU,)),
        {
            "spec": {
                "taints": [
                    {"key": "gpu", "effect": "NoSchedule", "value": "yes"},
                    {"key": "z", "value": "", "effect": "NoSchedule"},
                ]
            }
        },
    ),
    "the same key with another effect is another taint": (
        node("n").tainted("gpu", "yes", "NoExecute"),
        applied(taints=("gpu:NoSchedule",)),
        NodeRegistration(),
        None,
    ),
    "our last taint goes": (
        node("n").tainted("gpu", "yes"),
        applied(taints=("gpu:NoSchedule",)),
        NodeRegistration(),
        {"spec": {"taints": []}},
    ),
    "nonsense in the record is no record": (node("n").labelled(a="1"), "nonsense", NodeRegistration(), None),
}


@pytest.mark.parametrize("case", WANTED)
def test_sync(case: str) -> None:
    builder, record, wanted, patch = WANTED[case]
    found = sync_metadata(builder.build(), record, wanted)
    assert (found.patch if found else None) == patch


@pytest.mark.parametrize("case", WANTED)
def test_sync_once_is_enough(case: str) -> None:
    builder, record, wanted, patch = WANTED[case]
    after = merged(builder.build(), patch or {})
    assert sync_metadata(after, record, wanted) is None


def test_a_patch_of_taints_is_guarded_and_one_of_labels_is_not() -> None:
    taints = sync_metadata(node("n").build(), None, NodeRegistration(taints=(GPU,)))
    labels = sync_metadata(node("n").build(), None, NodeRegistration(labels={"a": "1"}))
    assert taints is not None
    assert taints.resource_version == "1"
    assert labels is not None
    assert labels.resource_version == ""


def test_the_record_keeps_what_has_to_be_taken_back_until_it_is_gone() -> None:
    on_node = node("n").labelled(old="1", theirs="1")
    record = metadata_record(on_node.build(), applied("old", "gone"), NodeRegistration(labels={"new": "1"}))
    assert record["labels"] == ["new", "old"]


def running() -> tuple[Arena, Key]:
    arena = Arena()
    builder = machine("m-1").provider_config(bootSeconds=0.6)
    builder.spec["metadata"] = {"labels": {"pool": "a"}}
    key = arena.apply(builder)
    arena.run(key)
    return arena, key


def labels(arena: Arena) -> dict[str, str]:
    found: dict[str, str] = arena.nodes()[0]["metadata"]["labels"]
    return found


def test_editing_a_machines_labels_and_taints_edits_its_node() -> None:
    """machine-controller#1969, capa#4705: without rolling the Node, and with removal."""
    arena, key = running()
    people = dict(arena.nodes()[0])
    arena.view.put(
        merged(
            people, {"metadata": {"labels": {"mine": "1"}}, "spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}
        )
    )
    arena.edit(
        key,
        {
            "spec": {
                "metadata": {"labels": {"pool": None, "tier": "b"}},
                "taints": [{"key": "gpu", "effect": "NoSchedule"}],
            }
        },
    )
    arena.run(key)
    assert "pool" not in labels(arena)
    assert labels(arena)["tier"] == "b"
    assert labels(arena)["mine"] == "1"
    assert [t["key"] for t in arena.nodes()[0]["spec"]["taints"]] == ["x", "gpu"]
    arena.edit(key, {"spec": {"metadata": {"labels": {"tier": None}}, "taints": []}})
    arena.run(key)
    assert "tier" not in labels(arena)
    assert [t["key"] for t in arena.nodes()[0]["spec"]["taints"]] == ["x"]
    assert arena.machine(key)["status"]["appliedNodeMetadata"]["taints"] == []


@pytest.mark.parametrize("survives", range(4))
def test_a_crash_at_any_action_neither_orphans_a_label_nor_takes_anothers(survives: int) -> None:
    arena, key = running()
    arena.edit(key, {"spec": {"metadata": {"labels": {"pool": None, "tier": "b"}}}})
    arena.round(key, most=survives)
    arena.edit(key, {"spec": {"metadata": {"labels": {"tier": None}}}})
    arena.round(key, most=survives)
    arena.run(key)
    assert not {"pool", "tier"} & set(labels(arena))
    assert "kubernetes.io/hostname" in labels(arena)


def test_the_node_says_whose_it_is() -> None:
    arena, _ = running()
    meta = arena.nodes()[0]["metadata"]
    assert meta["annotations"]["cluster.k8s.io/machine"] == "default/m-1"
    assert meta["annotations"]["cluster.k8s.io/machine-uid"] == "uid-m-1"


OWNER, OWNER_UID = names.NODE_OWNED_BY_LABEL, names.NODE_MACHINE_UID_ANNOTATION


def test_no_label_of_a_node_differs_from_that_of_its_like() -> None:
    """Autoscalers compare the labels of real Nodes to find groups that are similar."""
    arena, _ = running()
    assert "uid-m-1" not in labels(arena).values()


@pytest.mark.parametrize("recorded", [True, False], ids=["written by an earlier release", "registered by a kubelet"])
def test_the_label_of_this_owner_leaves_a_node_that_has_it(recorded: bool) -> None:
    arena, key = running()
    earlier = {"metadata": {"labels": {OWNER: "uid-m-1"}, "annotations": {OWNER_UID: None}}}
    arena.view.put(merged(dict(arena.nodes()[0]), earlier))
    if recorded:
        applied = arena.machine(key)["status"]["appliedNodeMetadata"]
        arena.view.put(
            merged(arena.machine(key), {"status": {"appliedNodeMetadata": {"labels": [*applied["labels"], OWNER]}}})
        )
    arena.run(key)
    assert OWNER not in labels(arena)
    assert arena.nodes()[0]["metadata"]["annotations"][OWNER_UID] == "uid-m-1"
    assert OWNER not in arena.machine(key)["status"]["appliedNodeMetadata"]["labels"]


@pytest.mark.parametrize("applied", [{}, {"labels": [OWNER]}])
def test_the_label_of_another_owner_stays(applied: dict[str, Any]) -> None:
    wanted = NodeRegistration(annotations={OWNER_UID: "uid-m-1"})
    there = node("n").labelled({OWNER: "uid-of-another"}).annotated(OWNER_UID, "uid-m-1").build()
    assert sync_metadata(there, applied, wanted) is None


def test_a_spec_can_name_no_other_owner() -> None:
    arena, key = running()
    forged = {"labels": {OWNER: "uid-m-2"}, "annotations": {OWNER_UID: "uid-m-2"}}
    arena.edit(key, {"spec": {"metadata": forged}})
    arena.run(key)
    assert OWNER not in labels(arena)
    assert arena.nodes()[0]["metadata"]["annotations"][OWNER_UID] == "uid-m-1"


def test_the_label_is_there_for_tools_that_need_it() -> None:
    arena, key = running()
    arena.reconciler = replace(arena.reconciler, owner_label=True)
    arena.run(key, 30)
    assert labels(arena)[OWNER] == "uid-m-1"
    assert OWNER in arena.machine(key)["status"]["appliedNodeMetadata"]["labels"]


def test_a_node_that_is_gone_leaves_the_machine_not_ready_and_referring_to_it() -> None:
    arena, key = running()
    arena.view.drop(NODE, "m-1")
    arena.run(key, 30)
    assert arena.condition(key, "Ready")["reason"] == "NodeMissing"
    assert arena.machine(key)["status"]["nodeRef"]["name"] == "m-1"


@pytest.mark.parametrize("labelled", [False, True])
def test_nodes_of_two_groups_are_alike_to_an_autoscaler(labelled: bool) -> None:
    arena = Arena()
    arena.reconciler = replace(arena.reconciler, owner_label=labelled)
    for name in ("east-1", "west-1"):
        arena.run(arena.apply(machine(name).provider_config(bootSeconds=0.6)))
    east, west = (read_node(found) for found in arena.nodes())
    assert alike(east, west) is not labelled
