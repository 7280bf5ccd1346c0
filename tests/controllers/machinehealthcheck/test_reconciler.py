"""What wakes a MachineHealthCheck, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.reconciler import Reconciler, Wake
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_HEALTH_CHECK, MACHINE_SET, NODE, Key, Kind
from controllers.machinehealthcheck.observe import Observed
from controllers.machinehealthcheck.reconciler import RECONCILER
from tests.builders import FakeView, cluster, machine, machine_set
from tests.builders.objects import Builder
from tests.controllers.machinehealthcheck.checks import check, its_node, member

CHECK = Key("default", "check")


def wake_of(kind: Kind) -> Wake:
    return next(wake for wake in RECONCILER.wakes if wake.kind == kind)


def woken(kind: Kind, by: Builder, *others: Builder) -> list[Key]:
    return list(wake_of(kind).keys(by.build(), FakeView(*others)))


def ignored(kind: Kind, old: Builder, new: Builder) -> bool:
    ignores = wake_of(kind).ignores
    assert ignores is not None
    return ignores(old.build(), new.build())


def test_it_is_a_room() -> None:
    reconciler: Reconciler[Observed] = RECONCILER
    assert (reconciler.name, reconciler.kind) == ("machinehealthcheck", MACHINE_HEALTH_CHECK)
    assert set(reconciler.reads) >= {MACHINE_HEALTH_CHECK, MACHINE, NODE, CLUSTER}
    assert reconciler.needs(CHECK, FakeView()) is None
    assert reconciler.observe(CHECK, FakeView(), None) is None


def test_a_machine_and_its_node_wake_the_checks_that_select_it() -> None:
    others = (check(), check("other").having(selector={"matchLabels": {"pool": "other"}}), member("a"))
    assert woken(MACHINE, member("a"), *others) == [CHECK]
    assert woken(NODE, its_node("a"), *others) == [CHECK]
    assert woken(MACHINE, machine("b"), *others) == []
    assert woken(NODE, its_node("b"), *others) == []


def test_a_set_wakes_the_checks_of_its_machines_when_it_leaves_unhealthy_ones_alone() -> None:
    other = check("other").having(selector={"matchLabels": {"pool": "other"}})
    assert woken(MACHINE_SET, machine_set("pool"), check(), other) == [CHECK]
    deferring = machine_set("pool").condition("Remediating", "True", "RemediationDeferred")
    assert ignored(MACHINE_SET, machine_set("pool"), machine_set("pool").replicas(9))
    assert not ignored(MACHINE_SET, machine_set("pool"), deferring)


def test_a_cluster_wakes_the_checks_of_its_namespace() -> None:
    assert woken(CLUSTER, cluster("c"), check()) == [CHECK]
    assert woken(CLUSTER, cluster("c", "elsewhere"), check()) == []


def beat(name: str, when: str) -> Builder:
    found = its_node(name)
    for condition in found.status["conditions"]:
        condition["lastHeartbeatTime"] = when
    return found


NODE_NEWS = {
    "a heartbeat": (beat("a", "2026-06-01T12:00:00Z"), beat("a", "2026-06-01T12:05:00Z"), True),
    "an address": (its_node("a"), its_node("a").address("10.0.0.1"), True),
    "a condition": (its_node("a"), its_node("a").not_ready(), False),
    "the same condition after a flap": (its_node("a").ready(600), its_node("a").ready(10), False),
    "a zone": (its_node("a"), its_node("a", "zone"), False),
}


@pytest.mark.parametrize(("old", "new", "same"), NODE_NEWS.values(), ids=NODE_NEWS.keys())
def test_node_news(old: Builder, new: Builder, same: bool) -> None:
    assert ignored(NODE, old, new) is same


def addressed(address: str) -> Builder:
    found = member("a")
    found.status["addresses"] = [{"type": "InternalIP", "address": address}]
    return found


MACHINE_NEWS: dict[str, tuple[Any, Any, bool]] = {
    "an address": (addressed("10.0.0.1"), addressed("10.0.0.2"), True),
    "a new version": (member("a").version("1"), member("a").version("2"), True),
    "a condition": (member("a"), member("a").not_ready(), False),
    "an annotation": (member("a"), member("a").annotated("cluster.x-k8s.io/remediate-machine", ""), False),
    "a Node": (machine("a"), machine("a").on_node("n"), False),
    "a failure": (member("a"), member("a").failed(), False),
    "its going": (member("a"), member("a").deleting(), False),
}


@pytest.mark.parametrize(("old", "new", "same"), MACHINE_NEWS.values(), ids=MACHINE_NEWS.keys())
def test_machine_news(old: Builder, new: Builder, same: bool) -> None:
    assert ignored(MACHINE, old, new) is same


def test_changes_of_many_machines_are_gathered() -> None:
    gathers = wake_of(NODE).gathers
    assert gathers is not None
    many = check()
    many.status["expectedMachines"] = 1000
    assert gathers(CHECK, FakeView(check())) == 0
    assert 0 < gathers(CHECK, FakeView(many)) <= 2
