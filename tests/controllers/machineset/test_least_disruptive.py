"""``deletePolicy: LeastDisruptive``: who goes is decided by what becomes of the pods."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE_SET, POD, POD_DISRUPTION_BUDGET
from tests.builders import Builder, FakeView, machine, machine_set, node
from tests.builders.loop import plan_for
from tests.builders.objects import MachineSetBuilder
from tests.builders.plans import deletes


def pool(replicas: int, policy: str = "LeastDisruptive") -> MachineSetBuilder:
    return machine_set("pool").replicas(replicas).delete_policy(policy).observed()


def member(name: str) -> Any:
    return machine(name).of(machine_set("pool")).ready()


def host(name: str, cpu: str = "4") -> dict[str, Any]:
    """The Node of ``member(name)``."""
    body = node(f"node-{name}").ready().build()
    body["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = body["metadata"]["name"]
    body["status"]["allocatable"] = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    return body


def pod(name: str, on: str, cpu: str = "1", app: str = "web", **annotations: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    meta = {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": {"app": app}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "ownerReferences": [owner], "annotations": annotations},
        "spec": {
            "nodeName": f"node-{on}",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Running"},
    }


def budget(app: str, allowed: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "default", "name": app, "uid": f"uid-{app}"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def three(*objects: dict[str, Any] | Builder) -> FakeView:
    """Three Machines with four cores each."""
    return FakeView(*(member(name) for name in "abc"), *(host(name) for name in "abc"), *objects)


def plan(view: FakeView) -> Plan:
    return plan_for(view, MACHINE_SET, "pool")


STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
LOADS = [pod("a1", "a"), pod("a2", "a"), pod("b1", "b"), pod("c1", "c"), pod("c2", "c"), pod("c3", "c")]
DELETED = {
    "the one that is least used": ((pool(2), *LOADS), ["b"]),
    "two that are least used": ((pool(1), pod("c1", "c"), pod("c2", "c")), ["a", "b"]),
    "an empty one before a used one": ((pool(2), pod("a1", "a"), pod("c1", "c", cpu="100m")), ["b"]),
    "not the one whose pod must stay, though it is least used": (
        (pool(2), pod("a1", "a"), pod("a2", "a"), pod("b1", "b", **STAYS), pod("c1", "c"), pod("c2", "c", cpu="1500m")),
        ["a"],
    ),
    "not the one whose pods find no place": (
        (
            pool(2),
            pod("a1", "a", cpu="2"),
            pod("b1", "b", cpu="1"),
            pod("b2", "b", cpu="1500m"),
            pod("c1", "c", "2500m"),
        ),
        ["b"],
    ),
    "not the one whose pods a budget keeps": (
        (pool(2), pod("a1", "a"), pod("a2", "a"), pod("b1", "b", app="db"), pod("c1", "c", cpu="3"), budget("db", 0)),
        ["a"],
    ),
    "a budget is spent once for all of them": (
        (pool(1), pod("a1", "a", app="db"), pod("b1", "b", app="db"), pod("c1", "c"), pod("c2", "c"), budget("db", 1)),
        ["a", "c"],
    ),
    "all have to go: nothing is weighed": ((pool(0), *LOADS), ["a", "b", "c"]),
}


@pytest.mark.parametrize(("objects", "want"), DELETED.values(), ids=DELETED.keys())
def test_deleted(objects: tuple[Any, ...], want: list[str]) -> None:
    assert sorted(deletes(plan(three(*objects)))) == want


def test_the_reason_is_told() -> None:
    (decided,) = [each for step in plan(three(pool(2), *LOADS)).steps for each in step if "goes first" in each.why]
    assert decided.why.endswith("this one goes first: 1 pod of it can move")


def test_what_comes_before_policies_still_does() -> None:
    marked = member("c").marked_for_deletion()
    assert deletes(plan(three(pool(2), *LOADS, marked))) == ["c"]


@pytest.mark.parametrize("kind", [POD, POD_DISRUPTION_BUDGET], ids=str)
def test_where_pods_are_not_known_it_is_the_order_of_random_and_said(kind: Any) -> None:
    by_lot = deletes(plan(three(pool(2, "Random"), *LOADS)))
    view = three(pool(2), *LOADS)
    view.incomplete(kind)
    found = plan(view)
    assert deletes(found) == by_lot
    (why,) = [each.why for step in found.steps for each in step if "goes first" in each.why]
    assert why.endswith(f"chosen by lot, since {kind.plural} are not read here or not up to date")


def test_other_policies_look_at_no_pod() -> None:
    """Nobody who does not use it pays for it, or needs the rights."""
    view = three(pool(2, "Newest"), *LOADS)

    def refuse(kind: Any) -> Any:
        raise AssertionError(f"{kind} were listed")

    view.all = refuse  # type: ignore[method-assign]
    assert len(deletes(plan(view))) == 1


def test_equals_keep_the_order_that_they_have_by_lot() -> None:
    by_lot = deletes(plan(three(pool(1, "Random"))))
    blocked = [pod(f"{name}1", name, **STAYS) for name in "abc"]
    assert len(by_lot) == 2
    assert sorted(deletes(plan(three(pool(1), *blocked)))) == sorted(by_lot)
