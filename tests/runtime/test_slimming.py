"""What the cache keeps of a pod: all that rooms read of it, and equal parts once."""

from __future__ import annotations

import copy
import random
from typing import Any

from controllers.kernel.refs import NODE, POD
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
