"""Clusters with an API of their own beside a Town: workload planes that a test may stop and start again."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controllers.kernel.conditions import find
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, NODE, POD, SECRET, Key, Kind, Obj, Ref
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ListOptions
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.simulated import pods
from nodewright.runtime.workloads.options import WorkloadOptions
from tests.runtime.town import FAST, Town

IMPATIENT = WorkloadOptions(
    probe_every=0.1,
    probe_timeout=0.5,
    unreachable_after=0.8,
    retry=0.05,
    client=ClientLimits(in_flight=16, connect_timeout=1.0, request_timeout=2.0, attempts=1),
)
PATIENT = replace(
    IMPATIENT,
    probe_timeout=60.0,
    unreachable_after=120.0,
    client=replace(IMPATIENT.client, connect_timeout=60.0, request_timeout=60.0),
)
"""For tests in which no cluster goes: a machine that is short of processors loses none either."""
HANGS = 20.0
"""Seconds: longer than any request may take, short enough for a plane's own end."""


@dataclass
class Elsewhere:
    """The plane of one workload cluster. What it keeps outlives a stop."""

    name: str
    folder: Path
    port: int = 0
    plane: APIServer | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def key(self) -> Key:
        return Key("default", self.name)

    @property
    def running(self) -> APIServer:
        assert self.plane is not None
        return self.plane

    async def start(self) -> None:
        config = APIServerConfig(data_dir=self.folder, port=self.port)
        self.plane = await self._stack.enter_async_context(APIServer(config))
        self.port = urlsplit(self.plane.url).port or 0

    async def stop(self) -> None:
        self.plane = None
        await self._stack.aclose()

    def hang(self) -> None:
        """It takes connections and answers nobody."""
        self.running.faults.delay(HANGS, Match(), times=1_000_000)

    def kubeconfig(self) -> bytes:
        return self.running.kubeconfig_path.read_bytes()

    def objects(self, kind: Kind) -> list[Any]:
        resource = self.running.store.resources.find(kind.group, kind.version, kind.plural)
        assert resource is not None
        return list(self.running.store.list(resource, "", ListOptions()).items)

    @asynccontextmanager
    async def scheduler(self) -> AsyncIterator[KubeClient]:
        """Somebody binds pods there, and kubelets start and end those of simulated hosts. Gives a client of it."""
        connection = await load_kubeconfig([self.running.kubeconfig_path])
        async with KubeClient(connection, "tests") as client, AsyncExitStack() as stack:
            cache = Cache(pods.BINDER_READS)
            for kind in cache.stores:
                reading = asyncio.create_task(Reflector(client, cache, kind, ReflectorOptions(backoff=0.01)).run())
                stack.callback(reading.cancel)
            for part in (pods.Binder, pods.PodKubelets):
                await stack.enter_async_context(part(client, cache, utc_now))
            yield client

    async def run_pod(self, name: str, node: str) -> None:
        """A pod without an owner: nobody but a drain takes it away."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "a"}]},
        }
        async with KubeClient(await load_kubeconfig([self.running.kubeconfig_path]), "tests") as client:
            await client.create(POD, body)


class Country:
    """A Town whose Clusters may have planes of their own."""

    def __init__(self, town: Town, folder: Path) -> None:
        town.options = replace(town.options, workloads=IMPATIENT)
        self.town = town
        self._folder = folder

    @asynccontextmanager
    async def elsewhere(self, *names: str) -> AsyncIterator[list[Elsewhere]]:
        """Planes of these Clusters, with the Clusters and their Secrets."""
        async with AsyncExitStack() as stack:
            planes = [Elsewhere(name, self._folder / name) for name in names]
            for plane in planes:
                await plane.start()
                stack.push_async_callback(plane.stop)
                await self.cluster(plane.name)
                await self.secret(plane.name, plane.kubeconfig())
            yield planes

    async def cluster(self, name: str) -> None:
        meta = {"name": name, "namespace": "default"}
        await self.town.client.create(
            CLUSTER, {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": meta, "spec": {}}
        )

    async def secret(self, cluster: str, kubeconfig: bytes, key: str = "value") -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{cluster}-kubeconfig", "namespace": "default"},
            "data": {key: base64.b64encode(kubeconfig).decode()},
        }
        await self.town.client.create(SECRET, body)

    async def rewrite_secret(self, cluster: str, kubeconfig: bytes) -> None:
        patch = {"data": {"value": base64.b64encode(kubeconfig).decode()}}
        await self.town.client.merge_patch(Ref(SECRET, Key("default", f"{cluster}-kubeconfig")), patch)

    async def machine_set(self, cluster: str, replicas: int, **config: Any) -> None:
        labels = {"pool": cluster, "cluster.k8s.io/cluster-name": cluster}
        spec = {"clusterName": cluster, "providerConfig": {"value": {**FAST, **config}}}
        body = {
            "apiVersion": MACHINE_SET.api_version,
            "kind": "MachineSet",
            "metadata": {"name": cluster, "namespace": "default", "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"pool": cluster}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        await self.town.client.create(MACHINE_SET, body)

    def machines(self, cluster: str) -> list[Obj]:
        return [m for m in self.town.objects(MACHINE) if m["metadata"]["labels"]["pool"] == cluster]

    def ready(self, cluster: str) -> int:
        return sum((machine.get("status") or {}).get("phase") == "Running" for machine in self.machines(cluster))

    def said(self, cluster: str, type_: str = "Reachable") -> dict[str, Any]:
        """A condition of the Cluster; empty if there is none."""
        body = next(c for c in self.town.objects(CLUSTER) if c["metadata"]["name"] == cluster)
        return dict(find((body.get("status") or {}).get("conditions"), type_) or {})

    def hosts(self, cluster: str) -> int:
        """Hosts of the Machines that are of ``cluster``."""
        uids = {machine["metadata"]["uid"] for machine in self.machines(cluster)}
        return sum(host.machine_uid in uids for world in self.town.worlds.all.values() for host in world.hosts())

    def nodes_in_management_cluster(self) -> list[Any]:
        return self.town.objects(NODE)
