"""Where pods go without a kube-scheduler, and what those are told that go nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.binder.decisions import Bind, Refuse
from controllers.binder.observe import Objects, observe
from controllers.binder.plan import plan
from controllers.scheduling.reading import Reader


def node(name: str, cpu: str = "1", ready: bool = True, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def pod(name: str, cpu: str = "500m", on: str = "", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": name[0]}},
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }


def told(nodes: list[Any], pods: list[Any], bound: dict[str, str] | None = None) -> dict[str, str]:
    """Pod → its Node, or what it is told."""
    answers = {}
    for each in plan(observe(Objects(nodes, pods, (), bound or {}), Reader())):
        answers[each.pod.key.name] = each.node if isinstance(each, Bind) else f"{each.says.reason}: {each.says.message}"
    return answers


def test_pods_fill_the_nodes_and_the_rest_is_told_why() -> None:
    assert told([node("a"), node("b")], [pod(f"p{index}") for index in range(5)]) == {
        "p0": "a",
        "p1": "a",
        "p2": "b",
        "p3": "b",
        "p4": "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.",
    }


def test_the_higher_priority_comes_first_then_the_older_one() -> None:
    young, old, high = pod("young"), pod("old"), pod("high", priority=5)
    young["metadata"]["creationTimestamp"] = "2026-06-01T00:00:01Z"
    old["metadata"]["creationTimestamp"] = high["metadata"]["creationTimestamp"] = "2026-06-01T00:00:00Z"
    high["metadata"]["creationTimestamp"] = "2026-06-01T00:00:02Z"
    found = told([node("a")], [young, old, high])
    assert (found["high"], found["old"]) == ("a", "a")
    assert found["young"].startswith("Unschedulable")


def test_no_node_at_all_is_said_as_the_scheduler_says_it() -> None:
    assert told([], [pod("p")]) == {"p": "Unschedulable: no nodes available to schedule pods"}


def test_what_was_said_is_not_said_again() -> None:
    waiting = pod("p", cpu="2")
    message = "0/1 nodes are available: 1 Insufficient cpu."
    reported = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting["status"]["conditions"] = [reported]
    assert told([node("a")], [waiting]) == {}


def test_a_node_that_is_not_ready_takes_only_pods_that_bear_it() -> None:
    bearing = pod("b", tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])
    assert told([node("a", ready=False)], [pod("p"), bearing]) == {
        "p": "Unschedulable: 0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        "b": "a",
    }


def test_a_cordoned_node_takes_none() -> None:
    assert "1 node(s) were unschedulable" in told([node("a", unschedulable=True)], [pod("p")])["p"]


def test_a_pod_that_was_bound_just_now_keeps_its_room_until_the_cache_shows_it() -> None:
    """Found here, not on what it might be given in a second look: else another one could take its place."""
    first, second = pod("p", cpu="1"), pod("q", cpu="1")
    assert told([node("a"), node("b")], [first, second], {"uid-p": "b"}) == {"q": "a"}


@pytest.mark.parametrize(
    "spec", [{"schedulingGates": [{"name": "wait"}]}, {"schedulerName": "another"}, {"nodeName": "elsewhere"}]
)
def test_pods_of_others_are_left_alone(spec: dict[str, Any]) -> None:
    assert told([node("a")], [pod("p", **spec)]) == {}


def test_a_pod_that_can_not_be_read_says_so_and_stops_no_other() -> None:
    assert told([node("a")], [pod("bad", cpu="much"), pod("p")]) == {
        "bad": "SchedulerError: spec.containers[0].resources.requests[cpu]: "
        "'much' is not a quantity like 4, 500m or 2Gi",
        "p": "a",
    }


def test_a_node_with_a_pod_that_can_not_be_read_takes_none() -> None:
    assert told([node("a"), node("b")], [pod("bad", cpu="much", on="a"), pod("p")]) == {"p": "b"}


def test_refusals_name_the_pod_by_uid() -> None:
    (decided,) = plan(observe(Objects([], [pod("p")]), Reader()))
    assert isinstance(decided, Refuse)
    assert decided.pod.uid == "uid-p"
