"""A Machine with ``versions.controlPlane``: its host makes the cluster, joins it or waits, and is never given up."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.bootstrap.founding import Founded
from controllers.kernel.actions import CreateHost, EnsureBootstrap, Patch, RemoveBootstrap, UpdateHost
from controllers.kernel.bootstrapping import BootstrapReads, DataAbsent, DataPresent, DataUnknown, JoinTarget, NoTarget
from controllers.kernel.conditions import find
from controllers.kernel.etcd import EtcdHost, EtcdMember, EtcdMembers, EtcdRead, EtcdUnread
from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key
from controllers.kernel.view import HostReads, ManagementCluster, Reached, Unreachable, Workload
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import NeedsReplacement
from tests.builders import Builder, FakeView, cluster, machine
from tests.builders.clock import NOW
from tests.controllers.bootstrap.test_control_plane import PKI
from tests.controllers.bootstrap.test_join import CA
from tests.controllers.machine.joining import ABSENT, ID, TAKES, a_host, condition, did

SILENT = Unreachable("prod-kubeconfig", "KubeconfigMissing", "not there yet")
ANSWERS = Reached("prod-kubeconfig")
TARGET = JoinTarget("https://10.0.0.1:6443", CA, "1.36.3")
NOBODY = NoTarget("WorkloadUnreachable", "can't be reached")


def control_plane(name: str = "m-1", age: float = 60) -> Builder:
    body = machine(name).created(age).kubelet("1.36.3").in_cluster("prod")
    body.spec["versions"]["controlPlane"] = "1.36.3"
    return body


def prod(**spec: Any) -> Builder:
    body = cluster("prod")
    body.spec.update({"bootstrap": {}, "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}, **spec})
    return body


def planned(
    body: Builder,
    *others: Builder,
    workload: Workload = SILENT,
    target: JoinTarget | NoTarget | None = NOBODY,
    **reads: Any,
) -> Plan:
    view = FakeView(body, *others)
    view.living_in(workload)
    data = reads.pop("data", DataAbsent())
    host_reads = HostReads(reads.pop("host", ABSENT), support=TAKES, bootstrap=BootstrapReads(target, data), **reads)
    observed = RECONCILER.observe(Key("default", "m-1"), view, host_reads)
    assert observed is not None
    return RECONCILER.plan(observed)


def ensured(plan: Plan) -> EnsureBootstrap:
    (ensure,) = did(plan, EnsureBootstrap)
    assert isinstance(ensure, EnsureBootstrap)
    assert ensure.order.founding is not None
    return ensure


def test_while_the_cluster_does_not_answer_its_host_is_to_make_it() -> None:
    order = ensured(planned(control_plane(), prod())).order
    assert order.founding is not None
    assert (order.founding.answers, order.founding.had_node) == (False, False)
    assert order.founding.endpoint == "10.0.0.1:6443"
    assert order.founding.cluster.key == Key("default", "prod")
    assert b"make the control plane" in unpacked(order.render("", {}, Founded(True, PKI)))


def unpacked(cloud_config: bytes) -> bytes:
    found = re.findall(rb"[A-Za-z0-9+/]{200,}={0,2}", cloud_config)
    return b"".join(gzip.decompress(base64.b64decode(each)) for each in found)


def test_once_it_answers_a_host_is_to_join_it() -> None:
    order = ensured(planned(control_plane(), prod(), workload=ANSWERS, target=TARGET)).order
    assert order.founding is not None
    assert order.founding.answers
    assert b"join the control plane" in unpacked(order.render("abcdef.0123456789abcdef", {}, Founded(False, PKI)))


@pytest.mark.parametrize("known", [{"workload": ManagementCluster()}, {"workload": ANSWERS, "target": None}])
def test_nothing_is_done_before_it_is_known_whether_it_answers(known: dict[str, Any]) -> None:
    plan = planned(control_plane(), prod(), **known)
    assert not did(plan, EnsureBootstrap)
    assert not did(plan, CreateHost)


def test_the_host_comes_once_its_data_is_there_and_that_needs_no_token() -> None:
    digest = ensured(planned(control_plane(), prod())).order.digest
    plan = planned(control_plane(), prod(), data=DataPresent("", None, digest))
    assert len(did(plan, CreateHost)) == 1
    assert not did(plan, EnsureBootstrap)


def test_what_the_host_is_given_is_the_same_before_and_after_the_cluster_answers() -> None:
    before = ensured(planned(control_plane(), prod())).order
    after = ensured(planned(control_plane(), prod(), workload=ANSWERS, target=replace(TARGET, version=""))).order
    assert before.digest == after.digest


@pytest.mark.parametrize("lacks", ["the endpoint", "the Cluster"])
def test_without_an_endpoint_there_is_no_cluster_to_make(lacks: str) -> None:
    others = [prod(controlPlaneEndpoint=None)] if lacks == "the endpoint" else []
    body = control_plane()
    body.spec["bootstrap"] = {}
    plan = planned(body, *others)
    assert not did(plan, EnsureBootstrap)
    status, reason, message = condition(plan, "BootstrapDataReady")
    assert (status, reason) == ("False", "NoEndpoint")
    assert "spec.controlPlaneEndpoint" in message


def test_hosts_join_one_at_a_time_the_oldest_machine_first() -> None:
    others = [control_plane("m-2", age=61), control_plane("m-3", age=61), control_plane("m-0", age=30)]
    plan = planned(control_plane(), prod(), *others, workload=ANSWERS, target=TARGET)
    assert not did(plan, EnsureBootstrap)
    status, reason, message = condition(plan, "BootstrapDataReady")
    assert (status, reason) == ("False", "WaitingForControlPlane")
    assert "Machine m-2 " in message


def test_one_that_has_joined_or_goes_is_waited_for_no_more() -> None:
    joined, going = control_plane("m-2", age=61), control_plane("m-3", age=61).deleting(5, names.MACHINE_FINALIZER)
    joined.status["nodeRef"] = {"name": "m-2"}
    assert ensured(planned(control_plane(), prod(), joined, going, workload=ANSWERS, target=TARGET))


def test_a_version_that_the_cluster_has_not_is_refused() -> None:
    plan = planned(control_plane(), prod(), workload=ANSWERS, target=replace(TARGET, version="1.34.4"))
    status, reason, message = condition(plan, "BootstrapDataReady")
    assert (status, reason) == ("False", "VersionSkew")
    assert message.startswith("spec.versions.controlPlane of the Machine: ")


def test_one_of_the_next_version_joins_and_the_cluster_is_told_of_it() -> None:
    order = ensured(planned(control_plane(), prod(), workload=ANSWERS, target=replace(TARGET, version="1.35.4"))).order
    assert order.founding is not None
    assert order.founding.version == "1.36.3"


def test_a_machine_that_goes_before_its_host_joined_gives_the_making_back() -> None:
    body = control_plane().provider_id(ID).deleting(5, names.MACHINE_FINALIZER)
    (remove,) = did(planned(body, prod(), data=DataPresent("")), RemoveBootstrap)
    assert remove.founds == Key("default", "prod")
    assert remove.ids == ()


def test_one_that_had_a_node_does_not() -> None:
    body = control_plane().provider_id(ID).deleting(5, names.MACHINE_FINALIZER)
    body.status["nodeRef"] = {"name": "m-1"}
    (remove,) = did(planned(body, prod(), data=DataUnknown(), workload=ANSWERS, target=TARGET), RemoveBootstrap)
    assert remove.founds is None


def test_the_host_of_a_control_plane_is_not_given_up_for_another_one() -> None:
    body = control_plane()
    host = a_host(body, spec_hash="of another spec")
    plan = planned(
        body.provider_id(ID),
        prod(),
        workload=ANSWERS,
        target=TARGET,
        host=host,
        answer=NeedsReplacement("another image"),
    )
    assert not any("replacement" in action.patch.get("status", {}) for action in did(plan, Patch))
    [patch] = [action for action in did(plan, Patch) if "status" in action.patch]
    said = find(patch.patch["status"]["conditions"], "UpToDate") or {}
    assert (said["status"], said["reason"]) == ("False", "NeedsReplacement")
    assert "make another control-plane Machine, then delete this one" in said["message"]


@pytest.mark.parametrize(
    ("versions", "waits"),
    [(("v1.36.3", "v1.35.4"), True), (("v1.36.3", "v1.36.1"), False), (("v1.36.3", ""), False), ((), False)],
)
def test_workers_wait_until_the_oldest_api_server_is_as_new_as_their_kubelet(
    versions: tuple[str, ...], waits: bool
) -> None:
    """The one that answered has 1.36.3; behind the same endpoint there may be another."""
    planes = []
    for number, version in enumerate(versions, 1):
        body = control_plane(f"cp-{number}")
        body.status["versions"] = {"kubelet": version}
        planes.append(body)
    worker = machine("m-1").created(5).kubelet("1.36.0").in_cluster("prod")
    plan = planned(worker, prod(), *planes, workload=ANSWERS, target=TARGET)
    assert bool(did(plan, EnsureBootstrap)) is not waits
    status, reason, message = condition(plan, "BootstrapDataReady")
    assert ((status, reason) == ("False", "VersionSkew")) is waits
    assert ("the API server, which is 1.35.4" in message) is waits


# -- etcd, of control planes that a person declared


class Etcd:
    """``EtcdView`` with what a test says."""

    def __init__(self, read: EtcdRead) -> None:
        self.read = read
        self.asked: list[tuple[tuple[tuple[str, str], ...], str]] = []

    def look(self, cluster: Key, hosts: tuple[EtcdHost, ...]) -> EtcdRead:
        self.asked.append((hosts, str(cluster)))
        return self.read


def joined(name: str, address: str) -> Builder:
    body = control_plane(name, age=600)
    body.status["nodeRef"] = {"name": f"node-of-{name}"}
    body.status["addresses"] = [{"type": "InternalIP", "address": address}]
    return body


def joins(etcd: Etcd, *others: Builder, body: Builder | None = None) -> Plan:
    view = FakeView(body or control_plane(), prod(), *others)
    view.living_in(ANSWERS)
    reads = HostReads(ABSENT, support=TAKES, bootstrap=BootstrapReads(TARGET, DataAbsent()))
    reconciler = replace(RECONCILER, etcd=etcd)
    observed = reconciler.observe(Key("default", "m-1"), view, reads)
    assert observed is not None
    return reconciler.plan(observed)


def listed(*works: bool | None, names_: tuple[str, ...] = ("node-of-m-8", "node-of-m-9", "lost")) -> EtcdMembers:
    return EtcdMembers(tuple(EtcdMember(n, names_[n - 1], healthy=ok) for n, ok in enumerate(works, 1)), NOW)


def test_a_host_joins_where_every_member_works_or_nobody_can_ask_them() -> None:
    for read in (listed(True, True), EtcdUnread("nobody answers")):
        etcd = Etcd(read)
        assert ensured(joins(etcd, joined("m-9", "10.0.0.9"), joined("m-8", "10.0.0.8")))
        hosts = [EtcdHost(f"node-of-m-{n}", f"10.0.0.{n}", f"uid-m-{n}") for n in (8, 9)]
        assert etcd.asked == [(tuple(hosts), "default/prod")]


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (listed(True, True, False), "remove the member with ID 3"),
        (listed(True, True, None), "remove the member with ID 3"),
        (listed(True, True, False, names_=("node-of-m-8", "node-of-m-9", "")), "never started"),
        (listed(True, False), "delete that Machine"),
        (listed(True, False, names_=("node-of-m-8", "lost")), "restore it from a snapshot"),
    ],
)
def test_while_a_member_does_not_work_no_host_is_made_and_it_is_told_what_to_do(read: EtcdMembers, said: str) -> None:
    plan = joins(Etcd(read), joined("m-8", "10.0.0.8"), joined("m-9", "10.0.0.9"))
    assert not did(plan, EnsureBootstrap)
    assert not did(plan, CreateHost)
    status, reason, message = condition(plan, "BootstrapDataReady")
    assert (status, reason) == ("False", "WaitingForControlPlane")
    assert said in message


def test_while_etcd_is_being_read_nothing_is_done() -> None:
    plan = joins(Etcd(EtcdUnread("not yet", finding_out=True)), joined("m-8", "10.0.0.8"))
    assert not did(plan, EnsureBootstrap)
    assert not did(plan, CreateHost)


def test_a_control_plane_looks_at_its_etcd_itself_and_a_host_that_is_there_is_not_held_up() -> None:
    owned = joined("m-8", "10.0.0.8")
    owner = {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "ControlPlane",
        "name": "cp",
        "uid": "1",
        "controller": True,
    }
    owned.metadata["ownerReferences"] = [owner]
    etcd = Etcd(listed(False, False))
    assert ensured(joins(etcd, owned))
    there = control_plane()
    there.spec["providerID"] = "ssh://rack1"
    joins(etcd, joined("m-8", "10.0.0.8"), body=there)
    assert etcd.asked == []


# -- certificates of its host


def test_another_value_asks_for_the_certificates_of_its_host_anew_and_keeps_all_else_of_it() -> None:
    found = {}
    for value in ("", "2026-11-23", "2027-11-23"):
        body = control_plane()
        if value:
            body.annotated(names.RENEW_CERTIFICATES, value)
        request = desired_host(body.build(), FakeView(prod())).request
        assert request is not None
        found[request.spec_hash] = request.kept_hash
    assert len(found) == 3
    assert len(set(found.values())) == 1


def test_the_request_follows_an_annotation_that_comes_later_and_a_worker_has_no_such_certificates() -> None:
    body = control_plane()
    before = desired_host(body.build(), FakeView(prod())).spec_hash
    body.annotated(names.RENEW_CERTIFICATES, "2026-11-23")
    assert desired_host(body.build(), FakeView(prod())).spec_hash != before
    worker = machine("w").kubelet("1.36.3")
    plain = desired_host(worker.build(), FakeView()).spec_hash
    worker.annotated(names.RENEW_CERTIFICATES, "2026-11-23")
    assert desired_host(worker.build(), FakeView()).spec_hash == plain


def test_right_after_a_start_no_provider_is_asked_to_change_a_host_before_it_is_known_how() -> None:
    """Found by killing the controllers: the answer that nobody says how was kept, and the upgrade stood still."""
    body = control_plane()
    host = a_host(body, spec_hash="of another spec")
    body.provider_id(ID)
    for target, asks in ((None, False), (TARGET, True)):
        plan = planned(body, prod(), workload=ANSWERS, target=target, host=host)
        assert bool(did(plan, UpdateHost)) is asks
