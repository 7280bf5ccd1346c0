"""FakeView: the View protocol over objects held in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from controllers.certificatesigningrequest.request import node_name_of
from controllers.kernel import joining, refs
from controllers.kernel import view as indexes
from controllers.kernel.node_policy import owner_uid
from controllers.kernel.ownership import cluster_name_of, controller_uid
from controllers.kernel.refs import Key, Kind, Obj, key_of, runs_control_plane
from controllers.kernel.view import ShapeRead, ShapeUnknown, Workload
from tests.builders.clock import NOW
from tests.builders.objects import Builder, as_dict

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        refs.CLUSTER,
        refs.CONTROL_PLANE,
        refs.MACHINE,
        refs.MACHINE_SET,
        refs.MACHINE_DEPLOYMENT,
        refs.MACHINE_CLASS,
        refs.MACHINE_HEALTH_CHECK,
        refs.NODE,
        refs.POD,
        refs.SECRET,
        refs.SERVICE,
        refs.ENDPOINTS,
        refs.POD_DISRUPTION_BUDGET,
        refs.CERTIFICATE_SIGNING_REQUEST,
        refs.DAEMON_SET,
        refs.DEPLOYMENT,
        refs.MACHINE_DRAIN_RULE,
        refs.NAMESPACE,
        refs.PERSISTENT_VOLUME,
        refs.VOLUME_ATTACHMENT,
        refs.CONFIG_MAP,
        refs.LEASE,
        refs.PERSISTENT_VOLUME_CLAIM,
        refs.STORAGE_CLASS,
        refs.CSI_NODE,
        refs.POD_TEMPLATE,
        refs.PROVISIONING_REQUEST,
        refs.CAPACITY_BUFFER,
        refs.CAPACITY_QUOTA,
        refs.REPLICA_SET,
        refs.STATEFUL_SET,
        refs.JOB,
        refs.RESOURCE_QUOTA,
        refs.LIMIT_RANGE,
    )
}


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """The Kind of a dict by its ``kind``; a KeyError names one the fake does not know."""
    return KINDS[obj["kind"]]


def _node_name(obj: Obj) -> str:
    if obj["kind"] == "Machine":
        return str(((obj.get("status") or {}).get("nodeRef") or {}).get("name", ""))
    if obj["kind"] == "CertificateSigningRequest":
        return node_name_of(obj)
    return str((obj.get("spec") or {}).get("nodeName", ""))


def _machine_class(obj: Obj) -> str:
    config = obj["spec"].get("providerConfig") or obj["spec"].get("providerSpec") or {}
    reference = (config.get("valueFrom") or {}).get("machineClass") if isinstance(config, Mapping) else None
    if not reference:
        return ""
    return f"{reference.get('namespace') or obj['metadata'].get('namespace', '')}/{reference.get('name', '')}"


def _cluster_name(obj: Obj) -> str:
    name = cluster_name_of(obj)
    return f"{obj['metadata'].get('namespace', '')}/{name}" if name else ""


def _claim(obj: Obj) -> str:
    claim = (obj.get("spec") or {}).get("claimRef") or {}
    return f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else ""


INDEXES: Mapping[str, Callable[[Obj], str | None]] = {
    indexes.OWNER: controller_uid,
    indexes.NAMESPACE: lambda obj: str(obj["metadata"].get("namespace", "")),
    indexes.PROVIDER_ID: lambda obj: str((obj.get("spec") or {}).get("providerID") or ""),
    indexes.NODE_OWNER: owner_uid,
    indexes.NODE_NAME: _node_name,
    indexes.HOST_NAME: indexes.host_name_of,
    indexes.CLAIM: _claim,
    indexes.MACHINE_CLASS_REF: _machine_class,
    indexes.CLUSTER_NAME: _cluster_name,
    indexes.CONTROL_PLANE_OF: lambda obj: _cluster_name(obj) if runs_control_plane(obj) else None,
    indexes.COMING_UP: joining.coming_up,
    indexes.JOINED: joining.joined,
}
"""The value under which each index of ``controllers.kernel.view`` files an object."""


class FakeView:
    """``FakeView(ms, m1, m2)``; builders are built. Change it with ``put``, ``drop``, ``at`` and ``incomplete``."""

    def __init__(self, *objects: Builder | Mapping[str, Any], now: datetime = NOW) -> None:
        self._now = now
        self._incomplete: set[Kind] = set()
        self._workload: Workload = indexes.MANAGEMENT_CLUSTER
        self._cluster: Key | None = None
        self._returned: dict[Kind, datetime | None] = {}
        self._clusters: dict[Key, FakeView] = {}
        self._shapes: list[tuple[Mapping[str, Any], ShapeRead]] = []
        self._objects: dict[Kind, dict[Key, Obj]] = {kind: {} for kind in KINDS.values()}
        self.put(*objects)

    # -- the View protocol

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def workload(self) -> Workload:
        return self._workload

    @property
    def cluster(self) -> Key | None:
        return self._cluster

    def of_cluster(self, cluster: Key | None) -> FakeView:
        return self._clusters.get(cluster, self) if cluster is not None else self

    def complete(self, kind: Kind) -> bool:
        return kind not in self._incomplete

    def current_since(self, kind: Kind) -> datetime | None:
        return self._returned.get(kind, datetime.min.replace(tzinfo=UTC))

    def get(self, kind: Kind, key: Key) -> Obj | None:
        return self._objects[kind].get(key)

    def by_uid(self, kind: Kind, uid: str) -> Obj | None:
        return next((o for o in self._objects[kind].values() if o["metadata"].get("uid") == uid), None)

    def indexed(self, kind: Kind, index: str, value: str) -> Sequence[Obj]:
        of = INDEXES[index]
        return [o for o in self._objects[kind].values() if of(o) == value]

    def all(self, kind: Kind) -> Sequence[Obj]:
        return list(self._objects[kind].values())

    def shape(self, config: Mapping[str, Any], namespace: str) -> ShapeRead:
        return next((shape for known, shape in self._shapes if known == config), ShapeUnknown("nobody told the test"))

    # -- for tests

    def shaped(self, config: Mapping[str, Any], shape: ShapeRead) -> FakeView:
        """What its provider says of a host of ``config``."""
        self._shapes.append((config, shape))
        return self

    def put(self, *objects: Builder | Mapping[str, Any]) -> FakeView:
        """Add objects, or replace those of the same key."""
        for obj in objects:
            body = as_dict(obj)
            self._objects[kind_of(body)][key_of(body)] = body
        return self

    def show(self, kind: Kind, objects: Mapping[Key, Obj]) -> FakeView:
        """Exactly these objects of ``kind``, taken over as they are."""
        self._objects[kind] = dict(objects)
        return self

    def drop(self, kind: Kind, name: str, namespace: str = "default") -> FakeView:
        del self._objects[kind][Key(namespace if kind.namespaced else "", name)]
        return self

    def at(self, seconds_later: float) -> FakeView:
        """The same world, that much after its present ``now``."""
        later = copy.copy(self)
        later._now = self._now + timedelta(seconds=seconds_later)
        return later

    def incomplete(self, *kinds: Kind) -> FakeView:
        """These kinds have not been completely read."""
        self._incomplete.update(kinds)
        return self

    def living_in(self, workload: Workload) -> FakeView:
        """The Nodes and Pods are shown as those of this workload cluster."""
        self._workload = workload
        return self

    def elsewhere(self, cluster: str, workload: Workload, *objects: Builder | Mapping[str, Any]) -> FakeView:
        """The Nodes of ``cluster`` live in a cluster of their own, of which this is seen. Returns that view of it."""
        found = FakeView(*objects, now=self._now).living_in(workload)
        found._cluster = Key("default", cluster)
        self._clusters[Key("default", cluster)] = found
        return found

    def outage(self, kind: Kind, ended: float | None = None) -> FakeView:
        """Nothing was heard of ``kind`` until ``ended`` seconds ago; None: it goes on."""
        self._returned[kind] = None if ended is None else self._now - timedelta(seconds=ended)
        return self


__all__ = ["INDEXES", "KINDS", "FakeView", "kind_of"]
