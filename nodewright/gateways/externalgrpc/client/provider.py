"""Calls to a provider: each with its time, none repeated, every optional one allowed to be missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import grpc
import structlog
from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from api import limits, names
from controllers.autoscaler.external import ExternalGroup, Instance, InstanceState
from controllers.kernel.refs import Obj, annotations_of, labels_of, spec_of
from nodewright.gateways.externalgrpc.client import reading
from nodewright.gateways.externalgrpc.client.config import CloudConfig
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from providers.base.contract import Shape

_log = structlog.get_logger("nodewright.externalgrpc")
_SERVICE = wire.DESCRIPTOR.services_by_name["CloudProvider"]
_AT_ONCE = 16
_HOUR = 3600


class ProviderCallError(Exception):
    """A call that was refused, failed or was not answered in time. ``missing``: the provider does not have it."""

    def __init__(self, call: str, why: str, *, missing: bool = False) -> None:
        super().__init__(f"{call}: {why}")
        self.missing = missing


class ExternalProvider:
    """An async context manager. ``look`` is one Refresh with all that is asked after it."""

    def __init__(self, config: CloudConfig) -> None:
        self._config = config
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._owners: dict[tuple[str, str], str] = {}
        self._lacks: set[str] = set()
        options = [
            ("grpc.max_receive_message_length", limits.MAX_PROVIDER_MESSAGE),
            ("grpc.enable_retries", 0),
        ]
        credentials = config.credentials()
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(config.address, options=options)
        else:
            self._channel = grpc.aio.secure_channel(config.address, credentials, options=options)

    async def __aenter__(self) -> ExternalProvider:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def look(self, nodes: Sequence[Obj], *, defaults: wire.NodeGroupAutoscalingOptions) -> list[ExternalGroup]:
        """All groups as they are. Raises ProviderCallError: nothing may be decided then.

        A group whose size or instances can't be read is left out and logged: a guess would add Nodes twice.
        """
        self._owners.clear()
        self._lacks.clear()
        await self._call("Refresh")
        answer = await self._call("NodeGroups")
        try:
            bounds, bad = reading.group_ids(answer.nodeGroups)
        except reading.AnswerError as error:
            raise ProviderCallError("NodeGroups", str(error)) from error
        for name, why in bad.items():
            _log.warning("this node group is left out", group=name, why=why)
        found = await asyncio.gather(*(self._group(name, *bounds[name], defaults) for name in sorted(bounds)))
        groups = [group for group in found if group is not None]
        return await self._with_owned(groups, nodes)

    async def increase(self, group: str, delta: int) -> None:
        await self._call("NodeGroupIncreaseSize", id=group, delta=delta)

    async def decrease(self, group: str, delta: int) -> None:
        await self._call("NodeGroupDecreaseTargetSize", id=group, delta=-delta)

    async def delete(self, group: str, node: wire.ExternalGrpcNode) -> None:
        await self._call("NodeGroupDeleteNodes", id=group, nodes=[node])

    async def price(self, group: str, shape: Shape) -> float | None:
        """Price of a new Node of the group for an hour; None if the provider gives none."""
        if "PricingNodePrice" in self._lacks:
            return None
        node = wire.ExternalGrpcNode(
            name=f"template-node-for-{group}-0",
            labels=dict(shape.labels),
            annotations={names.NODE_GROUP_ANNOTATION: group},
        )
        span = {"startTimestamp": Timestamp(seconds=0), "endTimestamp": Timestamp(seconds=_HOUR)}
        try:
            return reading.price((await self._optional("PricingNodePrice", node=node, **span)).price)
        except ProviderCallError as error:
            if not error.missing:
                _log.warning("no price", group=group, error=str(error))
            return None

    async def _group(
        self, name: str, least: int, most: int, defaults: wire.NodeGroupAutoscalingOptions
    ) -> ExternalGroup | None:
        try:
            size = reading.size((await self._call("NodeGroupTargetSize", id=name)).targetSize)
            instances = reading.instances((await self._call("NodeGroupNodes", id=name)).instances)
        except (ProviderCallError, reading.AnswerError) as error:
            _log.warning("this node group is left out", group=name, why=str(error))
            return None
        template, problem = await self._template(name)
        return ExternalGroup(
            id=name,
            min_size=least,
            max_size=most,
            target=size,
            instances=instances,
            template=template,
            problem=problem,
            options=await self._options(name, defaults),
        )

    async def _template(self, group: str) -> tuple[Shape | None, str]:
        """None where it does not tell, with why. A Node of the group that is there tells as well."""
        try:
            answer = await self._optional("NodeGroupTemplateNodeInfo", id=group)
            return reading.template(answer.nodeBytes or answer.nodeInfo), ""
        except (ProviderCallError, reading.AnswerError) as error:
            return None, f"its provider does not tell what its Nodes would be like: {error}"

    async def _options(self, group: str, defaults: wire.NodeGroupAutoscalingOptions) -> Mapping[str, str]:
        if "NodeGroupGetOptions" in self._lacks:
            return {}
        try:
            return reading.options(await self._optional("NodeGroupGetOptions", id=group, defaults=defaults))
        except ProviderCallError as error:
            if not error.missing:
                _log.warning("the options of a node group can't be read", group=group, error=str(error))
            return {}

    async def _with_owned(self, groups: list[ExternalGroup], nodes: Iterable[Obj]) -> list[ExternalGroup]:
        """With Nodes that the provider calls members of a group without telling of their instances."""
        known = {instance.id for group in groups for instance in group.instances}
        asked = [node for node in nodes if spec_of(node).get("providerID") and spec_of(node)["providerID"] not in known]
        owners = await asyncio.gather(*map(self._owner, asked))
        more: dict[str, list[Instance]] = {}
        for node, owner in zip(asked, owners, strict=True):
            if owner:
                more.setdefault(owner, []).append(Instance(str(spec_of(node)["providerID"]), InstanceState.RUNNING))
        return [replace(group, instances=(*group.instances, *more.get(group.id, ()))) for group in groups]

    async def _owner(self, node: Obj) -> str:
        """Id of the Node's group; "" if it has none, or if that can't be found out now. Asked once in each look."""
        key = (node["metadata"]["name"], str(spec_of(node).get("providerID")))
        if key not in self._owners:
            try:
                answer = await self._call("NodeGroupForNode", node=wire_node(node))
                self._owners[key] = answer.nodeGroup.id
            except ProviderCallError as error:
                _log.warning("whose Node it is can't be found out", node=key[0], error=str(error))
                return ""
        return self._owners[key]

    async def _optional(self, name: str, **fields: Any) -> Any:
        """A provider that lacks pricing or options lacks them for all groups; a template it may lack for some."""
        try:
            return await self._call(name, **fields)
        except ProviderCallError as error:
            if error.missing and name != "NodeGroupTemplateNodeInfo":
                self._lacks.add(name)
            raise

    async def _call(self, name: str, **fields: Any) -> Any:
        method = _SERVICE.methods_by_name[name]
        request = message_factory.GetMessageClass(method.input_type)(**fields)
        answer = message_factory.GetMessageClass(method.output_type)
        call: Any = self._channel.unary_unary(
            f"/{_SERVICE.full_name}/{name}", lambda message: message.SerializeToString()
        )
        async with self._slots:
            try:
                # Decoded here: gRPC itself would give None for an answer that it can't decode.
                return answer.FromString(await call(request, timeout=self._config.timeout))
            except DecodeError as error:
                raise ProviderCallError(name, "the answer can't be decoded") from error
            except grpc.aio.AioRpcError as error:
                code = error.code()
                why = f"{code.name}: {reading.reported(error.details() or '')}"
                raise ProviderCallError(name, why, missing=code is grpc.StatusCode.UNIMPLEMENTED) from error


def wire_node(node: Obj) -> wire.ExternalGrpcNode:
    return wire.ExternalGrpcNode(
        providerID=str(spec_of(node).get("providerID") or ""),
        name=node["metadata"]["name"],
        labels={str(key): str(value) for key, value in labels_of(node).items()},
        annotations={str(key): str(value) for key, value in annotations_of(node).items()},
    )
