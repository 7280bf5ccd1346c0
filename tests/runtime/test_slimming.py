"""What the cache keeps of a pod and of a Machine: all that reconcilers read of it, and equal parts once."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from controllers.kernel.refs import MACHINE, NODE, POD
from controllers.scheduling.reading import Reader
from nodewright.runtime.cache.slimming import slim
from tests.controllers.scheduling.core_worlds import World


def pod(name: str = "p", **status: Any) -> dict[str, Any]:
    mount = {"name": "token", "mountPath": "/run"}
    container = {"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}], "volumeMounts": [mount]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d", "uid": name, "labels": {"app": "a"}, "selfLink": "/x"},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "token", "projected": {}}, {"name": "scratch", "emptyDir": {}}],
            "serviceAccountName": "a",
        },
        "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready"}, {"type": "Initialized"}], **status},
    }


def test_of_a_pod_what_no_room_reads_goes() -> None:
    kept = slim(POD, pod())
    assert kept["spec"] == {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    assert kept["status"] == {"conditions": [{"type": "Ready"}]}
    assert kept["metadata"] == {"name": "p", "namespace": "d", "uid": "p", "labels": {"app": "a"}}


def test_equal_parts_are_kept_once() -> None:
    one, two = slim(POD, pod("one")), slim(POD, pod("two"))
    assert one["spec"]["containers"] is two["spec"]["containers"]
    assert one["metadata"]["labels"] is two["metadata"]["labels"]
    assert one["spec"]["volumes"][0] is two["spec"]["volumes"][0]


def test_the_scheduler_reads_the_same_from_it() -> None:
    """Of pods that ask for everything that can be asked for; also when it knows some by the parts that they share."""
    for number in range(6):
        together = Reader()
        world = World(number, random.Random(number))
        for _ in range(30):
            body = world.pod()
            body["metadata"].setdefault("uid", "u")
            full = Reader().pod(copy.deepcopy(body)).kind
            for reader in (Reader(), together, together):
                kept = reader.pod(slim(POD, copy.deepcopy(body))).kind
                assert (full.demand, full.labels, full.keeping, full.priority, full.terminating) == (
                    kept.demand, kept.labels, kept.keeping, kept.priority, kept.terminating,
                )  # fmt: skip


def test_a_resize_in_progress_is_seen_in_it() -> None:
    granted = {"name": "c", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}, "image": "i"}
    kept = slim(POD, pod(containerStatuses=[granted]))
    assert kept["status"]["containerStatuses"] == [
        {key: granted[key] for key in ("name", "resources", "allocatedResources")}
    ]


def test_what_is_not_shaped_like_a_pod_is_left_to_whoever_reads_it() -> None:
    odd = {**pod(), "spec": {"containers": "none"}}
    assert slim(POD, odd)["spec"] == {"containers": "none"}


def test_of_other_kinds_only_what_says_who_wrote_it_goes() -> None:
    node = {"metadata": {"name": "n", "managedFields": [{}]}, "spec": {"podCIDR": "10.0.0.0/24"}}
    assert slim(NODE, node) == {"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24"}}


def test_what_machines_of_a_set_share_is_kept_once() -> None:
    one, two = slim(MACHINE, a_machine("one")), slim(MACHINE, a_machine("two"))
    assert one["metadata"]["labels"] is two["metadata"]["labels"]
    assert one["metadata"]["ownerReferences"] is two["metadata"]["ownerReferences"]
    assert one["spec"]["providerConfig"] is two["spec"]["providerConfig"]
    assert one["status"]["conditions"][0]["reason"] is two["status"]["conditions"][0]["reason"]


def test_of_a_machine_nothing_is_lost_but_who_manages_which_field() -> None:
    body = a_machine("one")
    assert slim(MACHINE, copy.deepcopy(body)) == {
        **body,
        "metadata": {name: each for name, each in body["metadata"].items() if name != "managedFields"},
    }


def test_a_machine_of_wrong_types_is_left_to_its_reader() -> None:
    for wrong in ({"spec": "no"}, {"status": {"conditions": ["no", {"type": 3}]}}, {"status": [], "spec": None}):
        assert slim(MACHINE, {"metadata": {"name": "m"}, **copy.deepcopy(wrong)}) == {
            "metadata": {"name": "m"},
            **wrong,
        }


def a_machine(name: str) -> dict[str, Any]:
    """As a server sends it: no string of it is that of another."""
    text = json.dumps({
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "d", "uid": name, "labels": {"pool": "web", "zone": "a"},
            "ownerReferences": [{"kind": "MachineSet", "name": "web", "uid": "u", "controller": True}],
            "managedFields": [{"manager": "nodewright"}],
        },
        "spec": {"providerConfig": {"value": {"kind": "SimulatedMachineConfig"}}},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "BootstrapFailed", "message": name}]},
    })  # fmt: skip
    found: dict[str, Any] = json.loads(text)
    return found
