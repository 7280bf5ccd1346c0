"""A ControlPlane's plans: the lock, writes before changes, what is not seen yet, deletion, and what is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import pytest

from api import names
from api.conditions import ControlPlaneCondition, MachineCondition, Reason
from controllers.controlplane.reconciler import ControlPlaneReconciler
from controllers.kernel.actions import Create, Delete, Event, Patch, RemoveEtcdMember
from controllers.kernel.etcd import EtcdHost, EtcdMember, EtcdMembers, EtcdRead, EtcdUnread
from controllers.kernel.in_place import Revision, forbids_replacement
from controllers.kernel.plan import Failed, Plan
from controllers.kernel.refs import CLUSTER, CONTROL_PLANE, MACHINE, Key
from controllers.kernel.view import Reached
from tests.builders.body import Builder
from tests.builders.clock import NOW
from tests.builders.machines import MachineBuilder
from tests.builders.objects import SIMULATED, ClusterBuilder, MachineClassBuilder, machine_deployment
from tests.builders.plans import condition_of, creates, deletes, patches, status_of
from tests.builders.view import FakeView

KEY = Key("default", "cp")


class ControlPlaneBuilder(Builder):
    kind = "ControlPlane"

    def __init__(self, name: str = "cp", **spec: Any) -> None:
        super().__init__(name, "default")
        template = {"spec": {"providerConfig": {"value": dict(SIMULATED)}, "versions": {"kubelet": "1.36.0"}}}
        self.spec.update({"clusterName": "prod", "replicas": 3, "version": "1.36.0", "template": template, **spec})
        self.finalized_by(names.CONTROL_PLANE_FINALIZER)

    def pending(self, operation: str, machine: str) -> Self:
        self.status["pending"] = {"operation": operation, "machine": machine}
        return self


@dataclass
class Etcd:
    """``EtcdView`` with what a test says."""

    said: EtcdRead = EtcdUnread("not yet")  # noqa: RUF009
    asked: tuple[tuple[str, str], ...] = ()

    def look(self, cluster: Key, hosts: tuple[EtcdHost, ...]) -> EtcdRead:
        self.asked = hosts
        return self.said


def cluster(*, initialized: bool = True) -> Builder:
    found = ClusterBuilder("prod").version("7")
    return found.annotated(names.CONTROL_PLANE_INITIALIZED, "2026-01-01T00:00:00Z") if initialized else found


def machine(owner: Builder, number: int, version: str = "1.36.0") -> MachineBuilder:
    name = f"cp-{number}"
    found = MachineBuilder(name).owned_by(owner.build()).in_cluster("prod").created(3600 - number)
    found.body["spec"] = {
        "providerConfig": {"value": dict(SIMULATED)},
        "versions": {"kubelet": version, "controlPlane": version},
        "clusterName": "prod",
    }
    found.annotated(names.TEMPLATE_ANNOTATION, Revision({"spec": found.body["spec"]}).digest)
    found.annotated(names.CONTROL_PLANE_HOOK, "cp").annotated(names.CONTROL_PLANE_MEMBER, f"{number:x}")
    found.ready().condition(MachineCondition.UP_TO_DATE, "True")
    found.status["addresses"] = [{"type": "InternalIP", "address": f"10.0.0.{number}"}]
    return found


def pods(number: int) -> list[dict[str, Any]]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    components = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{component}-node-cp-{number}", "namespace": "kube-system"},
            "status": ready,
        }
        for component in components
    ]


def members(*healthy: bool) -> EtcdMembers:
    listed = (EtcdMember(n, f"node-cp-{n}", healthy=works) for n, works in enumerate(healthy, 1))
    return EtcdMembers(tuple(listed), NOW)


def world(control_plane: Builder, *machines: MachineBuilder, marked: Builder | None = None) -> FakeView:
    found = FakeView(control_plane, marked or cluster(), *machines)
    for each in machines:
        found.put(*pods(int(each.metadata["name"][-1])))
    return found.living_in(Reached("prod-kubeconfig"))


def planned(view: FakeView, etcd: EtcdRead) -> Plan:
    reconciler = ControlPlaneReconciler(Etcd(etcd))
    observed = reconciler.observe(KEY, view, None)
    assert observed is not None
    return reconciler.plan(observed)


def three(control_plane: Builder, version: str = "1.36.0") -> list[MachineBuilder]:
    return [machine(control_plane, number, version) for number in (1, 2, 3)]


def condition(plan: Plan, type_: str) -> tuple[str, str]:
    found = condition_of(plan, type_)
    return found["status"], found["reason"]


# -- once and never again


def test_the_lock_is_written_under_the_clusters_version_before_the_first_machine() -> None:
    view = FakeView(ControlPlaneBuilder(), cluster(initialized=False))
    plan = planned(view, EtcdUnread("nobody"))
    order = [
        type(a).__name__ for a in plan.actions() if isinstance(a, Create) or getattr(a, "target", KEY).kind == CLUSTER
    ]
    assert order == ["Patch", "Create"]
    [body] = creates(plan)
    lock = patches(plan, CLUSTER)["prod"]
    assert lock.resource_version == "7"
    assert lock.patch["metadata"]["annotations"] == {names.CONTROL_PLANE_INIT_LOCK: f"{body['metadata']['name']}/1"}
    assert body["metadata"]["annotations"][names.CONTROL_PLANE_INIT] == "true"
    assert body["spec"]["versions"] == {"kubelet": "1.36.0", "controlPlane": "1.36.0"}


def test_a_lock_is_never_given_to_another_machine() -> None:
    locked = cluster(initialized=False).annotated(names.CONTROL_PLANE_INIT_LOCK, "cp-first-0/4")
    plan = planned(FakeView(ControlPlaneBuilder(), locked), EtcdUnread("nobody"))
    assert [body["metadata"]["name"] for body in creates(plan)] == ["cp-first-0"]
    assert patches(plan, CLUSTER)["prod"].patch["metadata"]["annotations"] == {
        names.CONTROL_PLANE_INIT_LOCK: "cp-first-0/5"
    }


@pytest.mark.parametrize("trace", ["annotation", "status", "api", "members", "a machine by hand"])
def test_no_trace_of_a_cluster_is_overlooked(trace: str) -> None:
    """A backup that was restored may lack any of them."""
    control_plane, marked = ControlPlaneBuilder(), cluster(initialized=trace == "annotation")
    if trace == "status":
        control_plane.status["initialized"] = True
    view = FakeView(control_plane, marked)
    if trace == "api":
        view.living_in(Reached("prod-kubeconfig"))
    if trace in ("members", "a machine by hand"):
        view.put(machine(control_plane, 9).orphan())
    plan = planned(view, members(True) if trace == "members" else EtcdUnread("nobody"))
    assert not [body for body in creates(plan) if names.CONTROL_PLANE_INIT in body["metadata"]["annotations"]]


def test_the_cluster_is_marked_before_anything_else_is_done() -> None:
    control_plane = ControlPlaneBuilder()
    plan = planned(world(control_plane, machine(control_plane, 1), marked=cluster(initialized=False)), members(True))
    [only] = plan.actions()
    assert isinstance(only, Patch)
    assert names.CONTROL_PLANE_INITIALIZED in only.patch["metadata"]["annotations"]


# -- one change at a time, written down before


def test_a_join_is_written_down_under_the_version_that_was_seen() -> None:
    control_plane = ControlPlaneBuilder().version("41")
    plan = planned(world(control_plane, machine(control_plane, 1)), members(True))
    [body] = creates(plan)
    first = next(action for action in plan.actions() if not isinstance(action, Event))
    assert isinstance(first, Patch)
    assert (first.subresource, first.resource_version) == ("status", "41")
    assert status_of(plan)["pending"] == {"operation": "Join", "machine": body["metadata"]["name"]}
    assert names.CONTROL_PLANE_INIT not in body["metadata"]["annotations"]
    assert body["metadata"]["annotations"][names.CONTROL_PLANE_HOOK] == "cp"
    assert body["metadata"]["annotations"][names.IN_PLACE_ANNOTATION] == "Require"


def test_a_join_that_is_not_seen_is_repeated_under_its_name() -> None:
    control_plane = ControlPlaneBuilder().pending("Join", "cp-abcde-4")
    control_plane.status["nextOrdinal"] = 5
    plan = planned(world(control_plane, machine(control_plane, 1)), members(True))
    assert [body["metadata"]["name"] for body in creates(plan)] == ["cp-abcde-4"]


def test_an_update_that_is_not_seen_holds_up_every_other() -> None:
    """cp-1 was handed the template, and this view is older than that."""
    control_plane = ControlPlaneBuilder(version="1.36.1", rollout={"inPlace": "Prefer"}).pending("Upgrade", "cp-2")
    machines = three(control_plane)
    machines[0].annotated(names.DELETE_MACHINE_ANNOTATION)  # it would be the first now
    plan = planned(world(control_plane, *machines), members(True, True, True))
    touched = [a for a in plan.actions() if isinstance(a, Patch) and a.target.key.name.startswith("cp-")]
    assert [(a.target.key.name, a.patch, a.resource_version) for a in touched] == [
        ("cp-2", {}, machines[1].metadata["resourceVersion"])
    ]


def test_a_snapshot_that_is_asked_for_changes_no_machine_by_itself_and_new_ones_know_of_it() -> None:
    asked = {"snapshot": {"path": "/var/backups/etcd", "keep": 5}}
    steady = ControlPlaneBuilder(etcd=asked)
    assert not patches(planned(world(steady, *three(steady)), members(True, True, True)), MACHINE)
    [body] = creates(planned(world(steady, *three(steady)[:2]), members(True, True)))
    assert body["metadata"]["annotations"][names.ETCD_SNAPSHOT] == "5:/var/backups/etcd"


def test_a_version_reaches_one_machine_in_place() -> None:
    control_plane = ControlPlaneBuilder(version="1.36.1", rollout={"inPlace": "Prefer"})
    machines = three(control_plane)
    plan = planned(world(control_plane, *machines), members(True, True, True))
    found = {name: patch for name, patch in patches(plan).items() if name.startswith("cp-")}
    assert list(found) == ["cp-1"]
    assert found["cp-1"].patch["spec"] == {"versions": {"kubelet": "1.36.1", "controlPlane": "1.36.1"}}
    assert found["cp-1"].resource_version == machines[0].metadata["resourceVersion"]


def test_an_update_under_an_older_template_is_one_too() -> None:
    """The template has changed again while cp-2 is being updated: nobody else is touched."""
    control_plane = ControlPlaneBuilder(version="1.36.2", rollout={"inPlace": "Prefer"})
    machines = three(control_plane)
    machines[1].condition(MachineCondition.UP_TO_DATE, "False", "UpdatePending")
    plan = planned(world(control_plane, *machines), members(True, True, True))
    assert not [name for name in patches(plan) if name.startswith("cp-")]
    assert "cp-2 is being updated" in status_of(plan)["next"]


def test_an_edited_class_reaches_one_machine_after_the_other() -> None:
    """Without the digest on them all hosts would follow it at once."""
    config = {"valueFrom": {"machineClass": {"name": "big"}}}
    template = {"spec": {"providerConfig": config, "versions": {"kubelet": "1.36.0"}}}
    control_plane = ControlPlaneBuilder(template=template, rollout={"inPlace": "Prefer"})
    machines = three(control_plane)
    for each in machines:
        each.spec["providerConfig"] = config
        each.annotated(names.TEMPLATE_ANNOTATION, Revision({"spec": each.body["spec"]}).digest)
        each.annotated(names.MACHINE_CLASS_ANNOTATION, "earlier")
    view = world(control_plane, *machines).put(MachineClassBuilder("big"))
    plan = planned(view, members(True, True, True))
    found = {name: patch for name, patch in patches(plan).items() if name.startswith("cp-")}
    assert list(found) == ["cp-1"]
    given = found["cp-1"].patch["metadata"]["annotations"][names.MACHINE_CLASS_ANNOTATION]
    assert given not in ("", "earlier")
    [body] = creates(planned(world(control_plane, machines[0]).put(MachineClassBuilder("big")), members(True)))
    assert body["metadata"]["annotations"][names.MACHINE_CLASS_ANNOTATION] == given


@pytest.mark.parametrize(
    ("version", "why"), [("1.38.0", "skips a minor version; go to 1.37 before"), ("1.35.9", "can't go back")]
)
def test_versions_go_up_by_one_minor(version: str, why: str) -> None:
    control_plane = ControlPlaneBuilder(version=version, rollout={"inPlace": "Prefer"})
    plan = planned(world(control_plane, *three(control_plane)), members(True, True, True))
    assert not [name for name in patches(plan) if name.startswith("cp-")]
    assert not creates(plan)
    assert why in condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["message"]


@pytest.mark.parametrize(
    ("kubelet", "waits"), [("1.33.9", True), ("v1.33.0", True), ("1.34.0", False), ("1.36.0", False), ("", False)]
)
def test_kubelets_that_would_be_too_old_are_upgraded_first(kubelet: str, waits: bool) -> None:
    """To 1.37: kubelets from 1.34 on."""
    control_plane = ControlPlaneBuilder(version="1.37.0", rollout={"inPlace": "Prefer"})
    worker = MachineBuilder("worker-1").in_cluster("prod").kubelet("1.36.0")
    worker.status["versions"] = {"kubelet": kubelet}
    plan = planned(world(control_plane, *three(control_plane)).put(worker), members(True, True, True))
    assert bool([name for name in patches(plan) if name.startswith("cp-")]) is not waits
    message = condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["message"]
    assert ("worker-1 (1.33" in message) is waits


def test_workers_that_wait_for_the_control_plane_are_named() -> None:
    control_plane = ControlPlaneBuilder(version="1.37.0", rollout={"inPlace": "Prefer"})
    machines = three(control_plane)
    for each in machines:
        each.status["versions"] = {"kubelet": "v1.36.0"}
    pools = []
    for name, kubelet in (("web", "1.37.0"), ("db", "1.36.9")):
        pool = machine_deployment(name).in_cluster("prod")
        pool.spec["template"] = {"spec": {"versions": {"kubelet": kubelet}}}
        pools.append(pool)
    view = world(control_plane, *machines).put(*pools)
    message = condition_of(planned(view, members(True, True, True)), ControlPlaneCondition.MACHINES_UP_TO_DATE)[
        "message"
    ]
    assert message.endswith("MachineDeployment web waits for control plane 1.37")


@pytest.mark.parametrize(("etcd", "waits"), [("3.5.24", True), ("", True), ("3.5.26", False), ("3.6.5", False)])
def test_a_known_hazard_of_the_way_is_told_before_anything_is_touched(etcd: str, waits: bool) -> None:
    """etcd 3.6, which comes with 1.34, brings back members that 3.5.24 has removed."""
    control_plane = ControlPlaneBuilder(version="1.34.1", rollout={"inPlace": "Prefer"})
    listed = tuple(EtcdMember(n, f"node-cp-{n}", healthy=True, version=etcd) for n in (1, 2, 3))
    plan = planned(world(control_plane, *three(control_plane, "1.33.5")), EtcdMembers(listed, NOW))
    assert bool([name for name in patches(plan) if name.startswith("cp-")]) is not waits
    message = condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["message"]
    assert ("3.5.26 or newer on all members" in message) is waits


# -- what is lost


def test_a_member_is_removed_as_it_was_reckoned_with() -> None:
    control_plane = ControlPlaneBuilder()
    machines = three(control_plane)
    machines[2].deleting(5, names.MACHINE_FINALIZER).condition(
        MachineCondition.INFRASTRUCTURE_READY, "False", Reason.HOST_MISSING
    )
    plan = planned(world(control_plane, *machines), members(True, True, False))
    [action] = [action for action in plan.actions() if isinstance(action, RemoveEtcdMember)]
    assert (action.member, action.members, action.healthy) == (3, frozenset({1, 2, 3}), frozenset({1, 2}))
    assert action.cluster == Key("default", "prod")


def test_a_machine_whose_member_was_removed_is_replaced() -> None:
    """Its Node is Ready, and its etcd never works again."""
    control_plane = ControlPlaneBuilder()
    plan = planned(world(control_plane, *three(control_plane)), members(True, True))
    assert deletes(plan) == ["cp-3"]


def test_replacements_that_do_not_help_end() -> None:
    control_plane = ControlPlaneBuilder(remediation={"maxRetry": 1})
    control_plane.status["replaced"] = {"machine": "cp-0", "times": ["2026-01-01T11:58:00Z"] * 2}
    machines = three(control_plane)
    machines[2].condition(MachineCondition.INFRASTRUCTURE_READY, "False", Reason.HOST_MISSING)
    view = world(control_plane, *machines)
    control_plane.status["replaced"]["times"] = [_ago(240), _ago(120)]
    plan = planned(view.put(control_plane), members(True, True, False))
    assert not deletes(plan)
    assert any("spec.remediation.maxRetry is 1" in note for note in plan.notes)


def _ago(seconds: float) -> str:
    from tests.builders.clock import ago  # noqa: PLC0415

    return ago(seconds)


def test_a_host_that_may_be_joining_is_not_let_go() -> None:
    control_plane = ControlPlaneBuilder(replicas=1)
    joining = machine(control_plane, 2).created(60).deleting(5, names.MACHINE_FINALIZER)
    joining.metadata["annotations"].pop(names.CONTROL_PLANE_MEMBER)
    joining.status.pop("nodeRef")
    joining.status["deletion"] = {"waitForPreTerminateHookStartTime": _ago(2)}
    view = world(control_plane, machine(control_plane, 1), joining)
    assert "cp-2" not in patches(planned(view, members(True)))
    later = patches(planned(view.at(900), members(True)))
    assert later["cp-2"].patch == {"metadata": {"annotations": {names.CONTROL_PLANE_HOOK: None}}}


# -- the end, and what is said


def test_with_the_control_plane_all_machines_go_without_their_members() -> None:
    control_plane = ControlPlaneBuilder().deleting(5, names.CONTROL_PLANE_FINALIZER)
    view = world(control_plane, *three(control_plane))
    plan = planned(view, members(True, True, True))
    assert sorted(deletes(plan)) == ["cp-1", "cp-2", "cp-3"]
    assert not [action for action in plan.actions() if isinstance(action, RemoveEtcdMember)]
    assert condition(plan, ControlPlaneCondition.DELETING) == ("True", Reason.DELETING)
    gone = planned(FakeView(control_plane, cluster()), EtcdUnread(""))
    [release] = gone.actions()
    assert isinstance(release, Patch)
    assert release.patch == {"metadata": {"finalizers": None}}


def test_a_spec_that_can_not_be_used_lets_no_machine_of_it_be_forgotten() -> None:
    control_plane = ControlPlaneBuilder(version="latest").deleting(5, names.CONTROL_PLANE_FINALIZER)
    plan = planned(world(control_plane, *three(control_plane)), members(True, True, True))
    assert sorted(deletes(plan)) == ["cp-1", "cp-2", "cp-3"]
    hooks = [p.patch for name, p in patches(plan).items() if name.startswith("cp-")]
    assert hooks == [{"metadata": {"annotations": {names.CONTROL_PLANE_HOOK: None}}}] * 3
    assert not [p for p in patches(plan).values() if "finalizers" in p.patch.get("metadata", {})]


def test_what_was_said_holds_until_etcd_was_read_anew() -> None:
    """After a start nothing is known for a second: no condition flips for that."""
    control_plane = ControlPlaneBuilder()
    plan = planned(world(control_plane, *three(control_plane)), EtcdUnread("not yet", finding_out=True))
    assert not list(plan.actions())


def test_no_provider_makes_another_host_under_the_same_machine() -> None:
    """A person who edits it would lose its etcd member."""
    control_plane = ControlPlaneBuilder()
    edited = machine(control_plane, 1)
    edited.spec["versions"] = {"kubelet": "1.36.9", "controlPlane": "1.36.9"}
    assert "etcd member" in forbids_replacement(edited.build())


def test_a_steady_control_plane_is_not_written_to() -> None:
    control_plane = ControlPlaneBuilder()
    view = world(control_plane, *three(control_plane))
    plan = planned(view, members(True, True, True))
    assert condition(plan, ControlPlaneCondition.READY) == ("True", Reason.CONTROL_PLANE_READY)
    assert condition(plan, ControlPlaneCondition.ETCD_HEALTHY) == ("True", Reason.ETCD_HEALTHY)
    control_plane.status.update(status_of(plan))
    again = planned(view.put(control_plane), members(True, True, True))
    assert not list(again.actions())


def test_conditions_name_who_does_not_work() -> None:
    control_plane = ControlPlaneBuilder()
    sick = EtcdMember(3, "node-cp-3", healthy=False, why="no connection")
    alarmed = EtcdMember(2, "node-cp-2", healthy=True, alarms=("NOSPACE",), db_size_bytes=1)
    listed = EtcdMembers((EtcdMember(1, "node-cp-1", healthy=True), alarmed, sick), NOW)
    plan = planned(world(control_plane, *three(control_plane)), listed)
    said = condition_of(plan, ControlPlaneCondition.ETCD_HEALTHY)
    assert (said["status"], said["reason"]) == ("False", Reason.ETCD_DEGRADED)
    assert "node-cp-3: no connection" in said["message"]
    assert "node-cp-2: alarm NOSPACE" in said["message"]
    assert "cp-3" in condition_of(plan, ControlPlaneCondition.READY)["message"]
    assert status_of(plan)["etcd"]["unhealthy"] == ["node-cp-2", "node-cp-3"]


def test_a_lost_quorum_is_said_once_as_a_warning() -> None:
    control_plane = ControlPlaneBuilder()
    view = world(control_plane, *three(control_plane))
    plan = planned(view, members(True, False, False))
    assert condition(plan, ControlPlaneCondition.ETCD_HEALTHY) == ("False", Reason.ETCD_QUORUM_LOST)
    assert {e.reason for e in plan.actions() if isinstance(e, Event)} == {
        Reason.CONTROL_PLANE_STUCK,
        Reason.ETCD_QUORUM_LOST,
    }
    control_plane.status.update(status_of(plan))
    again = planned(view.put(control_plane), members(True, False, False))
    assert not [e for e in again.actions() if isinstance(e, Event)]


def test_a_paused_control_plane_is_left_alone() -> None:
    control_plane = ControlPlaneBuilder().annotated(names.PAUSED_ANNOTATION)
    plan = planned(world(control_plane), EtcdUnread(""))
    assert not [a for a in plan.actions() if isinstance(a, Create | Delete)]
    assert condition(plan, ControlPlaneCondition.PAUSED) == ("True", Reason.PAUSED)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"version": "latest"}, "spec.version"),
        ({"clusterName": "elsewhere"}, "spec.clusterName"),
        ({"template": {"spec": []}}, "spec.template.spec"),
        ({"replicas": "three"}, "spec.replicas"),
    ],
)
def test_a_field_that_can_not_be_used_is_named(spec: dict[str, Any], field: str) -> None:
    plan = planned(FakeView(ControlPlaneBuilder(**spec), cluster()), EtcdUnread(""))
    assert isinstance(plan.outcome, Failed)
    assert field in plan.outcome.why
    assert field in condition_of(plan, ControlPlaneCondition.READY)["message"]


def test_etcd_is_asked_at_the_addresses_of_the_hosts() -> None:
    control_plane = ControlPlaneBuilder()
    etcd = Etcd(members(True))
    ControlPlaneReconciler(etcd).observe(KEY, world(control_plane, machine(control_plane, 1)), None)
    assert [(host.name, host.address) for host in etcd.asked] == [("node-cp-1", "10.0.0.1")]
    assert all(host.uid for host in etcd.asked), "its provider may have a way to it"
    assert CONTROL_PLANE.plural == "controlplanes"
