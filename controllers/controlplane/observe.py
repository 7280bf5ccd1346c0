"""View → Observed: one ControlPlane, its Machines, and etcd as it was read last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason
from api.reading import Reading
from api.views import ControlPlaneSpecView
from controllers.controlplane import holds, state
from controllers.controlplane.addons import next_addon
from controllers.controlplane.holds import STATIC_NAMESPACE, Scene
from controllers.controlplane.renewal import renewal_of
from controllers.controlplane.state import Health, Member, Phase, State
from controllers.controlplane.together import Turn, next_turn
from controllers.controlplane.waiting import waiting_workers
from controllers.kernel import machine_facts
from controllers.kernel.actions import Patch
from controllers.kernel.certificates import (
    NOBODY_READS,
    CertificatesRead,
    CertificatesUnread,
    CertificatesView,
    look_at,
)
from controllers.kernel.conditions import find, is_true
from controllers.kernel.control_planes import oldest_of
from controllers.kernel.etcd import EtcdHost, EtcdMember, EtcdMembers, EtcdRead, EtcdUnread, EtcdView
from controllers.kernel.etcd_snapshots import NOBODY_SAVES, SnapshotRead, SnapshotsView
from controllers.kernel.failure_domains import Resting, domains_of, read_resting, rotation_of
from controllers.kernel.in_place import Revision
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.names import machine_name, machine_prefix, ordinal_of
from controllers.kernel.ownership import controlled, paused_by
from controllers.kernel.provider_config import class_digest
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    DAEMON_SET,
    DEPLOYMENT,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    POD,
    Key,
    Obj,
    Ref,
    annotations_of,
    is_deleting,
    key_of,
    mapping,
    ref_of,
    spec_of,
    status_of,
    uid_of,
)
from controllers.kernel.template import template_problem
from controllers.kernel.version import dotted, parse
from controllers.kernel.view import CONTROL_PLANE_OF, Reached, View, host_name_of

READS = (CONTROL_PLANE, MACHINE, CLUSTER, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, POD, DAEMON_SET, DEPLOYMENT)
STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Components that kubeadm runs as static pods beside etcd; their mirror pods are called ``<component>-<Node>``."""
JOIN_LIMIT = timedelta(minutes=15)
"""How long after its creation a host may still be at ``kubeadm join``: kubeadm's own limits are 5 minutes for the
discovery, 4 for the kubelet and 2 for etcd."""


@dataclass(frozen=True, slots=True)
class Pending:
    """``status.pending``: the change that was decided last and is not seen yet."""

    operation: str
    machine: str


@dataclass(frozen=True, slots=True)
class Observed:
    """``state`` is what the planner sees. ``hold``: why nothing is done at all (a field that can't be used).

    ``lock``: name of the Machine that may initialize the cluster, and how often it was made (0: no lock yet).
    ``reached``: the cluster's own API answers. ``class_digest``: of the MachineClass that the template names.
    ``workers``: which of them wait for the control plane, for people. ``turn``: whose turn it is after it.
    ``addon``: what kube-proxy or CoreDNS lacks once the whole control plane has its version.
    ``resting``: failure domains that had no host, and until when no Machine is made there.
    ``certificates``: what is known of those that its hosts show; None: this process reads none.
    ``snapshot``: the last one that this process was asked for. ``hosts``: each that has etcd.
    """

    body: Obj
    spec: ControlPlaneSpecView
    now: datetime
    complete: bool
    cluster: Obj | None
    machines: tuple[MachineFacts, ...] = ()
    etcd: EtcdRead = field(default_factory=lambda: EtcdUnread("nobody has looked yet"))
    state: State = field(default_factory=lambda: State(1))
    hold: str = ""
    paused: str = ""
    lock: tuple[str, int] = ("", 0)
    pending: Pending | None = None
    template: Mapping[str, Any] = field(default_factory=dict)
    reached: bool = False
    class_digest: str = ""
    workers: str = ""
    turn: Turn | None = None
    resting: tuple[Resting, ...] = ()
    addon: Patch | None = None
    certificates: CertificatesRead | CertificatesUnread | None = None
    snapshot: SnapshotRead | None = None
    hosts: tuple[EtcdHost, ...] = ()

    @property
    def revision(self) -> Revision:
        return Revision(self.template, self.class_digest)

    @property
    def ref(self) -> Ref:
        return ref_of(CONTROL_PLANE, self.body)

    @property
    def status(self) -> Mapping[str, Any]:
        return status_of(self.body)

    @property
    def prefix(self) -> str:
        return machine_prefix(key_of(self.body).name, uid_of(self.body))

    @property
    def next_ordinal(self) -> int:
        """Number 0 is that of the Machine that initializes the cluster."""
        given = self.status.get("nextOrdinal")
        used = (ordinal_of(machine.key.name, self.prefix) for machine in self.machines)
        return max([given if isinstance(given, int) else 1, 1, *(n + 1 for n in used if n is not None)])

    @property
    def first_name(self) -> str:
        return self.lock[0] or machine_name(self.prefix, 0)

    def facts(self, name: str) -> MachineFacts | None:
        return next((machine for machine in self.machines if machine.key.name == name), None)


