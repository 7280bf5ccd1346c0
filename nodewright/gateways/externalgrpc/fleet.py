"""Groups and their Machines as the cache has them. Every question is a look into a dict, none a search."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog

from controllers.autoscaler import templates
from controllers.externalgrpc import decide
from controllers.externalgrpc.decide import Asked, GroupFacts
from controllers.kernel import machine_facts
from controllers.kernel.bound_hosts import likeliest
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import partition
from controllers.kernel.names import Ordinals
from controllers.kernel.ownership import cluster_name_of, controller_uid, is_controlled_by, paused_by
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Obj,
    key_of,
    resource_version_of,
    uid_of,
)
from controllers.kernel.view import OWNER, PROVIDER_ID, ShapeRead
from controllers.scaling.node_group import BadGroup, Discovery, Filter, NodeGroup, discover, is_rolling
from nodewright.gateways.externalgrpc.translate import PENDING
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.store import Change

_log = structlog.get_logger("nodewright.externalgrpc")

KINDS = (CLUSTER, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
_TELL_GROUPS = (CLUSTER, MACHINE_DEPLOYMENT, MACHINE_SET)
FAKE_NODE_ANNOTATION = "k8s.io/cluster-autoscaler/fake-node-reason"
"""Set by the Cluster Autoscaler on what it passes for a Node and is none."""
_DECIDES = ("labels", "annotations", "ownerReferences", "deletionTimestamp")


class AmbiguousError(Exception):
    """Several Machines claim one providerID; nobody can say which is meant."""


ReadShape = Callable[[Mapping[str, Any], str], ShapeRead]
"""What a host of a config would be like for a Machine in a namespace; providers are asked in the background."""


class Fleet:
    """One event loop; reads are valid until the next ``await``. ``only``: the groups to serve; None: all.

    ``shapes`` None: no provider is asked.
    """

    def __init__(
        self, cache: Cache, now: Callable[[], datetime], only: Filter | None = None, shapes: ReadShape | None = None
    ) -> None:
        self._shapes = shapes
        self._cache = cache
        self._now = now
        self._discovery = Discovery(filters=(only,) if only is not None else ())
        self._groups: dict[str, NodeGroup] = {}
        self._by_set: dict[str, NodeGroup] = {}
        self._logged_faults: dict[str, str] = {}
        self._stale = True
        self._moved = asyncio.Event()
        self.version = 0
        """Grows with every change of what groups there are."""
        for kind in KINDS:
            cache.listen(kind, self._changed)

    def unread(self) -> str:
        """Which kinds are not completely read, or not current; "" if all are."""
        return ", ".join(kind.plural for kind in KINDS if not self._cache.complete(kind))

    def groups(self) -> Mapping[str, NodeGroup]:
        """By id. Sizes and versions are those of the last relevant change; see ``facts`` for exact ones."""
        if self._stale:
            self._discover()
        return self._groups

    def body(self, group: NodeGroup) -> Obj | None:
        return self._cache.stores[group.ref.kind].get(group.ref.key)

    def shape(self, body: Obj) -> ShapeRead:
        """What its provider says of the hosts of a group that come next."""
        return templates.shape_of(body, replace(self._cache.view(self._now()), shapes=self._shapes))

    def machine(self, id_: str) -> MachineFacts | None:
        """The Machine of an instance. Raises AmbiguousError."""
        if id_.startswith(PENDING):
            namespace, _, name = id_.removeprefix(PENDING).partition("/")
            found = self._cache.stores[MACHINE].get(Key(namespace, name))
            return machine_facts.read(found) if found is not None else None
        claim = self._claim(id_)
        return machine_facts.read(claim) if claim is not None else None

    def group_of(self, id_: str) -> NodeGroup | None:
        """The group of an instance or a Node, by its providerID. Raises AmbiguousError."""
        if self._stale:
            self._discover()
        if id_.startswith(PENDING):
            machine = self.machine(id_)
            return self._group_of(machine.body) if machine is not None else None
        claim = self._claim(id_)
        return self._group_of(claim) if claim is not None else None

    def _group_of(self, machine: Obj) -> NodeGroup | None:
        group = self._by_set.get(controller_uid(machine))
        return group if group is not None and group.ref.key.namespace == key_of(machine).namespace else None

    def asked(self, id_: str, annotations: Mapping[str, str]) -> Asked:
        """What a request means by a node. Raises AmbiguousError."""
        machine = self.machine(id_) if id_ else None
        group = self.group_of(id_) if machine is not None else None
        return Asked(id_, machine, group.id if group is not None else "", bool(annotations.get(FAKE_NODE_ANNOTATION)))

    def replicas(self, group: NodeGroup) -> int:
        body = self.body(group)
        size = (body.get("spec") or {}).get("replicas") if body is not None else None
        return size if isinstance(size, int) else group.replicas

    def is_rolling(self, group: NodeGroup) -> bool:
        """Machines of several revisions are about: the rollout says which go."""
        return is_rolling(self._sets(group))

    def machines(self, group: NodeGroup) -> tuple[MachineFacts, ...]:
        """Those that count for the size: not what is kept aside for debugging."""
        now, store = self._now(), self._cache.stores[MACHINE]
        found: list[MachineFacts] = []
        for machine_set in self._sets(group):
            found_here = store.indexed(OWNER, uid_of(machine_set))
            owned = (machine_facts.read(one) for one in found_here if is_controlled_by(machine_set, one))
            members = partition(owned, Ordinals(), "", now)
            found += (*members.active, *members.deleting)
        return tuple(sorted(found, key=lambda machine: machine.key))

    def facts(self, id_: str) -> GroupFacts | None:
        """Everything about a group, as of now; None: there is no such group."""
        known = self.groups().get(id_)
        body = self.body(known) if known is not None else None
        if known is None or body is None:
            return None
        group = replace(known, replicas=self.replicas(known), resource_version=resource_version_of(body))
        return decide.facts_of(group, self.machines(group), body=body, machine_sets=list(self._sets(group)))

    async def moved(self) -> None:
        """Return once anything has changed."""
        self._moved.clear()
        await self._moved.wait()

    def _claim(self, provider_id: str) -> Obj | None:
        found = self._cache.stores[MACHINE].indexed(PROVIDER_ID, provider_id)
        claims = found if len(found) < 2 else likeliest(found)
        if len(claims) > 1:
            raise AmbiguousError(f"{len(claims)} Machines have the providerID {provider_id!r}")
        return claims[0] if claims else None

    def _sets(self, group: NodeGroup) -> Iterator[Obj]:
        if group.ref.kind == MACHINE_SET:
            body = self.body(group)
            return iter(() if body is None else (body,))
        listed = self._cache.stores[MACHINE_SET].indexed(OWNER, group.ref.uid)
        return (one for one in listed if key_of(one).namespace == group.ref.key.namespace)

    def _changed(self, change: Change, _from_list: bool) -> None:
        self._moved.set()
        if change.kind in _TELL_GROUPS and not self._stale and _decides(change):
            self._stale = True

    def _discover(self) -> None:
        stores = self._cache.stores
        found, bad = discover(stores[MACHINE_DEPLOYMENT], stores[MACHINE_SET], discovery=self._discovery)
        self._groups = {group.id: group for group in found if not self._pause(group)}
        self._by_set = {}
        for group in self._groups.values():
            for body in self._sets(group):
                self._by_set[uid_of(body)] = group
        self._stale = False
        self.version += 1
        self._tell(bad)

    def _pause(self, group: NodeGroup) -> str:
        """Why it is left alone. A paused group is none, nor are its Nodes anybody's, as in the Cluster Autoscaler."""
        body = self.body(group)
        if body is None:
            return "it is gone"
        cluster = cluster_name_of(body)
        key = Key(group.ref.key.namespace, cluster)
        return paused_by((body, self._cache.stores[CLUSTER].get(key) if cluster else None))

    def _tell(self, bad: tuple[BadGroup, ...]) -> None:
        """Each fault once, until it is another one."""
        faults = {f"{each.ref}": f"{each.field}: {each.message}" for each in bad}
        for name, fault in faults.items():
            if self._logged_faults.get(name) != fault:
                _log.warning("no node group", object=name, fault=fault)
        self._logged_faults = faults


def _decides(change: Change) -> bool:
    """Whether the change has to do with what groups there are."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    if old.get("spec") != new.get("spec"):
        return True
    return any(old["metadata"].get(field) != new["metadata"].get(field) for field in _DECIDES)
