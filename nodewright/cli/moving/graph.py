"""What moves with a Cluster, in which order it is made at the target, and what forbids a move now.

Three relations make the graph: an owner reference, the name of the Cluster, and a name that another object's spec says
(a Secret, a MachineClass, a pool). What is reached by the last alone may serve others too: it is copied and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from controllers.bootstrap.authorities import AUTHORITIES
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    SECRET,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    mapping,
    objects,
    spec_of,
    status_of,
    uid_of,
)

SSH_HOST_POOL = Kind("ssh.nodewright.dev", "v1alpha1", "SSHHostPool", "sshhostpools")
KINDS = (
    CLUSTER,
    MACHINE_CLASS,
    CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    SSH_HOST_POOL,
    SECRET,
)
_MEMBERS = (CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE)
_NAMED_BY = {"secretName": SECRET, "pool": SSH_HOST_POOL}
"""Field of a spec to the kind of what it names, in the same namespace."""

World = Mapping[Kind, Iterable[Obj]]
"""Objects of one namespace by kind."""


@dataclass(frozen=True, slots=True)
class Item:
    """``shared``: only named by others, so it is copied and stays at the source."""

    kind: Kind
    obj: Obj
    shared: bool = False

    @property
    def title(self) -> str:
        return f"{self.kind.name} {key_of(self.obj)}"


def graph(world: World, cluster: Key) -> list[Item]:
    """All that moves, owners before what they own. Empty if there is no such Cluster.

    An owner cycle ends the order: its objects come last, as they are.
    """
    every = [(kind, obj) for kind in KINDS for obj in world.get(kind, ()) if key_of(obj).namespace == cluster.namespace]
    own = [(kind, obj) for kind, obj in every if _belongs(kind, obj, cluster)]
    if not any(kind == CLUSTER for kind, _ in own):
        return []
    uids = {uid_of(obj) for _, obj in own}
    while more := [each for each in every if uid_of(each[1]) not in uids and _is_owned(each[1], uids)]:
        own += more
        uids |= {uid_of(obj) for _, obj in more}
    items = [Item(kind, obj) for kind, obj in own]
    wanted = _named(items)
    while True:
        found = [
            Item(kind, obj, shared=True)
            for kind, obj in every
            if uid_of(obj) not in uids and (kind, key_of(obj).name) in wanted
        ]
        if not found:
            return _ordered(items)
        items += found
        uids |= {uid_of(item.obj) for item in found}
        wanted |= _named(found)


def hindrances(items: Iterable[Item]) -> list[str]:
    """What is under way and has to end first, with its object: hosts in the making, deletions, promises of sets."""
    return [f"{item.title}: {why}" for item in items if not item.shared and (why := _hindrance(item))]


def _belongs(kind: Kind, obj: Obj, cluster: Key) -> bool:
    name = key_of(obj).name
    if kind == CLUSTER:
        return name == cluster.name
    if kind in _MEMBERS:
        return cluster_name_of(obj) == cluster.name
    if kind == MACHINE_HEALTH_CHECK:
        return spec_of(obj).get("clusterName") == cluster.name
    suffixes = (names.KUBECONFIG_SUFFIX, *(authority.suffix for authority in AUTHORITIES))
    return kind == SECRET and name in {f"{cluster.name}{suffix}" for suffix in suffixes}


def _is_owned(obj: Obj, uids: set[str]) -> bool:
    return any(reference.get("uid") in uids for reference in objects(obj["metadata"].get("ownerReferences")))


def _named(items: Iterable[Item]) -> set[tuple[Kind, str]]:
    return {named for item in items if item.kind != SECRET for named in _names_in(spec_of(item.obj))}


def _names_in(value: Any) -> Iterator[tuple[Kind, str]]:
    if isinstance(value, Mapping):
        for field, below in value.items():
            if field in _NAMED_BY and isinstance(below, str):
                yield _NAMED_BY[field], below
            name = mapping(below).get("name") if field == "machineClass" else None
            if isinstance(name, str):
                yield MACHINE_CLASS, name
            yield from _names_in(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from _names_in(below)


def _ordered(items: list[Item]) -> list[Item]:
    """Without a change of order where none is needed, so that a move that is taken up again goes the same way."""
    ordered, left = list[Item](), list(items)
    here = {uid_of(item.obj) for item in items}
    done: set[str] = set()
    while left:
        ready = [item for item in left if _owners(item.obj) & here <= done]
        if not ready:
            return ordered + left
        ordered += ready
        done |= {uid_of(item.obj) for item in ready}
        left = [item for item in left if uid_of(item.obj) not in done]
    return ordered


def _owners(obj: Obj) -> set[str]:
    return {str(reference.get("uid")) for reference in objects(obj["metadata"].get("ownerReferences"))}


def _hindrance(item: Item) -> str:
    obj, status = item.obj, status_of(item.obj)
    if is_deleting(obj):
        return "is being deleted"
    if item.kind == MACHINE:
        if not spec_of(obj).get("providerID") or not status.get("nodeRef"):
            return "its host is in the making"
        if status.get("replacement"):
            return "its host is being replaced"
        return "its host is being changed" if status.get("phase") in {"Updating"} else ""
    if item.kind == CONTROL_PLANE and status.get("pending"):
        return "a Machine of it joins, goes or is upgraded"
    ordinals = mapping(status.get("ordinals"))
    if ordinals.get("reserved") or ordinals.get("leaving"):
        return "Machines that it has promised are not there yet, or some leave"
    return ""
