"""All that a Machine's plan may know, gathered from the View and from what the provider said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason
from api.durations import parse_duration
from controllers.drain import context
from controllers.drain.context import NO_CONTEXT, DrainContext
from controllers.drain.cordon import is_cordoned_for
from controllers.drain.stages import Deadlines
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.etcd import NOBODY_READS, EtcdView
from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.node_policy import DEFAULT, NodePolicy, cluster_key_of, filtered, is_recorded_for, only_allowed
from controllers.kernel.ownership import cluster_of, controller_of, paused_by
from controllers.kernel.provider_config import class_digest
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_SET,
    NODE,
    Key,
    Obj,
    Ref,
    annotations_of,
    generation_of,
    is_deleting,
    mapping,
    ref_of,
    resource_version_of,
    spec_of,
    uid_of,
)
from controllers.kernel.remediation import is_unhealthy
from controllers.kernel.view import (
    MANAGEMENT_CLUSTER,
    UNRECORDED,
    ConfigProblem,
    HostAbsent,
    HostNeed,
    HostPresent,
    HostReads,
    HostUnknown,
    ManagementCluster,
    Unreachable,
    View,
    Workload,
)
from controllers.machine import bootstrap_data, creation_limits, deletion_guards, node_takeover
from controllers.machine.bootstrap_data import Bootstrapping
from controllers.machine.creation_limits import InFlightLimit
from controllers.machine.deletion_guards import NO_GUARDS, DeletionGuards
from controllers.machine.host_spec import DesiredHost, desired_host
from controllers.machine.machine_node import (
    Conflict,
    Link,
    Linked,
    Unlinked,
    find_node,
    nodes_of_any_host,
    nodes_of_hosts_gone,
    provider_id_of,
    replaced_host,
)
from providers.base.contract import Host

FRESH = 1.0
"""Seconds that the provider's list may be old while something about the host is going on."""
SETTLED_FRESH = 300.0
"""The same for a Machine that runs and is as it should be."""
NO_HOST_READS = HostReads(HostUnknown("the provider was not asked yet"))


