"""What wakes a Machine, how fresh its host has to be, and Nodes whose Machine is gone."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.actions import Delete
from controllers.kernel.plan import NOTHING, Wait
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import MACHINE, NODE, Key
from controllers.kernel.view import HostAbsent, HostPresent, HostRead, HostReads, HostUnknown
from controllers.kernel.waking import members_of_cluster
from controllers.machine.observe import FRESH, SETTLED_FRESH
from controllers.machine.reconciler import RECONCILER, is_heartbeat, of_class, of_node, of_pod, pod_is_unmoved
from providers.base.contract import Host, HostState
from tests.builders import FakeView, cluster, machine, machine_class, node
from tests.builders.objects import Builder, NodeBuilder
from tests.controllers.machine.pods import attachment, pod

M1 = Key("default", "m-1")


def test_a_volume_that_is_detached_wakes_the_machine_that_goes() -> None:
    gone = attachment("pv", "n").build()
    assert list(of_pod(gone, FakeView(machine("m-1").on_node("n").deleting()))) == [M1]
    assert list(of_pod(gone, FakeView(machine("m-1").on_node("n")))) == []


def test_it_is_a_room() -> None:
    reconciler: Reconciler[Any] = RECONCILER
    assert reconciler.kind in reconciler.reads


@pytest.mark.parametrize(
    ("machine_", "node_"),
    [
        (machine("m-1").provider_id("sim://1"), node("n").provider_id("sim://1")),
        (machine("m-1").on_node("n"), node("n")),
        (machine("m-1"), node("n").annotated("cluster.k8s.io/machine", "default/m-1")),
        (machine("m-1"), node("n").annotated("cluster.k8s.io/machine-uid", "uid-m-1")),
        (machine("m-1"), node("n").labelled({"machine-controller/owned-by": "uid-m-1"})),
    ],
    ids=["providerID", "nodeRef", "annotation", "owner", "owner label"],
)
def test_a_node_wakes_its_machine_by(machine_: Builder, node_: Builder) -> None:
    view = FakeView(machine_, node_, machine("m-2").provider_id("sim://2"))
    assert set(of_node(node_.build(), view)) == {M1}


def test_a_heartbeat_is_no_news() -> None:
    before = node("n").ready().build()
    after = node("n").ready().version("2").build()
    after["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-06-01T12:34:56Z"
    assert is_heartbeat(before, after)


@pytest.mark.parametrize(
    "changed",
    [
        node("n").not_ready(),
        node("n").ready().labelled(a="1"),
        node("n").ready().tainted("x"),
        node("n").ready().cordoned(),
        node("n").ready().kubelet("v1.34.1"),
        node("n").ready().address("10.0.0.1"),
        node("n").ready().deleting(),
        node("n").ready().uid("another"),
    ],
    ids=["readiness", "label", "taint", "cordon", "kubelet", "address", "deletion", "namesake"],
)
def test_news_of_a_node_is(changed: Builder) -> None:
    assert not is_heartbeat(node("n").ready().build(), changed.build())


def test_a_class_and_a_cluster_wake_the_machines_that_name_them() -> None:
    by_class = machine("m-1")
    by_class.spec["providerConfig"] = {"valueFrom": {"machineClass": {"name": "small"}}}
    view = FakeView(by_class, machine("m-2").in_cluster("c-1"))
    assert list(of_class(machine_class("small").build(), view)) == [M1]
    assert list(members_of_cluster(MACHINE)(cluster("c-1").build(), view)) == [Key("default", "m-2")]


def test_a_pod_wakes_only_a_machine_that_drains() -> None:
    web = pod("web").on("n").build()
    assert list(of_pod(web, FakeView(machine("m-1").on_node("n")))) == []
    assert list(of_pod(web, FakeView(machine("m-1").on_node("n").deleting()))) == [M1]
    cordoned = node("n").annotated("nodewright.dev/cordoned-for", "uid-m-1")
    assert list(of_pod(web, FakeView(machine("m-1").on_node("n"), cordoned))) == [M1]


def test_a_pods_ip_is_no_news_to_a_drain_but_its_end_is() -> None:
    before = pod("web").on("n").build()
    moved = pod("web").on("n").annotated("note").build()
    assert pod_is_unmoved(before, moved)
    assert not pod_is_unmoved(before, pod("web").on("n").phase("Succeeded").build())
    assert not pod_is_unmoved(before, pod("web").on("n").deleting().build())


def settled() -> Builder:
    builder = machine("m-1").ready()
    builder.status["observedGeneration"] = 1
    return builder


@pytest.mark.parametrize(
    ("machine_", "seconds"),
    [
        (settled(), SETTLED_FRESH),
        (machine("m-1"), FRESH),
        (settled().deleting(), FRESH),
        (settled().generation(2), FRESH),
    ],
    ids=["settled", "new", "going", "changed"],
)
def test_how_fresh_the_hosts_must_be(machine_: Builder, seconds: float) -> None:
    need = RECONCILER.needs(M1, FakeView(machine_))
    assert need is not None
    assert need.fresh_within == seconds


def test_a_bad_config_asks_for_the_host_everywhere() -> None:
    broken = machine("m-1")
    broken.spec.pop("providerConfig")
    need = RECONCILER.needs(M1, FakeView(broken))
    assert need is not None
    assert need.config is None
    assert need.problems[0].path == "providerConfig"


def test_where_the_config_stands_is_told_for_messages() -> None:
    by_class = machine("m-1")
    by_class.spec["providerConfig"] = {"valueFrom": {"machineClass": {"name": "small"}}}
    need = RECONCILER.needs(M1, FakeView(by_class, machine_class("small")))
    assert need is not None
    assert need.config_path == "providerConfig.valueFrom.machineClass(default/small).providerConfig"


ALIVE = HostPresent(Host("h-1", "uid-m-1", "m-1", "sim://1", HostState.RUNNING, "x"))


@pytest.mark.parametrize(
    ("ready", "host", "goes"),
    [
        (False, HostAbsent(), True),
        (False, HostUnknown("silence"), False),
        (False, ALIVE, False),
        (True, HostAbsent(), False),
    ],
    ids=["silent and no host", "silent and nobody knows", "silent but there is a host", "speaking"],
)
def test_a_node_that_registered_after_its_machine_went(ready: bool, host: HostRead, goes: bool) -> None:
    """Its registration was not seen yet when the Machine was let go: nobody else would ever delete it."""
    late = node("m-1").of(machine("m-1"))
    view = FakeView(late.ready() if ready else late.not_ready())
    need = RECONCILER.needs(M1, view)
    assert need is not None
    assert (need.machine_uid, need.config, need.namespace) == ("uid-m-1", None, "default")
    observed = RECONCILER.observe(M1, view, HostReads(host))
    assert observed is not None
    actions = list(RECONCILER.plan(observed).actions())
    version = late.build()["metadata"]["resourceVersion"]  # a host of a later m-1 that takes it over keeps it
    assert [(a.target.kind, a.target.uid, a.resource_version) for a in actions if isinstance(a, Delete)] == (
        [(NODE, "uid-m-1", version)] if goes else []
    )
    if isinstance(host, HostUnknown):
        assert isinstance(RECONCILER.plan(observed).outcome, Wait)
    elif not goes:
        assert RECONCILER.plan(observed) == NOTHING


@pytest.mark.parametrize(
    "node_",
    [
        node("m-1"),
        node("m-1").of(machine("m-2")),
        node("m-1").annotated("cluster.k8s.io/machine", "default/m-1"),
    ],
    ids=["nobody's", "another Machine's", "without our UID"],
)
def test_a_node_that_we_did_not_register_is_nobody_elses_business(node_: NodeBuilder) -> None:
    view = FakeView(node_.not_ready())
    assert RECONCILER.needs(M1, view) is None
    assert RECONCILER.observe(M1, view, None) is None
