"""Nodes that have joined and can't take their pods yet: a taint of their start, or devices that are not offered yet.

Such a Node counts as it will be. It is waited for as long as for a Machine (``--max-node-provision-time``); after that
it counts as it is, and its group rests. Rule for taints: the Cluster Autoscaler's FAQ ("startup taints"); for devices:
its GPU processor, which calls a Node unready until the resource that its label promises is allocatable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from api import names
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import Obj
from controllers.scheduling.shapes import NodeInfo, Taint

_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Starting:
    """``why``: what it still lacks. ``until``: when it is not waited for any longer."""

    why: str
    until: datetime

    def is_late(self, now: datetime) -> bool:
        return now >= self.until


def is_startup_taint(key: str, more: Collection[str] = ()) -> bool:
    """``more``: keys besides the usual ones; one that ends with ``/`` stands for all keys that begin with it."""
    if key in names.STARTUP_TAINTS or key.startswith(names.STARTUP_TAINT_PREFIXES):
        return True
    return any(key == each or (each.endswith("/") and key.startswith(each)) for each in more)


def without_startup_taints(taints: Iterable[Taint], more: Collection[str] = ()) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if not is_startup_taint(taint.key, more))


def lacks(node: NodeInfo, promised: Mapping[str, int], more: Collection[str] = ()) -> str:
    """What keeps the Node from taking pods for now; "" if nothing does.

    ``promised``: devices → how many its group promises. A Node that offers fewer than promised, but some, is broken in
    part, and stays so; one that offers none waits for its device plugin.
    """
    for taint in node.taints:
        if taint.effect in _BLOCKING and is_startup_taint(taint.key, more):
            return f"it has the startup taint {taint.key}:{taint.effect}"
    for resource in sorted(promised):
        if promised[resource] and not node.amount(resource):
            return f"{promised[resource]} {resource} are promised and none is offered yet by a device plugin"
    return ""


def started(node: NodeInfo, promised: Mapping[str, int], more: Collection[str] = ()) -> NodeInfo:
    """The Node as it will be. With 2 GPUs promised: offers 0 → 2, offers 1 → 1."""
    offered = dict(node.allocatable)
    missing = {name: amount for name, amount in promised.items() if amount and not offered.get(name)}
    return replace(
        node,
        taints=without_startup_taints(node.taints, more),
        allocatable=tuple(sorted({**offered, **missing}.items())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """How Nodes start. ``nodes`` and ``bodies``: Ready Nodes by name, read and as they came from the API.

    ``followed_since``: since when Nodes have been seen to come without an outage. ``taints``: further startup taints.
    """

    nodes: Mapping[str, NodeInfo]
    bodies: Mapping[str, Obj]
    now: datetime
    followed_since: datetime
    taints: Collection[str] = ()

    def of(
        self, machines: Iterable[MachineFacts], promised: Mapping[str, int], patience: timedelta
    ) -> dict[str, Starting]:
        """Those of the Machines' Nodes that can't take pods yet. Each has its time from when it became Ready."""
        found = {}
        for machine in machines:
            node = self.nodes.get(machine.node_name)
            why = lacks(node, promised, self.taints) if node is not None else ""
            if node is not None and why:
                since = max(machine.created, self._ready_since(node.name), self.followed_since)
                found[node.name] = Starting(why, since + patience)
        return found

    def shown(self, name: str, promised: Mapping[str, int]) -> NodeInfo:
        """The Node as it will be."""
        return started(self.nodes[name], promised, self.taints)

    def _ready_since(self, name: str) -> datetime:
        """By the Node's own word, unless its clock is ahead: it would be waited for until ours has caught up."""
        condition = find((self.bodies[name].get("status") or {}).get("conditions"), "Ready") or {}
        given = parse_time(condition.get("lastTransitionTime"))
        return given if given is not None and given <= self.now else datetime.min.replace(tzinfo=UTC)
