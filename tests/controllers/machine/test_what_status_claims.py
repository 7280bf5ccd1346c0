"""What a status says holds for the generation that it names, and goes when it is no longer so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from api import names
from controllers.cluster.reconciler import RECONCILER as CLUSTER_ROOM
from controllers.cluster.reconciler import counts_the_same, of_member, same_cluster
from controllers.kernel.actions import Patch
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, Key
from controllers.kernel.view import HostPresent, HostReads
from controllers.machine.reconciler import RECONCILER, is_heartbeat
from nodewright.runtime.cache.store import Store
from providers.base.contract import Address, Host, HostState
from tests.api.crd_judge import judge
from tests.builders import FakeView, cluster, machine, machine_set, node

ID = "sim://1"


def running() -> dict[str, Any]:
    """A Machine that was all right in generation 1, and whose spec has changed since."""
    body = machine("m-1").provider_id(ID).ready().build()
    body["status"]["conditions"] = [
        {"type": type_, "status": "True", "reason": "UpToDate", "observedGeneration": 1,
         "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for type_ in ("UpToDate", "InfrastructureReady", "Ready")
    ]  # fmt: skip
    body["metadata"]["generation"] = 2
    return body


def status_patch(view: FakeView) -> dict[str, Any]:
    key = Key("default", "m-1")
    host = Host("h-1", "uid-m-1", "m-1", ID, HostState.RUNNING, "other")
    observed = RECONCILER.observe(key, view, HostReads(HostPresent(host)))
    assert observed is not None
    patches = [a for a in RECONCILER.plan(observed).actions() if isinstance(a, Patch) and a.subresource == "status"]
    return dict(patches[0].patch["status"]) if patches else {}


def test_a_paused_machine_is_not_up_to_date_with_a_spec_that_nobody_has_looked_at() -> None:
    body = running()
    body["metadata"].setdefault("annotations", {})[names.PAUSED_ANNOTATIONS[0]] = "true"
    said = {c["type"]: c["observedGeneration"] for c in status_patch(FakeView(body))["conditions"]}
    assert said == {"UpToDate": 1, "InfrastructureReady": 1, "Ready": 1, "Paused": 2}


def test_the_container_runtime_follows_the_node() -> None:
    body = running()
    body["status"]["versions"] = {"kubelet": "v1.34.0", "containerRuntime": {"name": "containerd", "version": "1.7"}}
    there = node("m-1").of(body).ready().kubelet("v1.34.0").build()
    there["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://2.1"
    body["status"]["nodeRef"] = {"name": "m-1", "uid": there["metadata"]["uid"]}
    assert status_patch(FakeView(body, there))["versions"] == {"containerRuntime": {"version": "2.1"}}
    del there["status"]["nodeInfo"]["containerRuntimeVersion"]
    assert status_patch(FakeView(body, there))["versions"] == {"containerRuntime": None}


def test_a_new_container_runtime_is_no_heartbeat() -> None:
    old, new = node("n").kubelet("v1.34.0").build(), node("n").kubelet("v1.34.0").build()
    new["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://2.1"
    assert not is_heartbeat(old, new)


def test_cluster_name_alone_makes_a_member() -> None:
    body, owner, group = machine("m-1").build(), cluster("prod").build(), machine_set("ms").build()
    body["spec"]["clusterName"] = "prod"
    group["spec"]["template"]["spec"]["clusterName"] = "prod"
    assert list(of_member(body, FakeView())) == [Key("default", "prod")]
    store = Store(MACHINE)
    store.indexed("clusterName", "default/prod")
    store.watched("ADDED", dict(body))
    assert len(store.indexed("clusterName", "default/prod")) == 1
    observed = CLUSTER_ROOM.observe(Key("default", "prod"), FakeView(body, owner, group), None)
    assert observed is not None
    assert (len(observed.machines), observed.sets) == (1, 1)
    wakes = {wake.kind: wake for wake in RECONCILER.wakes if wake.kind == CLUSTER}
    assert list(wakes[CLUSTER].keys(owner, FakeView(body))) == [Key("default", "m-1")]


def test_a_move_to_another_cluster_by_cluster_name_is_heard_of() -> None:
    old, new = machine("m").build(), machine("m").build()
    new["spec"]["clusterName"] = "prod"
    assert not counts_the_same(old, new)
    before, after = machine_set("ms").build(), machine_set("ms").build()
    after["spec"]["clusterName"] = "prod"
    assert not same_cluster(before, after)
    assert MACHINE_SET.name == after["kind"]


def test_cluster_name_counts_before_the_label() -> None:
    body = machine("m").labelled({names.CLUSTER_NAME_LABEL: "by-label"}).build()
    assert list(of_member(body, FakeView())) == [Key("default", "by-label")]
    body["spec"]["clusterName"] = "by-field"
    assert list(of_member(body, FakeView())) == [Key("default", "by-field")]


LONG = "x" * 40_000
HOSTILE_HOSTS: dict[str, dict[str, Any]] = {
    "a long address": {"addresses": (Address("InternalIP", LONG), Address("InternalIP", "10.0.0.1"))},
    "a long type of address": {"addresses": (Address(LONG, "10.0.0.1"),)},
    "thousands of addresses": {"addresses": tuple(Address("InternalIP", f"10.0.{n % 256}.1") for n in range(5000))},
    "a long failure domain": {"failure_domain": LONG},
    "a long failure": {"state": HostState.FAILED, "failure": LONG},
    "a long name": {"name": LONG, "state": HostState.STOPPED},
    "text that is no Unicode": {"state": HostState.FAILED, "failure": "\ud800", "failure_domain": "\ud800"},
    "a kubelet's version that is none": {},
}
HOSTILE_INFO: dict[str, Any] = {"kubeletVersion": LONG, "containerRuntimeVersion": f"{LONG}://{LONG}"}


@pytest.mark.parametrize("deleting", [False, True], ids=["living", "deleting"])
@pytest.mark.parametrize("changed", HOSTILE_HOSTS.values(), ids=HOSTILE_HOSTS.keys())
def test_what_a_provider_or_a_kubelet_says_is_never_too_long_for_the_status(
    changed: dict[str, Any], deleting: bool
) -> None:
    """A status that the API server refuses is tried for ever, and nothing is done before it is written."""
    body = machine("m-1").provider_id(ID).ready()
    there = node("m-1").of(body).created(60).not_ready().build()
    there["status"]["nodeInfo"] = HOSTILE_INFO
    there["status"]["conditions"][0].update(reason=LONG, message=LONG)
    view = FakeView(body.deleting(5, names.MACHINE_FINALIZER) if deleting else body, there)
    host = replace(Host("h-1", "uid-m-1", "m-1", ID, HostState.RUNNING, "other"), **changed)
    observed = RECONCILER.observe(Key("default", "m-1"), view, HostReads(HostPresent(host), scope="fake/" + "y" * 400))
    assert observed is not None
    patches = [a for a in RECONCILER.plan(observed).actions() if isinstance(a, Patch) and a.subresource == "status"]
    for patch in patches:
        assert judge({**observed.machine, "status": patch.patch["status"]}) == []
        assert orjson.dumps(patch.patch)
    assert patches


@pytest.mark.parametrize("info", [7, {"a": 1}, ["x"], None, True, ""])
def test_versions_of_a_wrong_type_are_no_versions(info: Any) -> None:
    there = node("m-1").of(machine("m-1").provider_id(ID)).created(60).ready().build()
    there["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.0", "containerRuntimeVersion": info}
    assert status_patch(FakeView(running(), there))["versions"] == {"kubelet": "v1.34.0", "containerRuntime": None}
    there["status"]["nodeInfo"] = {"kubeletVersion": info}
    assert "versions" not in status_patch(FakeView(running(), there))
