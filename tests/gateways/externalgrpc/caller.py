"""The gateway in this process on a Town's control plane, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.message import Message

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, Kind, Ref
from nodewright.gateways.externalgrpc.gateway import Gateway, GatewayOptions
from nodewright.gateways.externalgrpc.server import SERVICE
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.runtime.kube.client import ClientLimits
from tests.runtime.town import FAST, SECONDS, Town

GROUP = "MachineDeployment/default/workers"
CAPACITY = {names.CAPACITY_CPU_ANNOTATION: "4", names.CAPACITY_MEMORY_ANNOTATION: "8Gi"}


class Caller:
    """``await caller("NodeGroupTargetSize", id=GROUP)``; ``status`` for calls that are refused."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def __call__(self, name: str, **fields: Any) -> Any:
        method = SERVICE.methods_by_name[name]
        return await self.send(name, message_factory.GetMessageClass(method.input_type)(**fields).SerializeToString())

    async def send(self, name: str, content: bytes) -> Message:
        answer = message_factory.GetMessageClass(SERVICE.methods_by_name[name].output_type)
        call = self._channel.unary_unary(f"/{SERVICE.full_name}/{name}", None, answer.FromString)
        found: Message = await call(content, timeout=120)
        return found

    async def status(self, name: str, **fields: Any) -> tuple[str, str]:
        """Name of the status and its text."""
        try:
            await self(name, **fields)
        except grpc.aio.AioRpcError as error:
            return error.code().name, error.details() or ""
        return "OK", ""

    async def size(self, group: str = GROUP) -> int:
        return int((await self("NodeGroupTargetSize", id=group)).targetSize)

    async def instances(self, group: str = GROUP) -> dict[str, Any]:
        found = (await self("NodeGroupNodes", id=group)).instances
        return {each.id: each.status for each in found}


@dataclass(frozen=True, slots=True)
class Serving:
    gateway: Gateway
    address: str
    caller: Caller


@asynccontextmanager
async def serving(
    town: Town, options: GatewayOptions | None = None, credentials: grpc.ChannelCredentials | None = None
) -> AsyncIterator[Serving]:
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    options = replace(options or GatewayOptions(), client=ClientLimits(backoff=0.01), reflector=town.options.reflector)
    gateway = Gateway(town.connection, options)
    task = asyncio.create_task(gateway.run(stop, ready.set_result))
    try:
        await asyncio.wait({task, ready}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        address: str = ready.result()
        where = f"localhost:{address.rpartition(':')[2]}"
        channel = (
            grpc.aio.insecure_channel(address) if credentials is None else grpc.aio.secure_channel(where, credentials)
        )
        async with channel:
            yield Serving(gateway, address, Caller(channel))
    finally:
        stop.set()
        await asyncio.wait_for(task, SECONDS)


def node(provider_id: str, name: str = "", fake: str = "") -> wire.ExternalGrpcNode:
    annotations = {"k8s.io/cluster-autoscaler/fake-node-reason": fake} if fake else {}
    return wire.ExternalGrpcNode(providerID=provider_id, name=name or provider_id, annotations=annotations)


def bounds(smallest: int | str, largest: int | str) -> dict[str, str]:
    return {names.AUTOSCALER_MIN_ANNOTATION: str(smallest), names.AUTOSCALER_MAX_ANNOTATION: str(largest)}


async def group(
    town: Town, replicas: int, annotations: Mapping[str, str], name: str = "workers", **config: Any
) -> None:
    labels = {"pool": name}
    spec = {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": {**FAST, **config}}}
    body = {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default", "annotations": dict(annotations)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    await town.client.create(MACHINE_DEPLOYMENT, body)


def deployment(name: str = "workers") -> Ref:
    return Ref(MACHINE_DEPLOYMENT, Key("default", name))


def replicas(town: Town, kind: Kind = MACHINE_DEPLOYMENT) -> int:
    (body,) = town.objects(kind)
    return int(body["spec"]["replicas"])


def live(town: Town) -> list[str]:
    """Names of Machines that are not being deleted."""
    return sorted(m["metadata"]["name"] for m in town.objects(MACHINE) if not m["metadata"].get("deletionTimestamp"))


def provider_id(town: Town, name: str) -> str:
    (found,) = (m for m in town.objects(MACHINE) if m["metadata"]["name"] == name)
    return str(found["spec"]["providerID"])


__all__ = ["GROUP", "MACHINE_SET", "Caller", "Serving", "serving"]
