"""What a tenant does with the objects of one namespace against the controllers and against other namespaces."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from api import names
from controllers.kernel.conditions import find
from controllers.kernel.refs import (
    CLUSTER,
    CONFIG_MAP,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    SECRET,
    Key,
    Kind,
    Ref,
)
from hack.hostile.busy import FAST, LABEL
from hack.hostile.server import ANSWERS, HostileServer
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError

NAME = "hostile"
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)
)
TEXTS = ("a:\n" + "- b: {c: d}\n" * 22_000, "[" * 32_000, "a: '" + "''" * 16_000 + "'", "- !!str a\n" * 3200, BOMB)
"""Provider configurations given as text; the first is of 262 KB."""
STRUCTURED: dict[str, Any] = {"value": {**FAST, "x": ["abcdefg"] * 78_000}}
"""781 KB as JSON."""
SHELL = "x; curl http://127.0.0.1/ | sh #"
ODD: tuple[Any, ...] = (
    [1],
    "x",
    5,
    None,
    {"spec": [1]},
    {"metadata": {"labels": "x"}},
    {"spec": {"clusterName": [{}]}},
)


def body(kind: Kind, name: str, spec: Any, **meta: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAME, **meta}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def machine_spec(**more: Any) -> dict[str, Any]:
    return {"providerConfig": {"value": FAST}, "versions": {"kubelet": "1.34.0"}, **more}


def machine_set(name: str, replicas: int, labels: dict[str, str]) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": machine_spec()}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return body(MACHINE_SET, name, spec)


@dataclass
class Hostile:
    """``victims`` gives the Machines and Nodes of others as they are now. ``flood``: Machines of one MachineSet.

    ``done`` counts attacks by name, ``refused`` the API server's refusals by code.
    """

    client: KubeClient
    server: HostileServer
    victims: Callable[[], tuple[list[Any], list[Any]]]
    flood: int = 50
    seed: int = 1
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    took_effect: Counter[str] = field(default_factory=Counter)
    """Attacks whose objects the controllers have acted on or answered, by name."""
    active: int = 0
    """Attacks under way."""
    machines: int = 0
    """Machines that were asked for."""
    _numbers: Any = field(default_factory=itertools.count)
    _left: dict[Ref, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def attacks(self) -> dict[str, Callable[[str], Awaitable[None]]]:
        """By name; each is given a name that no other object has."""
        return {
            "provider id": self.foreign_provider_id,
            "pause, change, delete": self.pause_change_delete,
            "same name": self.name_of_another,
            "foreign owner": self.foreign_owner,
            "same selector": self.selector_of_another,
            "text": self.long_text,
            "structured": self.large_structure,
            "bombs": self.bombs,
            "shapes": self.odd_shapes,
            "templates": self.remediation_paths,
            "servers": self.hostile_servers,
            "shell": self.shell_text,
            "flood": self.many_machines,
        }

    async def one(self, name: str) -> None:
        """One attack, and what it has made deleted again."""
        self.active += 1
        try:
            await self.attacks()[name](f"{name.partition(',')[0].replace(' ', '-')}-{next(self._numbers)}")
        finally:
            self.active -= 1
        self.done[name] += 1

    async def go_on(self, gate: asyncio.Event) -> None:
        """All attacks in random order, again and again while ``gate`` is set; until cancelled."""
        order = list(self.attacks())
        while True:
            self._random.shuffle(order)
            for name in order:
                await gate.wait()
                await self.one(name)

    async def withdraw(self) -> None:
        """Delete what is left."""
        for ref in list(self._left):
            await self._delete(ref)

    # -- each against a rule of its own

    async def foreign_provider_id(self, name: str) -> None:
        """Labels, a NoExecute taint and a drain by force for the Node of another."""
        for provider_id in self._provider_ids():
            ref = await self._create(body(MACHINE, name, self._evil(providerID=provider_id)))
            if ref is not None:
                self._count("provider id", await self._until(ref, lambda found: _reason(found, "InfrastructureReady")))
                await self._delete(ref)
                await self._until_gone(ref)

    async def pause_change_delete(self, name: str) -> None:
        for provider_id in self._provider_ids():
            ref = await self._create(body(MACHINE, name, self._evil()))
            if ref is None:
                return
            await self._until(ref, lambda found: (found.get("status") or {}).get("phase") == "Running")
            await self._patch(ref, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})
            await self._until(ref, lambda found: _reason(found, "Paused") == "Paused")
            for value in (None, provider_id):
                await self._patch(ref, {"spec": {"providerID": value}})
            await self._patch(ref, {"status": {"nodeRef": {"name": self._node_name()}}}, "status")
            bound = await self._until(ref, lambda found: found["spec"].get("providerID") == provider_id, looks=1)  # noqa: B023
            self._count("pause, change, delete", bound)
            await self._delete(ref)
            await self._patch(ref, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
            await self._until_gone(ref)

    async def name_of_another(self, _name: str) -> None:
        """Its host would register under the name of a Node that there is."""
        if node := self._node_name():
            ref = await self._create(body(MACHINE, node, self._evil()))
            if ref is not None:
                self._count("same name", await self._until(ref, lambda found: (found.get("status") or {}).get("phase")))
                await self._until(
                    ref, lambda found: (found.get("status") or {}).get("phase") in {"Running", "Failed"}, looks=30
                )
                await self._delete(ref)
                await self._until_gone(ref)

    async def foreign_owner(self, name: str) -> None:
        """A Machine that says a MachineSet of another namespace were its controller, with the labels of its pool."""
        machines, _ = self.victims()
        if machines:
            meta = self._random.choice(machines)["metadata"]
            more = {
                "labels": dict(meta.get("labels") or {}),
                "ownerReferences": list(meta.get("ownerReferences") or ()),
            }
            await self._passing(body(MACHINE, name, self._evil(), **more))

    async def selector_of_another(self, name: str) -> None:
        """What selects by labels selects in its namespace; no status of others counts these either."""
        await self._passing(machine_set(name, 1, {"app": "a"}))
        spec = {"selector": {"matchLabels": {"app": "a"}}, "unhealthyConditions": [_unhealthy()]}
        await self._passing(body(MACHINE_HEALTH_CHECK, name, spec))

    async def long_text(self, name: str) -> None:
        for number, text in enumerate(TEXTS):
            ref = await self._create(body(MACHINE, f"{name}-{number}", {"providerConfig": text}))
            if ref is not None:
                self._count("text", await self._until(ref, _conditions))
                await self._delete(ref)

    async def large_structure(self, name: str) -> None:
        ref = await self._create(body(MACHINE, name, {"providerConfig": STRUCTURED}))
        if ref is not None:
            for number in range(3):
                await self._patch(ref, {"metadata": {"labels": {"turn": str(number)}}})
            self._count(
                "structured", await self._until(ref, lambda found: (found.get("status") or {}).get("conditions"))
            )
            await self._delete(ref)

    async def bombs(self, name: str) -> None:
        await self._cluster(name, BOMB)
        plain = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"prices": BOMB, "value": BOMB}}
        await self._passing({**plain, "metadata": {"name": name, "namespace": NAME}})

    async def odd_shapes(self, name: str) -> None:
        for number, odd in enumerate(ODD):
            each = f"{name}-{number}"
            await self._passing(body(MACHINE, each, {**machine_spec(), "template": odd}))
            await self._passing(body(MACHINE, each, {"providerConfig": odd}))
            await self._passing(body(MACHINE_SET, each, {**machine_set(each, 1, {"a": each})["spec"], "template": odd}))
            await self._passing(body(MACHINE_DEPLOYMENT, each, {"replicas": odd, "template": odd, "selector": odd}))
            await self._passing(body(CLUSTER, each, {"clusterNetwork": odd, "template": odd}))
            await self._passing(body(MACHINE, each, odd))
            await self._passing(body(MACHINE, each, machine_spec(), labels=odd, annotations=odd))

    async def remediation_paths(self, name: str) -> None:
        for kind in ("machines/VICTIM?x=Template", "../../busy/machinesTemplate", "MachineTemplate"):
            template = {
                "apiVersion": "cluster.k8s.io/v1alpha1/namespaces/busy",
                "kind": kind,
                "name": self._node_name(),
            }
            check = {"selector": {"matchLabels": {"a": name}}, "unhealthyConditions": [_unhealthy()]}
            await self._passing(body(MACHINE_HEALTH_CHECK, name, {**check, "remediationTemplate": template}))

    async def hostile_servers(self, name: str) -> None:
        for answer in ANSWERS:
            await self._cluster(f"{name}-{answer}", _kubeconfig(f"{self.server.url}/{answer}/"))

    async def shell_text(self, name: str) -> None:
        versions = {"kubelet": "1.34.0", "containerRuntime": {"name": SHELL, "version": SHELL}}
        await self._passing(body(MACHINE, name, machine_spec(versions=versions)))
        await self._passing(body(MACHINE, name, machine_spec(versions={"kubelet": SHELL})))
        metadata = {"labels": {f"b c;$(id){SHELL}": SHELL}, "annotations": {SHELL: "\x1b[2J" + SHELL}}
        await self._passing(body(MACHINE, name, machine_spec(metadata=metadata)))
        await self._passing(body(MACHINE, name, machine_spec(taints=[{"key": SHELL, "effect": SHELL}])))

    async def many_machines(self, name: str) -> None:
        self.machines += self.flood
        ref = await self._create(machine_set(name, self.flood, {"pool": name}))
        if ref is not None:
            half = self.flood / 2
            grown = await self._until(ref, lambda found: ((found.get("status") or {}).get("replicas") or 0) >= half)
            self._count("flood", grown)
            await self._delete(ref)

    # -- parts of them

    def _evil(self, **more: Any) -> dict[str, Any]:
        labels = {"node-role.kubernetes.io/control-plane": "", "evil.example.com/x": "", LABEL: "evil"}
        taint = {"key": "evil", "effect": "NoExecute"}
        return machine_spec(metadata={"labels": labels}, taints=[taint], nodeDrainForceAfter="1s", **more)

    def _provider_ids(self) -> list[str]:
        _, nodes = self.victims()
        ids = [str((node.get("spec") or {}).get("providerID") or "") for node in nodes]
        return self._random.sample(ids, min(2, len(ids)))

    def _node_name(self) -> str:
        _, nodes = self.victims()
        return str(self._random.choice(nodes)["metadata"]["name"]) if nodes else ""

    async def _cluster(self, name: str, kubeconfig: str) -> None:
        data = {"value": base64.b64encode(kubeconfig.encode()).decode()}
        meta = {"name": f"{name}-kubeconfig", "namespace": NAME}
        secret = await self._create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
        cluster = await self._create(body(CLUSTER, name, {}))
        spec = machine_spec(clusterName=name)
        before = self.server.asked.total()
        if cluster is not None and kubeconfig is BOMB:
            self._count("bombs", await self._until(cluster, lambda found: _reason(found, "Reachable")))
        elif cluster is not None:
            self._count("servers", await self._until(cluster, lambda _: self.server.asked.total() > before, looks=40))
        await self._passing(body(MACHINE, name, spec, labels={names.CLUSTER_NAME_LABEL: name}))
        for ref in (cluster, secret):
            if ref is not None:
                await self._delete(ref)

    def _count(self, name: str, holds: bool) -> None:
        self.took_effect[name] += holds

    async def _until(self, ref: Ref, holds: Callable[[dict[str, Any]], object], looks: int = 100) -> bool:
        """Whether it came to hold within so many looks; False too if the object is gone."""
        for number in range(looks):
            if number:
                await asyncio.sleep(0.05)
            try:
                if holds(await self.client.get(ref.kind, ref.key)):
                    return True
            except ApiError as error:
                if error.code == 404:
                    return False
            except KubeError:
                continue
        return False

    async def _until_gone(self, ref: Ref) -> None:
        """The same name is free for the next one; given up after a hundred looks."""
        await self._until(ref, lambda _: False)

    async def _passing(self, obj: dict[str, Any]) -> None:
        """Make it, let others run, and delete it."""
        ref = await self._create(obj)
        if ref is not None:
            await asyncio.sleep(0.05)
            await self._delete(ref)

    async def _create(self, obj: dict[str, Any]) -> Ref | None:
        kind = KINDS[obj["kind"]]
        self.machines += kind == MACHINE
        ref = Ref(kind, Key(NAME, obj["metadata"]["name"]))
        self._left[ref] = None
        return ref if await self._tried(self.client.create(kind, obj)) else None

    async def _patch(self, ref: Ref, patch: dict[str, Any], subresource: str = "") -> None:
        await self._tried(self.client.merge_patch(ref, patch, subresource=subresource))

    async def _delete(self, ref: Ref) -> None:
        self._left.pop(ref, None)
        await self._tried(self.client.delete(ref))

    async def _tried(self, work: Awaitable[Any]) -> bool:
        try:
            await work
        except KubeError as error:
            self.refused[str(getattr(error, "code", type(error).__name__))] += 1
            return False
        return True


_KINDS = (CLUSTER, CONFIG_MAP, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_SET, SECRET)
KINDS = {kind.name: kind for kind in _KINDS}


def _conditions(obj: dict[str, Any]) -> object:
    return (obj.get("status") or {}).get("conditions")


def _reason(obj: dict[str, Any], type_: str) -> str:
    """Reason of a condition, "" if it is not there."""
    return str((find((obj.get("status") or {}).get("conditions"), type_) or {}).get("reason", ""))


def _unhealthy() -> dict[str, str]:
    return {"type": "Ready", "status": "True", "timeout": "1s"}


def _kubeconfig(url: str) -> str:
    return json.dumps(
        {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": url}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        }
    )
