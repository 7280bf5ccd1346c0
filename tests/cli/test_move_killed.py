"""A move that is killed before or after any of its writes goes on, or is taken back: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.names import MOVING_ANNOTATION
from controllers.kernel.refs import CLUSTER, MACHINE, NODE, SECRET, Key, Kind, key_of, ref_of, uid_of
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.cli.exits import CliError
from nodewright.cli.moving.graph import KINDS, graph
from nodewright.cli.moving.journal import clusters_of
from nodewright.cli.moving.moving import Move
from nodewright.cli.moving.sides import Side
from nodewright.cli.moving.translating import differences
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from providers.base.contract import HostIdentity, HostRequest
from providers.base.registry import Registry
from providers.simulated.config import API_VERSION, KIND
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds

PROD = Key("default", "prod")
GROUP = "cluster.k8s.io/v1alpha1"
CONFIG = {"apiVersion": API_VERSION, "kind": KIND, "cloud": {"name": "moving", "apiSeconds": 0}, "bootSeconds": 0}


class KilledError(Exception):
    """The process ended here."""


class Fragile(KubeClient):
    """Ends the process at its write number ``at`` of all that share ``writes``: before it, or after it was done."""

    writes: list[str]
    at = -1
    after = False

    async def object_of(self, call: Any, *more: Any, **named: Any) -> dict[str, Any]:
        if call.method == "GET":
            return await super().object_of(call, *more, **named)
        self.writes.append(call.verb)
        dies = len(self.writes) - 1 == self.at
        if dies and not self.after:
            raise KilledError
        answer = await super().object_of(call, *more, **named)
        if dies:
            raise KilledError
        return answer


@dataclass
class Scene:
    source: KubeClient
    target: KubeClient
    worlds: Worlds
    connections: tuple[Any, Any]
    workload: KubeClient
    """The API of prod itself: the target, at first."""

    @asynccontextmanager
    async def move(self, at: int = -1, *, after: bool = False) -> AsyncIterator[tuple[Move, list[str]]]:
        writes: list[str] = []
        sides = []
        async with Fragile(self.connections[0], "s") as first, Fragile(self.connections[1], "t") as second:
            for client, title in ((first, "the source"), (second, "the target")):
                client.writes, client.at, client.after = writes, at, after
                sides.append(Side(client, title))
            yield Move(sides[0], sides[1], PROD, self.registry, lambda _text: None), writes

    @property
    def registry(self) -> Registry:
        return Registry.of(registration_for(self.worlds, lambda _seconds: asyncio.sleep(0)))

    async def objects(self, client: KubeClient) -> list[tuple[Kind, dict[str, Any]]]:
        world = await Side(client, "it").world("default")
        return [(item.kind, dict(item.obj)) for item in graph(world, PROD)]

    def turn_round(self) -> None:
        self.source, self.target = self.target, self.source
        self.connections = (self.connections[1], self.connections[0])

    def hosts(self) -> dict[str, str]:
        """UID to host."""
        return {host.machine_uid: host.id for world in self.worlds.all.values() for host in world.hosts()}


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    worlds = Worlds(lambda: datetime.now(UTC))
    configs = [APIServerConfig(crds=tuple(load_crds()), kubeconfig=folder / name) for name in ("a", "b")]
    async with APIServer(configs[0]) as one, APIServer(configs[1]) as other:
        connections = [await load_kubeconfig([plane.kubeconfig_path]) for plane in (one, other)]
        async with KubeClient(connections[0], "t") as source, KubeClient(connections[1], "t") as target:
            found = Scene(source, target, worlds, (connections[0], connections[1]), target)
            await fill(found, other.kubeconfig_path.read_bytes())
            yield found


async def fill(scene: Scene, kubeconfig: bytes) -> None:
    """Cluster prod: a deployment, a set, two Machines with hosts and Nodes, a class, ledgers with UIDs."""
    labels = {"cluster.k8s.io/cluster-name": "prod", "pool": "w"}
    config = {"valueFrom": {"machineClass": {"name": "small"}}}
    template = {"metadata": {"labels": labels}, "spec": {"providerConfig": config}}
    selecting = {"replicas": 2, "selector": {"matchLabels": {"pool": "w"}}, "template": template}
    await make(scene, "Cluster", "prod", spec={}, status={"phase": "Provisioned"})
    data = {"value": base64.b64encode(kubeconfig).decode()}
    await scene.source.create(Kind("", "v1", "Secret", "secrets"), body("v1", "Secret", "prod-kubeconfig", data=data))
    await make(scene, "MachineClass", "small", providerConfig=CONFIG)
    deployment = await make(scene, "MachineDeployment", "w", labels, spec=selecting, status={"replicas": 2})
    set_ = await make(
        scene, "MachineSet", "w-1", labels, owner=deployment, spec=selecting,
        status={"replicas": 2, "ordinals": {"next": 3}},
    )  # fmt: skip
    provider = scene.registry
    scope = provider.scope(CONFIG, "default")
    registration = provider.named(scope.provider)
    assert registration is not None
    opened = registration.open(registration.scope_of(CONFIG), CONFIG)
    mark = await Side(scene.source, "it").mark()
    for number in (1, 2):
        name = f"w-1-{number}"
        machine = await make(scene, "Machine", name, labels, owner=set_, spec=template["spec"])
        uid = uid_of(machine)
        host = await opened.create(HostRequest(HostIdentity(uid, "default", name, "prod", mark), CONFIG, f"h{number}"))
        ledger = {"metadata": {"annotations": {"example.com/of": f"{uid}/{uid_of(set_)}"}}}
        await scene.source.merge_patch(ref_of(MACHINE, machine), ledger)
        provider_id = f"simulated://{host.id}"
        await scene.source.merge_patch(ref_of(MACHINE, machine), {"spec": {"providerID": provider_id}})
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {"cluster.k8s.io/machine-uid": uid}},
            "spec": {"providerID": provider_id},
        }
        at = await scene.target.create(NODE, node)
        status = {"phase": "Running", "nodeRef": {"kind": "Node", "name": name, "uid": uid_of(at)}}
        await scene.source.patch_status(ref_of(MACHINE, machine), status)


def body(version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


async def make(
    scene: Scene, kind: str, name: str, labels: Any = None, *, owner: Any = None, status: Any = None, **fields: Any
) -> dict[str, Any]:
    what = next(each for each in KINDS if each.name == kind)
    obj = body(GROUP, kind, name, **fields)
    obj["metadata"] |= {"labels": labels} if labels else {}
    obj["metadata"] |= {"finalizers": ["example.com/held"]} if kind != "MachineClass" else {}
    if owner is not None:
        meta = owner["metadata"]
        reference = {"apiVersion": GROUP, "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
        obj["metadata"]["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    made = await scene.source.create(what, obj)
    if status is not None:
        await scene.source.patch_status(ref_of(what, made), status)
    return {**made, "kind": kind}


async def holds_after(scene: Scene, before: list[tuple[Kind, dict[str, Any]]], hosts: dict[str, str]) -> None:
    after = {(kind, key_of(obj)): obj for kind, obj in await scene.objects(scene.target)}
    marks = [await Side(client, "it").mark() for client in (scene.source, scene.target)]
    uids = {uid_of(obj): uid_of(after[kind, key_of(obj)]) for kind, obj in before} | {marks[0]: marks[1]}
    assert len(after) == len(before)
    for kind, obj in before:
        assert differences(obj, after[kind, key_of(obj)], uids) == [], f"{kind.name} {key_of(obj)}"
        assert MOVING_ANNOTATION not in (after[kind, key_of(obj)]["metadata"].get("annotations") or {})
    assert scene.hosts() == {uids[uid]: host for uid, host in hosts.items()}, "no host made, lost or left"
    left = await Side(scene.source, "it").world("default")
    titles = [(kind.name, obj["metadata"]["name"]) for kind, objects in left.items() for obj in objects]
    assert titles == [("MachineClass", "small")], "what others may share is copied and stays"
    assert await Side(scene.target, "it").journal(PROD) is None
    for machine in (obj for kind, obj in before if kind == MACHINE):
        node = await scene.workload.get(NODE, Key("", str(machine["metadata"]["name"])))
        assert node["metadata"]["annotations"]["cluster.k8s.io/machine-uid"] == uids[uid_of(machine)]


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True], ids=["before", "after"])
async def test_killed_at_each_write_it_goes_on(tmp_path: Path, after: bool) -> None:
    """Each process is killed at one of its first four writes."""
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        kills = 0
        for at in range(3000):
            async with there.move(at % 4, after=after) as (move, _writes):
                if await ends(move):
                    break
                kills += 1
        assert kills >= 15
        await holds_after(there, before, hosts)


@pytest.mark.slow
async def test_killed_once_at_any_write_the_next_run_ends_it(tmp_path: Path) -> None:
    """To and fro between the two, one write later each time."""
    async with scene(tmp_path) as there:
        at, ended = 0, False
        while not ended:
            before, hosts = await there.objects(there.source), there.hosts()
            async with there.move(at, after=at % 2 == 0) as (move, _):
                ended = await ends(move)
            if not ended:
                async with there.move() as (move, _):
                    await move.run()
            await holds_after(there, before, hosts)
            there.turn_round()
            at += 1
        assert at >= 15


@pytest.mark.slow
async def test_taken_back_at_any_write_before_the_commit_all_is_as_it_was(tmp_path: Path) -> None:
    """After the commit that is refused."""
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        same = {uid_of(obj): uid_of(obj) for _, obj in before}
        at = 0
        while await is_taken_back(there, at):
            back = {(kind, key_of(obj)): obj for kind, obj in await there.objects(there.source)}
            for kind, obj in before:
                assert differences(obj, back[kind, key_of(obj)], same) == []
                assert MOVING_ANNOTATION not in (back[kind, key_of(obj)]["metadata"].get("annotations") or {})
            assert there.hosts() == hosts
            left = await Side(there.target, "it").world("default")
            assert all(not objects for objects in left.values()), left
            at += 1
        assert at >= 10
        async with there.move() as (move, _):
            with pytest.raises(CliError, match="committed"):
                await move.abort()
        async with there.move() as (move, _):
            await move.run()
        await holds_after(there, before, hosts)


async def ends(move: Move) -> bool:
    """False: it was killed."""
    try:
        await move.run()
    except KilledError:
        return False
    return True


async def is_taken_back(scene: Scene, at: int) -> bool:
    """After it was killed at that write; False: it was committed by then."""
    async with scene.move(at, after=True) as (move, _):
        assert not await ends(move)
    async with scene.move() as (move, _):
        try:
            await move.abort()
        except CliError:
            return False
    return True


async def test_what_is_under_way_forbids_it_by_name(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        (machine, *_) = [obj for kind, obj in await there.objects(there.source) if kind == MACHINE]
        await there.source.patch_status(ref_of(MACHINE, machine), {"nodeRef": None})
        async with there.move() as (move, writes):
            with pytest.raises(CliError, match=f"Machine {key_of(machine)}: its host is in the making"):
                await move.run()
        assert writes == []


async def test_a_namesake_at_the_target_forbids_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        await there.target.create(CLUSTER, body(GROUP, "Cluster", "prod", spec={}))
        async with there.move() as (move, writes):
            with pytest.raises(CliError, match="Cluster default/prod is at the target too"):
                await move.run()
        assert writes == []


async def test_one_that_was_killed_once_its_cluster_was_gone_is_among_all_of_them(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        at, alive = 0, True
        while alive:
            async with there.move(at, after=True) as (move, _):
                assert not await ends(move)
            alive = any(kind == CLUSTER for kind, _ in await there.objects(there.source))
            at = 3
        side = Side(there.source, "it")
        assert clusters_of((await side.world("default"))[SECRET]) == [PROD]
