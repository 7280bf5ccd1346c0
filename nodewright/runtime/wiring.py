"""The one list of rooms. They are imported when they are asked for, so that other commands don't pay for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from api.selectors import EVERYTHING, Selector
from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.refs import WORKLOAD_KINDS, Key, Kind
from controllers.kernel.room import ReadsPartly, Room, cluster_seen_by
from controllers.kernel.sharding import can_be_sharded, shard
from nodewright.runtime.claims import Claim
from nodewright.runtime.options import Rooms

if TYPE_CHECKING:
    from api.remediation import TemplateKind
    from controllers.autoscaler.options import AutoscalerOptions
    from controllers.kernel.node_policy import NodePolicy
    from controllers.provisioningrequest.options import ProvisioningOptions
    from controllers.scheduling.reading import Reader


def rooms(
    hosting_node: str = "", limits: Limits = NO_LIMITS, template_kinds: frozenset[TemplateKind] = frozenset()
) -> Rooms:
    """Every controller that runs unless others are named.

    ``hosting_node`` and ``limits``: see ``MachineRoom``; ``template_kinds``: see ``MachineHealthCheckRoom``.
    """
    from controllers.cluster.room import ROOM as CLUSTER  # noqa: PLC0415
    from controllers.machine.room import MachineRoom  # noqa: PLC0415
    from controllers.machineclass.room import ROOM as MACHINE_CLASS  # noqa: PLC0415
    from controllers.machinedeployment.room import ROOM as MACHINE_DEPLOYMENT  # noqa: PLC0415
    from controllers.machinehealthcheck.room import MachineHealthCheckRoom  # noqa: PLC0415
    from controllers.machineset.room import ROOM as MACHINE_SET  # noqa: PLC0415

    return (
        CLUSTER,
        MACHINE_DEPLOYMENT,
        MACHINE_SET,
        MachineRoom(hosting_node, limits),
        MachineHealthCheckRoom(template_kinds),
        MACHINE_CLASS,
    )


def on_request(
    autoscaler: Callable[[], AutoscalerOptions] | None = None,
    provisioning: Callable[[], ProvisioningOptions] | None = None,
) -> Mapping[str, Callable[[], Room[Any]]]:
    """Controllers that only run when they are named, by name: they need rights that a cluster may not want to give, or
    would work against somebody else's. Each is imported when it is made.
    """

    @cache
    def reader() -> Reader:
        """One for the rooms that look at the whole cluster: what one has read the other knows."""
        from controllers.scheduling.reading import Reader  # noqa: PLC0415

        return Reader()

    def requests() -> Room[Any]:
        from controllers.certificatesigningrequest.room import ROOM  # noqa: PLC0415

        return ROOM

    def the_autoscaler() -> Room[Any]:
        from controllers.autoscaler.room import AutoscalerRoom  # noqa: PLC0415

        return AutoscalerRoom(autoscaler() if autoscaler is not None else None, reader())

    def provisioning_requests() -> Room[Any]:
        from controllers.provisioningrequest.room import ProvisioningRequestRoom  # noqa: PLC0415
        from nodewright.runtime.provisioning import installed_classes  # noqa: PLC0415

        groups = autoscaler() if autoscaler is not None else None
        return ProvisioningRequestRoom(
            groups, provisioning() if provisioning is not None else None, installed_classes(), reader()
        )

    return {
        "certificatesigningrequest": requests,
        "autoscaler": the_autoscaler,
        "provisioningrequest": provisioning_requests,
    }


def with_node_policy(wanted: Rooms, nodes: NodePolicy) -> Rooms:
    """``wanted``, told which labels and taints of Machines may reach their Nodes."""
    from controllers.machine.room import MachineRoom  # noqa: PLC0415

    return tuple(replace(room, nodes=nodes) if isinstance(room, MachineRoom) else room for room in wanted)


def reached_at(wanted: Rooms, server: str) -> Rooms:
    """``wanted``, told the URL of the API server: no kubelet gets a certificate that serves in its name."""
    if all(room.name != "certificatesigningrequest" for room in wanted):
        return wanted
    from controllers.certificatesigningrequest.foreign_names import plain  # noqa: PLC0415
    from controllers.certificatesigningrequest.room import CertificateSigningRequestRoom  # noqa: PLC0415

    hosts = frozenset({plain(host)} if (host := urlsplit(server).hostname) else ())
    return tuple(
        replace(room, api_hosts=room.api_hosts | hosts) if isinstance(room, CertificateSigningRequestRoom) else room
        for room in wanted
    )


def claims_of(wanted: Rooms, machines: Selector = EVERYTHING, namespace: str = "") -> tuple[Claim, ...]:
    """What a process with these controllers serves. ``machines``: its ``--machine-selector``; ``namespace`` "": all."""

    def claim(room: Room[Any]) -> Claim:
        cluster = cluster_seen_by(room)
        only = str(shard(machines)) if can_be_sharded(room) else ""
        return Claim(room.name, str(cluster) if isinstance(cluster, Key) else "", namespace, only)

    return tuple(sorted(claim(room) for room in wanted))


def parts_of(wanted: Rooms, namespace: str = "") -> dict[Kind, tuple[Key, ...]]:
    """Kinds of which only some objects are watched: those of a namespace, or some by name.

    ``namespace``: the only one in which Machines and what belongs to them are served. Nodes and Pods are in all.
    """
    found: dict[Kind, tuple[Key, ...]] = {}
    if namespace:
        there = [kind for kind in kinds_of(wanted) if kind.namespaced and kind not in WORKLOAD_KINDS]
        found = {kind: (Key(namespace, ""),) for kind in there}
    named = {kind for room in wanted if isinstance(room, ReadsPartly) for kind in room.parts}
    found = {kind: keys for kind, keys in found.items() if kind not in named}
    for room in wanted:
        for kind, keys in room.parts.items() if isinstance(room, ReadsPartly) else ():
            found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *keys)))
    return found


def clusters_of(wanted: Rooms) -> frozenset[Key]:
    """Those Clusters that rooms see alone."""
    return frozenset(cluster for room in wanted if isinstance(cluster := cluster_seen_by(room), Key))


def kinds_of(wanted: Rooms) -> tuple[Kind, ...]:
    """What has to be watched for ``wanted`` rooms where our objects are, each kind once."""
    return _once(
        kind
        for room in wanted
        for kind in _kinds(room)
        if kind not in WORKLOAD_KINDS or not isinstance(cluster_seen_by(room), Key)
    )


def kinds_in(wanted: Rooms, cluster: Key) -> tuple[Kind, ...]:
    """The same in the workload cluster of ``cluster``."""
    there = [room for room in wanted if cluster_seen_by(room) in (None, cluster)]
    return _once(kind for room in there for kind in _kinds(room) if kind in WORKLOAD_KINDS)


def _kinds(room: Room[Any]) -> tuple[Kind, ...]:
    return (room.kind, *room.reads, *(wake.kind for wake in room.wakes))


def _once(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    return tuple(dict.fromkeys(kinds))