def observe(
    key: Key,
    view: View,
    etcd: EtcdView,
    certificates: CertificatesView = NOBODY_READS,
    snapshots: SnapshotsView = NOBODY_SAVES,
) -> Observed | None:
    """None if the ControlPlane is gone."""
    body = view.get(CONTROL_PLANE, key)
    if body is None:
        return None
    found = Reading(spec_of(body), "spec")
    spec = ControlPlaneSpecView.read(found)
    cluster_key = Key(key.namespace, spec.cluster_name or "")
    cluster = view.get(CLUSTER, cluster_key)
    observed = Observed(
        body=body,
        spec=spec,
        now=view.now,
        complete=all(view.complete(kind) for kind in READS if kind not in (POD, DAEMON_SET, DEPLOYMENT)),
        cluster=cluster,
        hold=found.problem or template_problem(spec.template) or holds.version_problem(spec),
        machines=_machines(body, view),
        paused=paused_by((body, cluster)),
        reached=isinstance(view.workload, Reached),
        resting=read_resting(body),
    )
    if observed.hold:
        return observed
    if cluster is None and not is_deleting(body):
        return replace(observed, hold=f"spec.clusterName: there is no Cluster {cluster_key}; make it first")
    machines = observed.machines
    everybody = (*machines, *(machine_facts.read(body) for body in _foreign(observed, machines, view)))
    hosts = _hosts(everybody)
    read = etcd.look(cluster_key, hosts) if everybody else EtcdUnread("there is no Machine")
    observed = replace(
        observed,
        etcd=read,
        hosts=hosts,
        snapshot=snapshots.snapshot(cluster_key),
        template=template_of(spec),
        class_digest=class_digest(template_of(spec)["spec"], key.namespace, view),
        lock=_lock(cluster),
        pending=_pending(observed.status),
        workers=_waiting(cluster_key, view),
        turn=next_turn(spec, str(cluster_key), view),
        addon=_addon(spec, str(cluster_key), view),
        certificates=look_at(cluster, view, certificates) if cluster is not None else None,
    )
    return replace(observed, state=_state(observed, view))


def _addon(spec: ControlPlaneSpecView, cluster: str, view: View) -> Patch | None:
    version, oldest = parse(spec.version or ""), oldest_of(cluster, view)
    whole = version is not None and oldest is not None and oldest.version >= version
    return next_addon(version, view) if whole and version is not None else None


def _waiting(cluster: Key, view: View) -> str:
    oldest = oldest_of(str(cluster), view)
    return waiting_workers(str(cluster), oldest.version, view) if oldest is not None else ""


def _machines(body: Obj, view: View) -> tuple[MachineFacts, ...]:
    """The oldest first."""
    found = (machine_facts.read(machine) for machine in controlled(body, MACHINE, view))
    return tuple(sorted(found, key=lambda machine: (machine.created, machine.key.name)))


def template_of(spec: ControlPlaneSpecView) -> dict[str, Any]:
    """The template with what the ControlPlane says itself: its Cluster and its version."""
    template = dict(mapping(spec.template))
    inner = dict(spec_of(template))
    versions = {**mapping(inner.get("versions")), "kubelet": spec.version, "controlPlane": spec.version}
    return {**template, "spec": {**inner, "versions": versions, "clusterName": spec.cluster_name}}