@dataclass(frozen=True, slots=True)
class Observed:
    """``stale_nodes`` go when the Machine's host has gone, ``late_nodes`` at once: the hosts that made them have gone.

    ``node_takeover``: the one of ``late_nodes`` on which the present host reports; it stays as long as that host.
    ``drain_context`` and ``deletion_guards`` are read while it may drain.

    Nothing is known of a workload cluster that is Unreachable: no link, no Nodes, no pods.
    ``class_digest``: that of the MachineClass which the spec names, "" for none.
    ``left_off``: labels and taints that may not reach the Node; ``desired`` has them no more.
    ``applied_node_metadata``: what of the Node's metadata may be taken back as the Machine's own.
    ``refers_elsewhere``: ``status.nodeRef`` names a Node that nothing proves to be this Machine's.
    ``bootstrapping``: the data with which its host joins; None where none was ever asked for.
    ``lines``: in which a Machine that has no host yet waits for its turn to get one.
    """

    now: datetime
    machine: Obj
    paused: str
    desired: DesiredHost
    reads: HostReads
    link: Link
    stale_nodes: tuple[Obj, ...] = ()
    late_nodes: tuple[Obj, ...] = ()
    node_takeover: Obj | None = None
    drain_context: DrainContext = NO_CONTEXT
    deletion_guards: DeletionGuards = NO_GUARDS
    workload: Workload = MANAGEMENT_CLUSTER
    cluster_is_going: bool = False
    lines: tuple[InFlightLimit, ...] = ()
    class_digest: str = ""
    left_off: tuple[str, ...] = ()
    applied_node_metadata: Mapping[str, Any] = field(default_factory=dict)
    refers_elsewhere: bool = False
    bootstrapping: Bootstrapping | None = None

    @property
    def unreachable(self) -> Unreachable | None:
        """Why nothing may be done that its Node would have to know of; None if its cluster can be reached."""
        return self.workload if isinstance(self.workload, Unreachable) else None

    @property
    def goes_with_its_cluster(self) -> bool:
        """Its whole workload cluster is being deleted: nothing there is worth a drain (CAPI does the same).

        Not so in the management cluster, where the Nodes of one Cluster carry the pods of a cluster that stays.
        """
        return self.cluster_is_going and not isinstance(self.workload, ManagementCluster) and bool(self.workload.secret)

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE, self.machine)

    @property
    def uid(self) -> str:
        return uid_of(self.machine)

    @property
    def name(self) -> str:
        return str(self.machine["metadata"]["name"])

    @property
    def cluster_title(self) -> str:
        return str(cluster_key_of(MACHINE, self.machine) or "")

    @property
    def version(self) -> str:
        return resource_version_of(self.machine)

    @property
    def generation(self) -> int:
        return generation_of(self.machine)

    @property
    def created_at(self) -> datetime:
        return parse_time(self.machine["metadata"].get("creationTimestamp")) or self.now

    @property
    def deleting(self) -> bool:
        return is_deleting(self.machine)

    @property
    def spec(self) -> Mapping[str, Any]:
        return spec_of(self.machine)

    @property
    def status(self) -> Mapping[str, Any]:
        return status_of(self.machine)

    @property
    def annotations(self) -> Mapping[str, str]:
        return annotations_of(self.machine)

    @property
    def provider_id(self) -> str:
        """The host that the Machine is bound to; "" while it has none."""
        return provider_id_of(self.machine)

    @property
    def replaced_host(self) -> str:
        """Identity of the host that is being replaced, "" if none is (``status.replacement``)."""
        return replaced_host(self.machine)

    @property
    def host(self) -> Host | None:
        return self.reads.host.host if isinstance(self.reads.host, HostPresent) else None

    @property
    def node(self) -> Obj | None:
        return self.link.node if isinstance(self.link, Linked) else None

    @property
    def own_node(self) -> Obj | None:
        """The Node that the provider's host of this Machine says is its own: the only one to write to."""
        return self.link.node if isinstance(self.link, Linked) and self.link.by_host else None

    @property
    def is_bound_elsewhere(self) -> bool:
        """``spec.providerID`` names neither the provider's host of this Machine's UID nor the one that it replaces."""
        host = self.host
        actual = host.provider_id if host is not None else ""
        return bool(self.provider_id and actual) and self.provider_id not in {actual, self.replaced_host}

    @property
    def node_with_pods(self) -> Obj | None:
        """The Node to drain before its host goes."""
        return self.own_node or self.node_takeover

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """What is wrong with the config: found here, or by the provider's schema."""
        return self.desired.problems or self.reads.problems

    @property
    def spec_is_new(self) -> bool:
        """Whether the spec has changed since the status last spoke of it."""
        seen = self.status.get("observedGeneration")
        return isinstance(seen, int) and seen != self.generation

    @property
    def waits_for_its_set(self) -> bool:
        """Its MachineClass is neither as its host has it nor as it was given it: its set says when it follows."""
        classes = {self.annotations.get(names.MACHINE_CLASS_ANNOTATION), self.status.get("machineClassDigest")}
        owner = controller_of(self.machine)
        owned = owner is not None and owner.get("kind") == MACHINE_SET.name
        return bool(owned and self.class_digest and any(classes) and self.class_digest not in classes)

    @property
    def drain_deadlines(self) -> Deadlines:
        return Deadlines(
            delete=self.timeout("nodeDrainDeleteAfter"),
            force=self.timeout("nodeDrainForceAfter"),
            give_up=self.timeout("nodeDrainTimeout"),
        )

    def timeout(self, field: str) -> timedelta | None:
        """A duration of the spec; None for none and for 0: never. So an unreadable one does not cut anything short."""
        return _duration(self.spec.get(field))


