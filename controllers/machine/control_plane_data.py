"""What the host of a control plane is to be given: to make its cluster while that does not answer, to join it after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from api import names
from api.conditions import Reason
from controllers.bootstrap import etcd_snapshot
from controllers.bootstrap.calls import Refused
from controllers.bootstrap.control_plane import ControlPlane
from controllers.bootstrap.etcd_snapshot import EtcdSnapshot
from controllers.bootstrap.ordering import Wanted
from controllers.bootstrap.settings import Settings
from controllers.kernel.bootstrapping import BootstrapNeed, FoundingOrder, JoinTarget, NoTarget
from controllers.kernel.control_planes import oldest_of
from controllers.kernel.endpoints import asked_of
from controllers.kernel.etcd import NOBODY_READS, EtcdView
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import (
    CLUSTER,
    Key,
    Obj,
    annotations_of,
    is_deleting,
    key_of,
    mapping,
    ref_of,
    runs_control_plane,
    spec_of,
    status_of,
)
from controllers.kernel.version import dotted, parse
from controllers.kernel.view import HostReads, ManagementCluster, Unreachable, View
from controllers.machine import etcd_members
from controllers.machine.deletion_guards import peers_of
from controllers.machine.host_spec import renewal_of
from providers.base.contract import HostRequest


@dataclass(frozen=True, slots=True)
class Scene:
    """A Machine with ``versions.controlPlane``. ``cluster`` None: its Cluster object is not there."""

    machine: Obj
    cluster: Obj | None
    request: HostRequest
    settings: Settings
    reads: HostReads
    view: View
    etcd: EtcdView = NOBODY_READS


def wanted(scene: Scene, need: BootstrapNeed) -> tuple[Wanted, JoinTarget] | Refused | None:
    """What to make it of; None while it is being found out whether its cluster answers."""
    cluster = scene.cluster
    endpoint = endpoint_of(cluster)
    if not endpoint and asked_of(cluster) is not None:
        text = "the endpoint of its Cluster is being made (condition EndpointReady of the Cluster)"
        return Refused(str(Reason.ENDPOINT_PENDING), text)
    if cluster is None or not endpoint:
        text = (
            "set spec.controlPlaneEndpoint of its Cluster to the host and port at which the API is to be served: "
            "a Machine with versions.controlPlane makes a cluster of its own"
        )
        return Refused(str(Reason.NO_ENDPOINT), text)
    workload, target = scene.view.workload, scene.reads.bootstrap.target
    if isinstance(workload, ManagementCluster):
        return None
    answers = not isinstance(workload, Unreachable)
    if answers and target is None:
        return None
    before = _joins_before(scene) if answers else ""
    if before:
        text = f"Machine {before} joins the control plane first: etcd takes one new member at a time"
        return Refused(str(Reason.WAITING_FOR_CONTROL_PLANE), text)
    if answers and not _had_node(scene.machine) and need.cluster is not None:
        waits = etcd_members.in_the_way(scene.machine, need.cluster, scene.view, scene.etcd)
        if waits is None:
            return None
        if waits:
            return Refused(str(Reason.WAITING_FOR_CONTROL_PLANE), waits)
    version = scene.request.versions.control_plane
    seen = target.version if answers and isinstance(target, JoinTarget) else ""
    server = scene.settings.endpoint or f"https://{endpoint}"
    had_node, was_made = _had_node(scene.machine), _was_made(cluster)
    found = Wanted(
        machine=need.machine,
        request=scene.request,
        settings=scene.settings,
        support=scene.reads.support,
        now=scene.view.now,
        cluster=need.cluster,
        control_plane=replace(
            _control_plane(cluster, endpoint, version),
            snapshot=_snapshot(scene.machine),
            renewal=renewal_of(scene.machine),
        ),
        founding=FoundingOrder(ref_of(CLUSTER, cluster), endpoint, answers, had_node, was_made, version),
    )
    return found, JoinTarget(server, "", seen)


def for_worker(machine: Obj, target: JoinTarget | NoTarget | None, view: View) -> JoinTarget | NoTarget | None:
    """``target`` with the version of the oldest API server: behind one endpoint any may answer a worker's kubelet."""
    cluster = cluster_name_of(machine)
    if not cluster or not isinstance(target, JoinTarget):
        return target
    oldest = oldest_of(f"{key_of(machine).namespace}/{cluster}", view)
    answered = parse(target.version)
    if oldest is None or answered is None or oldest.version[:2] >= answered[:2]:
        return target
    return replace(target, version=dotted(oldest.version))


def _snapshot(machine: Obj) -> EtcdSnapshot | str | None:
    """What the Machine's annotation asks for, or what is wrong with it: then its upgrade is refused."""
    asked = annotations_of(machine).get(names.ETCD_SNAPSHOT)
    return etcd_snapshot.read(asked) if asked is not None else None


def may_found(machine: Obj, need: BootstrapNeed) -> Key | None:
    """The Cluster that this Machine's host may be the one to make; None for a worker, and once it had a Node."""
    return need.cluster if runs_control_plane(machine) and not _had_node(machine) else None


def _joins_before(scene: Scene) -> str:
    """The Machine of the same control plane that joins now or is to join before this one; "" for none.

    The oldest is the first: etcd takes one learner at a time (kubeadm#2005). One that is being deleted joins no more.
    """
    mine = _age(scene.machine)
    waiting = [
        peer
        for peer in peers_of(scene.machine, scene.view)
        if runs_control_plane(peer) and not _had_node(peer) and not is_deleting(peer) and _age(peer) < mine
    ]
    return key_of(min(waiting, key=_age)).name if waiting else ""


def _age(machine: Obj) -> tuple[str, str]:
    return str(machine["metadata"].get("creationTimestamp") or ""), key_of(machine).name


def _had_node(machine: Obj) -> bool:
    return bool(status_of(machine).get("nodeRef"))


def _was_made(cluster: Obj) -> bool:
    return names.CONTROL_PLANE_INITIALIZED in annotations_of(cluster)


def _control_plane(cluster: Obj, endpoint: str, version: str) -> ControlPlane:
    network = mapping(spec_of(cluster).get("clusterNetwork"))
    domain = network.get("serviceDomain") or network.get("dnsDomain") or ""
    return ControlPlane(
        cluster=str(cluster["metadata"]["name"]),
        version=version,
        endpoint=endpoint,
        services=_ranges(network.get("services")),
        pods=_ranges(network.get("pods")),
        dns_domain=domain if isinstance(domain, str) else "",
    )


def _ranges(found: Any) -> str:
    blocks = found.get("cidrBlocks") if isinstance(found, Mapping) else None
    return ",".join(each for each in blocks if isinstance(each, str)) if isinstance(blocks, list) else ""