def _state(observed: Observed, view: View) -> State:
    foreign = _foreign(observed, observed.machines, view)
    revision = observed.revision
    machines = tuple(
        _machine(observed, facts, revision, view, number) for number, facts in enumerate(observed.machines)
    )
    by_name = {**_by_member_name(foreign), **_by_member_name(tuple(facts.body for facts in observed.machines))}
    etcd = observed.etcd
    by_id = {annotations_of(f.body).get(names.CONTROL_PLANE_MEMBER): f.key.name for f in observed.machines}
    members = tuple(_member(m, by_name, by_id) for m in etcd.members) if isinstance(etcd, EtcdMembers) else ()
    if isinstance(etcd, EtcdMembers):
        machines = tuple(_beyond_repair(observed, machine, members) for machine in machines)
    started = any(member.name for member in members)
    known = names.CONTROL_PLANE_INITIALIZED in annotations_of(observed.cluster or {"metadata": {}})
    initialized = known or observed.status.get("initialized") is True or started or observed.reached or bool(foreign)
    going = observed.cluster is not None and is_deleting(observed.cluster)
    return State(
        replicas=observed.spec.replicas,
        machines=machines,
        members=members,
        etcd_unknown=etcd.why if isinstance(etcd, EtcdUnread) else "",
        initialized=initialized,
        init_machine=observed.lock[0],
        policy=holds.policy(_held_by(observed, view)),
        blocked="the Cluster is being deleted" if going else "",
        domains=rotation_of(domains_of(observed.body, observed.cluster), uid_of(observed.body)),
        exhausted=_exhausted(observed),
    )


def _exhausted(observed: Observed) -> frozenset[str]:
    resting = {rest.domain for rest in observed.resting if rest.until > observed.now}
    return frozenset(resting | {m.failure_domain for m in observed.machines if m.shortage and not m.deleting})


def _held_by(observed: Observed, view: View) -> Scene:
    cluster = f"{key_of(observed.body).namespace}/{observed.spec.cluster_name}"
    return Scene(
        spec=observed.spec,
        status=observed.status,
        machines=observed.machines,
        now=observed.now,
        cluster=cluster,
        view=view,
        etcd=_oldest(observed.etcd),
    )


def _oldest(etcd: EtcdRead) -> str:
    reported = [parse(member.version) for member in etcd.members] if isinstance(etcd, EtcdMembers) else []
    known = [version for version in reported if version is not None]
    return dotted(min(known)) if known and len(known) == len(reported) else ""


def _beyond_repair(observed: Observed, machine: state.Machine, members: tuple[Member, ...]) -> state.Machine:
    """A member that was removed never comes back, and kubeadm does not join a second time: another Machine has to."""
    facts = observed.facts(machine.name)
    if facts is None or machine.deleting or any(member.machine == machine.name for member in members):
        return machine
    too_late = bool(facts.node_name) and observed.now - facts.created >= JOIN_LIMIT
    return replace(machine, replace=True) if machine.had_member or too_late else machine


def _machine(observed: Observed, facts: MachineFacts, revision: Revision, view: View, number: int) -> state.Machine:
    status, conditions = status_of(facts.body), status_of(facts.body).get("conditions")
    host = find(conditions, MachineCondition.INFRASTRUCTURE_READY)
    dead = host is not None and host.get("status") == "False" and host.get("reason") in _DEAD
    renewal = renewal_of(facts, observed.certificates, observed.spec.rollout.renew_certificates_before, observed.now)
    updating = facts.up_to_date is False or renewal.under_way  # whichever template it was handed
    updating = updating and not facts.refusal
    went_back = holds.went_back(facts)
    if went_back and not revision.is_of(facts):
        updating = False  # the template has changed since: it may be handed on
    had_member = names.CONTROL_PLANE_MEMBER in annotations_of(facts.body)
    return state.Machine(
        name=facts.key.name,
        created=number,
        phase=_phase(facts, status, updating=updating),
        dead=dead,
        replace=facts.selected_for_deletion or facts.failed,
        first=facts.annotated,
        whole=facts.ready and _pods_ready(facts.node_name, view),
        up_to_date=revision.is_of(facts) and facts.up_to_date is not False,
        held=names.CONTROL_PLANE_HOOK in annotations_of(facts.body),
        had_member=had_member,
        may_join=facts.deleting and not had_member and observed.now - (facts.host_since or facts.created) < JOIN_LIMIT,
        version=str(mapping(status.get("versions")).get("kubelet") or ""),
        stays=facts.refusal if revision.is_of(facts) else "",
        domain=facts.failure_domain,
        went_back=went_back,
        expires=f"they end on {renewal.due:%Y-%m-%d}" if renewal.due is not None else "",
    )