def needs(key: Key, view: View) -> HostNeed | None:
    """How to find the Machine's host, and how fresh the list has to be."""
    machine = view.get(MACHINE, key)
    if machine is None:
        return None
    desired = desired_host(machine, view)
    return HostNeed(
        machine_uid=uid_of(machine),
        config=desired.request.config if desired.request else None,
        fresh_within=SETTLED_FRESH if _is_still(machine) else FRESH,
        problems=desired.problems,
        spec_hash=desired.spec_hash,
        config_path=desired.config_path,
        made_in=_made_in(machine),
        namespace=key.namespace,
        live=not _is_still(machine) and not is_deleting(machine),
        bootstrap=bootstrap_data.need_of(machine, view),
        console=_has_joined_too_late(machine),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """What the administrator says. ``hosting_node``: name of the Node on which this program runs, "" if on none.

    ``etcd``: what reads the members of the clusters' etcd.
    """

    hosting_node: str = ""
    limits: Limits = NO_LIMITS
    nodes: NodePolicy = DEFAULT
    etcd: EtcdView = NOBODY_READS


def observe(key: Key, view: View, hosts: HostReads | None, settings: Settings) -> Observed | None:
    """None if the Machine is gone."""
    machine = view.get(MACHINE, key)
    if machine is None:
        return None
    reads = hosts or NO_HOST_READS
    cluster = cluster_of(machine, view)
    reached = not isinstance(view.workload, Unreachable)
    link = find_node(machine, reads.host, view) if reached else Unlinked()
    late_nodes = nodes_of_hosts_gone(machine, reads.host, view) if reached else ()
    desired, left_off = _allowed(desired_host(machine, view), key.namespace, settings.nodes)
    observed = Observed(
        now=view.now,
        machine=machine,
        paused=paused_by((machine, cluster)),
        desired=desired,
        reads=reads,
        link=link,
        stale_nodes=nodes_of_any_host(machine, link, view) if reached else (),
        late_nodes=late_nodes,
        node_takeover=None if isinstance(link, Linked | Conflict) else node_takeover.among(late_nodes, reads.host),
        workload=view.workload,
        cluster_is_going=cluster is not None and is_deleting(cluster),
        class_digest=class_digest(spec_of(machine), key.namespace, view),
        lines=creation_limits.in_flight_limits(machine, view, settings.limits)
        if _has_no_host_yet(machine, reads)
        else (),
        left_off=left_off,
        applied_node_metadata=only_allowed(
            settings.nodes, key.namespace, status_of(machine).get("appliedNodeMetadata")
        ),
        refers_elsewhere=reached and not isinstance(reads.host, HostUnknown) and _refers_elsewhere(machine, view),
        bootstrapping=bootstrap_data.observe(machine, desired.request, reads, view, settings.etcd),
    )
    node = observed.node or observed.node_takeover
    if node is None or not _may_drain(observed, node):
        return observed
    drain_context = context.observe(machine, node, view)
    return replace(
        observed,
        drain_context=drain_context,
        deletion_guards=deletion_guards.observe(machine, node, settings.hosting_node, view),
    )


def status_of(machine: Obj) -> Mapping[str, Any]:
    return mapping(machine.get("status"))


def _allowed(desired: DesiredHost, namespace: str, policy: NodePolicy) -> tuple[DesiredHost, tuple[str, ...]]:
    if desired.request is None:
        return desired, ()
    kept, left_off = filtered(policy, namespace, desired.request.node)
    return (replace(desired, request=replace(desired.request, node=kept)) if left_off else desired), left_off


def _refers_elsewhere(machine: Obj, view: View) -> bool:
    """A Node that is missing stays referenced; one that is there and not recorded for the Machine is not its own."""
    name = mapping(status_of(machine).get("nodeRef")).get("name")
    node = view.get(NODE, Key("", name)) if isinstance(name, str) and name else None
    return node is not None and not is_recorded_for(node, machine)


def _has_joined_too_late(machine: Obj) -> bool:
    """As its status says: then its host may have a word on its console that explains it."""
    condition = find(status_of(machine).get("conditions"), MachineCondition.NODE_JOINED)
    return condition is not None and condition.get("reason") == Reason.JOIN_TIMED_OUT


def _made_in(machine: Obj) -> str:
    """Where its host was made; UNRECORDED if it has a host and the status that says where was never written."""
    if not provider_id_of(machine):
        return ""
    return str(status_of(machine).get("hostScope") or UNRECORDED)


def _is_still(machine: Obj) -> bool:
    status = status_of(machine)
    return bool(
        not is_deleting(machine)
        and provider_id_of(machine)
        and status.get("nodeRef")
        and not status.get("replacement")
        and status.get("phase") == names.MachinePhase.RUNNING
        and status.get("observedGeneration") == generation_of(machine)
        and not (status.get("reboot") and is_unhealthy(status))
    )


def _has_no_host_yet(machine: Obj, reads: HostReads) -> bool:
    absent = isinstance(reads.host, HostAbsent) and not provider_id_of(machine)
    return absent and not is_deleting(machine)


def _may_drain(observed: Observed, node: Obj) -> bool:
    if observed.deleting or observed.replaced_host or is_cordoned_for(node, observed.uid):
        return True
    host = observed.host
    return host is not None and host.spec_hash != observed.desired.spec_hash


def _duration(text: Any) -> timedelta | None:
    try:
        return parse_duration(text) or None
    except (TypeError, ValueError):
        return None
