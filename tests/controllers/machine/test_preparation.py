"""When the host of a worker is prepared before there is a cluster that it could join."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from controllers.kernel.actions import CreateHost, EnsureBootstrap, Patch
from controllers.kernel.bootstrapping import BootstrapReads, DataAbsent, NoTarget, Support
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key
from controllers.kernel.view import HostAbsent, HostRead, HostReads, Unreachable
from controllers.machine.reconciler import RECONCILER, has_the_same_host, of_new_control_plane
from providers.base.contract import Host, HostState
from tests.builders import Builder, FakeView, cluster, machine
from tests.builders.machines import MachineBuilder
from tests.controllers.machine.joining import ABSENT, condition, did

SILENT = Unreachable("prod-kubeconfig", "KubeconfigMissing", "its control plane is not there yet")
PREPARES = Support(("script",), prepares=True)
ARCHIVES = {"source": "Archives", "archives": {"kubernetes": {"mirror": "https://mirror.example"}}}
SECRET_FILE = {"path": "/etc/a", "contentFrom": {"secret": {"name": "s", "key": "k"}}}


def worker(name: str = "m-1") -> MachineBuilder:
    return machine(name).created(60).kubelet("1.36.3").in_cluster("prod")


def control_plane(provider_id: str = "ssh:///front/rack1/abc") -> MachineBuilder:
    body = worker("cp-1")
    body.spec["versions"]["controlPlane"] = "1.36.3"
    return body.provider_id(provider_id) if provider_id else body


def made() -> MachineBuilder:
    body = control_plane()
    body.status["nodeRef"] = {"name": "cp-1"}
    return body


def prod(**bootstrap: Any) -> Builder:
    body = cluster("prod")
    body.spec.update({"bootstrap": bootstrap, "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}})
    return body


def planned(
    *others: Builder, body: Builder | None = None, host: HostRead = ABSENT, support: Support = PREPARES
) -> Plan:
    view = FakeView(body or worker(), *others).living_in(SILENT)
    target = NoTarget("WorkloadUnreachable", "can't be reached")
    reads = HostReads(host, support=support, bootstrap=BootstrapReads(target, DataAbsent()))
    observed = RECONCILER.observe(Key("default", "m-1"), view, reads)
    assert observed is not None
    return RECONCILER.plan(observed)


def test_a_host_is_prepared_once_the_control_plane_has_its_own() -> None:
    plan = planned(prod(), control_plane())
    (create,) = did(plan, CreateHost)
    assert create.request.bootstrap is None
    assert "kubelet 1.36.3" in create.request.preparation
    assert not did(plan, EnsureBootstrap)
    assert condition(plan, "BootstrapDataReady")[:2] == ("False", "WorkloadUnreachable")


def test_the_machine_is_held_before_its_host_is_taken() -> None:
    actions = list(planned(prod(), control_plane(), body=worker().finalized_by()).actions())
    held = [isinstance(a, Patch) and "finalizers" in str(a.patch) for a in actions].index(True)
    assert held < [isinstance(a, CreateHost) for a in actions].index(True)


def test_the_script_is_one_that_a_shell_takes_and_it_joins_nothing() -> None:
    (create,) = did(planned(prod(**ARCHIVES), control_plane()), CreateHost)
    script = create.request.preparation
    assert "https://mirror.example" in script
    assert "kubeadm join" not in script
    assert subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=False).returncode == 0


UNFINISHED = HostAbsent(Host("1", "uid-m-1", "rack2", "ssh:///racks/rack2/abc", HostState.UNFINISHED, "h"))
NOT_NOW: dict[str, dict[str, Any]] = {
    "the control plane may still take that host": {"others": (prod(), control_plane(""))},
    "there is no control plane of Machines": {"others": (prod(),)},
    "one that goes makes no cluster": {"others": (prod(), control_plane().deleting())},
    "the cluster was there before": {"others": (prod(), made())},
    "its host is taken already": {"others": (prod(), control_plane()), "host": UNFINISHED},
    "its provider prepares none": {"others": (prod(), control_plane()), "support": Support(("script",))},
    "a file of it is in a Secret": {"others": (prod(files=[SECRET_FILE]), control_plane())},
    "no kubelet is named": {"others": (prod(), control_plane()), "body": worker().kubelet("")},
    "its spec can't be right": {"others": (prod(), control_plane()), "body": worker().kubelet("1.36")},
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_NOW)
def test_no_host_is_taken_early_where(case: str) -> None:
    given = dict(NOT_NOW[case])
    assert not did(planned(*given.pop("others"), **given), CreateHost)


def test_the_host_of_a_control_plane_wakes_those_that_wait_for_it() -> None:
    plane, with_host = control_plane().build(), worker("m-2").provider_id("ssh:///racks/rack3/abc")
    view = FakeView(plane, worker(), with_host, worker("other").in_cluster("dev"))
    assert list(of_new_control_plane(plane, view)) == [Key("default", "m-1")]
    assert not has_the_same_host(control_plane("").build(), plane)
    assert has_the_same_host(plane, plane)


@pytest.mark.parametrize(
    "body",
    [worker(), control_plane(""), made()],
    ids=["a worker", "no host", "made"],
)
def test_nothing_else_wakes_them(body: Builder) -> None:
    assert not list(of_new_control_plane(body.build(), FakeView(body, worker("m-9"))))
