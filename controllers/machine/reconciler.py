"""The Machine reconciler: what wakes a Machine, and what has to be read for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from controllers.drain import context
from controllers.drain.cordon import is_cordoned_for
from controllers.kernel.etcd import NOBODY_READS, EtcdView
from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.node_policy import DEFAULT, NodePolicy, owner_title, owner_uid
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    NODE,
    POD,
    VOLUME_ATTACHMENT,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    runs_control_plane,
    spec_of,
    uid_of,
)
from controllers.kernel.view import (
    CLUSTER_NAME,
    MACHINE_CLASS_REF,
    NODE_NAME,
    PROVIDER_ID,
    HostNeed,
    HostReads,
    View,
)
from controllers.kernel.waking import itself, members_of_cluster, same_pause
from controllers.machine import observe, orphaned_node
from controllers.machine.creation_limits import next_queued, stays_queued
from controllers.machine.host_spec import with_owner_label
from controllers.machine.observe import Observed, Settings, status_of
from controllers.machine.orphaned_node import OrphanedNode
from controllers.machine.plan import plan


def of_node(node: Obj, view: View) -> Iterable[Key]:
    """Machines that the Node may matter to, whichever side names the other."""
    provider_id = spec_of(node).get("providerID")
    for machine in view.indexed(MACHINE, PROVIDER_ID, provider_id) if provider_id else ():
        yield key_of(machine)
    for machine in view.indexed(MACHINE, NODE_NAME, node["metadata"]["name"]):
        yield key_of(machine)
    named = owner_title(node)
    namespace, slash, name = named.partition("/")
    if slash:
        yield Key(namespace, name)
    owner = view.by_uid(MACHINE, owner_uid(node))
    if owner is not None:
        yield key_of(owner)


def of_pod(pod: Obj, view: View) -> Iterable[Key]:
    """The Machine whose drain waits for the pod (or for the VolumeAttachment), if one does."""
    name = str(spec_of(pod).get("nodeName") or "")
    for machine in view.indexed(MACHINE, NODE_NAME, name) if name else ():
        if is_deleting(machine) or status_of(machine).get("replacement") or _is_draining(machine, name, view):
            yield key_of(machine)


def of_class(machine_class: Obj, view: View) -> Iterable[Key]:
    return (key_of(machine) for machine in view.indexed(MACHINE, MACHINE_CLASS_REF, str(key_of(machine_class))))


def of_new_control_plane(machine: Obj, view: View) -> Iterable[Key]:
    """Machines of its cluster whose hosts may be prepared now that its own is there (``machine.preparation``)."""
    if not runs_control_plane(machine) or not spec_of(machine).get("providerID") or status_of(machine).get("nodeRef"):
        return
    for member in view.indexed(MACHINE, CLUSTER_NAME, f"{key_of(machine).namespace}/{cluster_name_of(machine)}"):
        if not spec_of(member).get("providerID"):
            yield key_of(member)


def has_the_same_host(old: Obj, new: Obj) -> bool:
    return bool(spec_of(old).get("providerID") == spec_of(new).get("providerID"))


def is_heartbeat(old: Obj, new: Obj) -> bool:
    """Whether a Node's change can't matter: metadata, spec, addresses, versions, conditions but for their times."""
    return _what_matters(old) == _what_matters(new)


def pod_is_unmoved(old: Obj, new: Obj) -> bool:
    """A drain cares for pods that come, go, finish, or are asked to go."""
    return _pod_state(old) == _pod_state(new)


@dataclass(frozen=True, slots=True)
class MachineReconciler:
    """See ``controllers.kernel.reconciler.Reconciler``. ``hosting_node``: name of the Node on which this program runs.

    ``limits``: on hosts that come up at once, where no Cluster says so. ``nodes``: what may reach Nodes.
    ``etcd``: what reads the members of the clusters' etcd.
    ``owner_label``: Nodes carry the label ``machine-controller/owned-by`` as well, for kubermatic's tools.
    """

    hosting_node: str = ""
    limits: Limits = NO_LIMITS
    owner_label: bool = False
    nodes: NodePolicy = DEFAULT
    etcd: EtcdView = NOBODY_READS
    name: str = "machine"
    kind: Kind = MACHINE
    reports_unreachable: bool = True
    reads: tuple[Kind, ...] = (MACHINE, MACHINE_CLASS, CLUSTER, NODE, *context.READS)
    wakes: tuple[Wake, ...] = field(
        default=(
            Wake(MACHINE, itself),
            Wake(MACHINE, next_queued, stays_queued),
            Wake(MACHINE, of_new_control_plane, has_the_same_host),
            Wake(NODE, of_node, is_heartbeat),
            Wake(MACHINE_CLASS, of_class),
            Wake(CLUSTER, members_of_cluster(MACHINE), same_pause),
            Wake(POD, of_pod, pod_is_unmoved),
            Wake(VOLUME_ATTACHMENT, of_pod),
        )
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        if view.get(MACHINE, key) is not None:
            return observe.needs(key, view)
        node = orphaned_node.find(key, view)
        return orphaned_node.needs(key, node) if node is not None else None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | OrphanedNode | None:
        if view.get(MACHINE, key) is not None:
            settings = Settings(self.hosting_node, self.limits, self.nodes, self.etcd)
            found = observe.observe(key, view, hosts, settings)
            if found is None or not self.owner_label:
                return found
            return replace(found, desired=with_owner_label(found.desired))
        node = orphaned_node.find(key, view)
        return OrphanedNode(node, hosts or observe.NO_HOST_READS) if node is not None else None

    def plan(self, observed: Observed | OrphanedNode) -> Plan:
        return orphaned_node.plan(observed) if isinstance(observed, OrphanedNode) else plan(observed)


def _is_draining(machine: Obj, node_name: str, view: View) -> bool:
    node = view.get(NODE, Key("", node_name))
    return node is not None and is_cordoned_for(node, uid_of(machine))


def _what_matters(node: Obj) -> tuple[object, ...]:
    meta, status = node["metadata"], node.get("status") or {}
    return (
        meta.get("uid"),
        meta.get("labels"),
        meta.get("annotations"),
        meta.get("deletionTimestamp"),
        spec_of(node),
        [(c.get("type"), c.get("status"), c.get("reason")) for c in status.get("conditions") or ()],
        status.get("addresses"),
        [(status.get("nodeInfo") or {}).get(name) for name in ("kubeletVersion", "containerRuntimeVersion")],
    )


def _pod_state(pod: Obj) -> tuple[object, ...]:
    meta, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    return (meta.get("uid"), meta.get("deletionTimestamp"), phase, spec_of(pod).get("nodeName"))


RECONCILER = MachineReconciler()
