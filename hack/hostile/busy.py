"""The busy namespace: MachineDeployments that scale and roll, and the record of what became of their objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NAMESPACE, NODE, Key, Kind, Ref
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.part import Part
from nodewright.runtime.cache.reflector import Reflector
from nodewright.runtime.cache.store import Change
from nodewright.runtime.kube.client import KubeClient

NAME = "busy"
DEPLOYMENTS = ("a", "b")
SMALL, LARGE = 2, 4
PER_CYCLE = len(DEPLOYMENTS) * ((LARGE - SMALL) + LARGE)
"""Machines that one cycle makes, and as many that it deletes: it scales up, replaces all, and scales down."""
LABEL, TAINT = "busy.example.com/pool", "busy.example.com/only"
FAST = {
    "apiVersion": "simulated.nodewright.dev/v1alpha1",
    "kind": "SimulatedMachineConfig",
    "bootSeconds": 0.1,
    "joinSeconds": 0.05,
    "deleteSeconds": 0.05,
}
LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.02


async def until(holds: Callable[[], bool], what: str, poll: float = POLL_SECONDS) -> None:
    """Raises AssertionError that names ``what`` after LIMIT_SECONDS."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {LIMIT_SECONDS:.0f} s")
        await asyncio.sleep(poll)


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    spec = {
        "providerConfig": {"value": FAST},
        "versions": {"kubelet": "1.34.0"},
        "metadata": {"labels": {LABEL: name}},
        "taints": [{"key": TAINT, "value": name, "effect": "NoSchedule"}],
    }
    return {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": NAME},
        "spec": {
            "replicas": SMALL,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


@dataclass
class Busy:
    """``made`` and ``deleted`` are UIDs of Machines, as the watch delivered them."""

    client: KubeClient
    cache: Cache = field(default_factory=lambda: Cache([MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, NODE]))
    made: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    _asked: dict[str, str] = field(default_factory=dict)
    cycles: int = 0
    reactions: list[float] = field(default_factory=list)
    """Seconds from each change of a cycle until the controllers had looked at it."""

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        self.cache.listen(MACHINE, self._heard)
        own = Part(self.client, (Key(NAME, ""),))
        reflectors = [Reflector(self.client if kind == NODE else own, self.cache, kind) for kind in self.cache.stores]
        tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        try:
            for reflector in reflectors:
                await asyncio.wait_for(reflector.synced.wait(), LIMIT_SECONDS)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _heard(self, change: Change, _from_list: bool) -> None:
        if change.new is not None:
            self.made.add(str(change.new["metadata"]["uid"]))
        elif change.old is not None:
            self.deleted.add(str(change.old["metadata"]["uid"]))

    async def begin(self) -> None:
        await self.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
        for name in DEPLOYMENTS:
            await self.client.create(MACHINE_DEPLOYMENT, _deployment(name))
        await until(lambda: self.is_settled(SMALL), "the first Machines are Running")

    async def cycle(self) -> float:
        """Scale up, replace every Machine, scale down. Seconds that it took."""
        began = time.monotonic()
        self.cycles += 1
        for replicas, version in ((LARGE, None), (LARGE, f"1.34.{self.cycles}"), (SMALL, None)):
            for name in DEPLOYMENTS:
                target = Ref(MACHINE_DEPLOYMENT, Key(NAME, name))
                if version is None:
                    answer = await self.client.scale(target, replicas)
                else:
                    spec = {"template": {"spec": {"versions": {"kubelet": version}}}}
                    answer = await self.client.merge_patch(target, {"spec": spec})
                self._asked[name] = str(answer["metadata"]["resourceVersion"])
            changed = time.monotonic()
            await until(self._is_seen, f"cycle {self.cycles}: the change is seen", 0.002)
            self.reactions.append(time.monotonic() - changed)
            what = f"cycle {self.cycles}: {replicas} Machines each, {version or 'as they are'}"
            await until(lambda wanted=replicas: self.is_settled(wanted), what)  # type: ignore[misc]
        return time.monotonic() - began

    def machines(self) -> list[Any]:
        return list(self.cache.stores[MACHINE])

    def nodes(self) -> list[Any]:
        """The Nodes of the busy Machines, by the names in their statuses."""
        names = {((machine.get("status") or {}).get("nodeRef") or {}).get("name") for machine in self.machines()}
        return [node for node in self.cache.stores[NODE] if node["metadata"]["name"] in names]

    def is_settled(self, replicas: int) -> bool:
        """Each deployment has so many Machines, all of its newest template, Running, each with a Node of its own."""
        machines, wanted = self.machines(), replicas * len(DEPLOYMENTS)
        return (
            len(machines) == wanted == len(self.nodes())
            and all((machine.get("status") or {}).get("phase") == "Running" for machine in machines)
            and all(self._is_done(name, replicas) for name in DEPLOYMENTS)
        )

    def _is_seen(self) -> bool:
        """The controllers have looked at what was asked for last."""
        for name, version in self._asked.items():
            found = self.cache.stores[MACHINE_DEPLOYMENT].get(Key(NAME, name)) or {}
            meta, status = found.get("metadata") or {}, found.get("status") or {}
            if int(meta.get("resourceVersion") or 0) < int(version):
                return False
            if status.get("observedGeneration") != meta.get("generation"):
                return False
        return True

    def _is_done(self, name: str, replicas: int) -> bool:
        found = self.cache.stores[MACHINE_DEPLOYMENT].get(Key(NAME, name))
        if found is None:
            return False
        status = found.get("status") or {}
        counts = [status.get(each) for each in ("replicas", "updatedReplicas", "readyReplicas")]
        return counts == [replicas] * 3 and status.get("observedGeneration") == found["metadata"].get("generation")

    def faults(self) -> list[str]:
        """What is not as the owner of the namespace asked, in a settled moment of SMALL; one line each."""
        found = []
        expected = len(DEPLOYMENTS) * SMALL + self.cycles * PER_CYCLE
        if len(self.made) != expected:
            found.append(f"{len(self.made)} Machines were made, {expected} were asked for")
        if len(self.deleted) != self.cycles * PER_CYCLE:
            found.append(f"{len(self.deleted)} Machines are gone, {self.cycles * PER_CYCLE} had to go")
        pools = {machine["metadata"]["name"]: machine["metadata"]["labels"]["app"] for machine in self.machines()}
        for node in self.nodes():
            found += _faults_of_node(node, pools.get(node["metadata"]["name"], ""))
        return found

    def as_it_is(self) -> dict[str, Any]:
        """All of the busy namespace but counts, times and conditions: two of these are equal if nothing was changed."""
        kinds: tuple[Kind, ...] = (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT)
        objects = [(kind, obj) for kind in kinds for obj in self.cache.stores[kind]]
        objects += [(NODE, node) for node in self.nodes()]
        return {f"{kind.name}/{obj['metadata']['name']}": _kept(kind, obj) for kind, obj in objects}


def _faults_of_node(node: Any, pool: str) -> list[str]:
    meta, name = node["metadata"], node["metadata"]["name"]
    labels, found = meta.get("labels") or {}, []
    if labels.get(LABEL) != pool:
        found.append(f"Node {name}: label {LABEL} is {labels.get(LABEL)!r}, not {pool!r}")
    found += [f"Node {name}: label {key} of somebody else" for key in labels if "evil" in key or "node-role" in key]
    taints = [(taint["key"], taint.get("value")) for taint in (node.get("spec") or {}).get("taints") or ()]
    if taints != [(TAINT, pool)]:
        found.append(f"Node {name}: taints are {taints}")
    if meta.get("deletionTimestamp"):
        found.append(f"Node {name}: is being deleted")
    return found


def _kept(kind: Kind, obj: Any) -> dict[str, Any]:
    meta = obj["metadata"]
    fields = ("uid", "generation", "labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")
    kept = {name: meta.get(name) for name in fields}
    kept["spec"] = obj.get("spec")
    if kind == MACHINE:
        kept["status"] = {name: (obj.get("status") or {}).get(name) for name in ("phase", "nodeRef")}
    return kept