_DEAD = frozenset({Reason.HOST_MISSING, Reason.HOST_FAILED})
"""Reasons of InfrastructureReady by which a provider says for good that there is no such host any more."""


def _phase(facts: MachineFacts, status: Mapping[str, Any], *, updating: bool) -> Phase:
    if facts.deleting:
        begun = mapping(status.get("deletion"))
        return Phase.DRAINED if begun.get("waitForPreTerminateHookStartTime") else Phase.DRAINING
    if not facts.node_name:
        return Phase.JOINING
    return Phase.UPDATING if updating else Phase.RUNNING


def _pods_ready(node: str, view: View) -> bool:
    """Where the cluster's own API can't be asked, nobody knows, and they don't count as ready."""
    if not isinstance(view.workload, Reached):
        return False
    for component in STATIC_PODS:
        pod = view.get(POD, Key(STATIC_NAMESPACE, f"{component}-{node}"))
        if pod is None or not is_true(status_of(pod).get("conditions"), "Ready"):
            return False
    return True


def _member(found: EtcdMember, by_name: Mapping[str, str], by_id: Mapping[str | None, str]) -> Member:
    """Whose it is: as it was written down when it was seen first, else by its name."""
    works: dict[bool | None, Health] = {True: Health.HEALTHY, False: Health.UNHEALTHY}
    health = works.get(found.healthy, Health.UNKNOWN)
    if found.alarms and health is Health.HEALTHY:
        health = Health.UNHEALTHY if "CORRUPT" in found.alarms else health
    machine = by_id.get(f"{found.id:x}") or by_name.get(found.name, "")
    return Member(found.id, found.name, machine, found.learner, health)


def _by_member_name(machines: tuple[Obj, ...]) -> dict[str, str]:
    """kubeadm calls a member as it calls the Node: by the host's name, which is the Machine's by default."""
    found: dict[str, str] = {}
    for body in machines:
        name = key_of(body).name
        node = mapping(status_of(body).get("nodeRef")).get("name")
        found |= {str(each): name for each in (name, host_name_of(body), node) if each}
    return found


def _foreign(observed: Observed, machines: tuple[MachineFacts, ...], view: View) -> tuple[Obj, ...]:
    """Machines of the Cluster that run a control plane and are not ours: declared by hand."""
    title = f"{key_of(observed.body).namespace}/{observed.spec.cluster_name}"
    own = {machine.uid for machine in machines}
    return tuple(body for body in view.indexed(MACHINE, CONTROL_PLANE_OF, title) if uid_of(body) not in own)


def _hosts(machines: tuple[MachineFacts, ...]) -> tuple[EtcdHost, ...]:
    """The internal address first."""
    found = []
    for machine in machines:
        listed = status_of(machine.body).get("addresses")
        addresses = [a for a in (listed if isinstance(listed, list) else ()) if isinstance(a, Mapping)]
        for type_ in ("InternalIP", "ExternalIP"):
            ip = next((a.get("address") for a in addresses if a.get("type") == type_ and a.get("address")), None)
            if ip:
                found.append(EtcdHost(machine.node_name or host_name_of(machine.body), str(ip), machine.uid))
                break
    return tuple(found)


def _lock(cluster: Obj | None) -> tuple[str, int]:
    text = annotations_of(cluster).get(names.CONTROL_PLANE_INIT_LOCK, "") if cluster is not None else ""
    name, _, count = text.partition("/")
    return (name, int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0)


def _pending(status: Mapping[str, Any]) -> Pending | None:
    found = mapping(status.get("pending"))
    operation, machine = found.get("operation"), found.get("machine")
    return Pending(operation, machine) if isinstance(operation, str) and isinstance(machine, str) else None
