"""The calls that change nothing, answered from memory and without waiting."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import grpc
import structlog
from google.protobuf.message import DecodeError

from api import names
from controllers.autoscaler import templates
from controllers.autoscaler.prices import PriceTable
from controllers.kernel.refs import Obj, annotations_of
from controllers.kernel.view import ShapeUnknown
from controllers.scaling.node_group import NodeGroup
from controllers.scheduling.demand import ShapeError
from nodewright.gateways.externalgrpc import group_options, translate
from nodewright.gateways.externalgrpc.fleet import AmbiguousError, Fleet
from nodewright.gateways.externalgrpc.prices import requests_of
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.gateways.externalgrpc.wire import core_pb2 as core
from providers.base.contract import Shape

NOBODYS = wire.NodeGroupForNodeResponse(nodeGroup=wire.NodeGroup()).SerializeToString()
_Code = grpc.StatusCode
_log = structlog.get_logger("nodewright.externalgrpc")
_TELL_SHAPES = (names.CAPACITY_PREFIX, names.KUBELET_CONFIG_PREFIX)


class CallError(Exception):
    """Ends a call with a status."""

    def __init__(self, code: grpc.StatusCode, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """``group_options``: answer NodeGroupGetOptions. ``prices`` None: no prices are given."""

    gpu_label: str = "cluster-api/accelerator"
    group_options: bool = False
    prices: PriceTable | None = None


class Reads:
    """One method a call, named as on the wire. Each takes the request and returns the answer, or raises CallError."""

    def __init__(self, fleet: Fleet, options: ReadOptions) -> None:
        self._fleet = fleet
        self._options = options
        self._answers: dict[str, bytes] = {}
        self._version = -1
        self._never_shrink: set[str] = set()

    def Refresh(self, _: wire.RefreshRequest) -> wire.RefreshResponse:
        """The autoscaler's loop begins. On a world that is not completely read it must not."""
        if unread := self._fleet.unread():
            raise CallError(_Code.UNAVAILABLE, f"not read, or not current: {unread}")
        self._answers.clear()
        return wire.RefreshResponse()

    def Cleanup(self, _: wire.CleanupRequest) -> wire.CleanupResponse:
        """Nothing is kept for a caller."""
        return wire.CleanupResponse()

    def NodeGroups(self, _: wire.NodeGroupsRequest) -> wire.NodeGroupsResponse:
        return wire.NodeGroupsResponse(nodeGroups=map(self._message, self._fleet.groups().values()))

    def NodeGroupForNode(self, request: wire.NodeGroupForNodeRequest) -> bytes:
        """By providerID alone. Asked for every Node in every loop, so answers are kept until the next one."""
        provider_id = request.node.providerID
        if not provider_id:
            return NOBODYS
        try:
            group = self._fleet.group_of(provider_id)
        except AmbiguousError as error:
            raise CallError(_Code.FAILED_PRECONDITION, str(error)) from error
        if group is None:
            return NOBODYS
        if self._version != self._fleet.version:
            self._answers.clear()
            self._version = self._fleet.version
        answer = self._answers.get(group.id)
        if answer is None:
            answer = wire.NodeGroupForNodeResponse(nodeGroup=self._message(group)).SerializeToString()
            self._answers[group.id] = answer
        return answer

    def NodeGroupTargetSize(self, request: wire.NodeGroupTargetSizeRequest) -> wire.NodeGroupTargetSizeResponse:
        return wire.NodeGroupTargetSizeResponse(targetSize=self._fleet.replicas(self._group(request.id)))

    def NodeGroupNodes(self, request: wire.NodeGroupNodesRequest) -> wire.NodeGroupNodesResponse:
        facts = self._fleet.facts(self._group(request.id).id)
        return wire.NodeGroupNodesResponse() if facts is None else translate.instances(facts.machines, facts.leaving)

    def NodeGroupTemplateNodeInfo(
        self, request: wire.NodeGroupTemplateNodeInfoRequest
    ) -> wire.NodeGroupTemplateNodeInfoResponse:
        """Never an empty Node: clients of some releases die of it."""
        group = self._group(request.id)
        body = self._body(group)
        read = self._fleet.shape(body)
        shape = read if isinstance(read, Shape) else None
        try:
            node = templates.from_nothing(body, group.id, shape=shape)
            return translate.template(node, templates.capacity_of(body, shape), group.id)
        except ShapeError as error:
            if isinstance(read, ShapeUnknown) and read.asked:
                raise CallError(_Code.UNAVAILABLE, f"{read.why}; without that, {error}") from error
            has_hints = any(key.startswith(_TELL_SHAPES) for key in annotations_of(body))
            why = f"{error} ({read.why})" if isinstance(read, ShapeUnknown) else str(error)
            raise CallError(_Code.FAILED_PRECONDITION if has_hints else _Code.UNIMPLEMENTED, why) from error

    def NodeGroupGetOptions(
        self, request: wire.NodeGroupAutoscalingOptionsRequest
    ) -> wire.NodeGroupAutoscalingOptionsResponse:
        if not self._options.group_options:
            raise CallError(_Code.UNIMPLEMENTED, "options of single groups are off (--node-group-options)")
        annotations = annotations_of(self._body(self._group(request.id)))
        answer = group_options.answer(annotations, request.defaults)
        self._warn_of_zero_or_max(request.id, answer is not None and answer.zeroOrMaxNodeScaling)
        return wire.NodeGroupAutoscalingOptionsResponse(nodeGroupAutoscalingOptions=answer)

    def GPULabel(self, _: wire.GPULabelRequest) -> wire.GPULabelResponse:
        return wire.GPULabelResponse(label=self._options.gpu_label)

    def GetAvailableGPUTypes(self, _: wire.GetAvailableGPUTypesRequest) -> wire.GetAvailableGPUTypesResponse:
        shapes = []
        for group in self._fleet.groups().values():
            try:
                body = self._body(group)
                read = self._fleet.shape(body)
                shape = read if isinstance(read, Shape) else None
                shapes.append(templates.from_nothing(body, group.id, shape=shape).labels)
            except (ShapeError, CallError):
                continue  # asked for its template, the group says what is missing
        return translate.gpu_types(shapes, self._options.gpu_label)

    def PricingNodePrice(self, request: wire.PricingNodePriceRequest) -> wire.PricingNodePriceResponse:
        table = self._prices()
        span = _span(request)
        group = self._priced_group(request.node)
        price = table.node(group, request.node.labels, span)
        if price is None:
            belongs = f" of {group}" if group else ", which belongs to no node group"
            why = f"the price table has no price of Node {request.node.name!r}{belongs}: add its group or instance type"
            raise CallError(_Code.NOT_FOUND, why)
        return wire.PricingNodePriceResponse(price=price)

    def PricingPodPrice(self, request: wire.PricingPodPriceRequest) -> wire.PricingPodPriceResponse:
        table = self._prices()
        span = _span(request)
        try:
            pod = core.Pod.FromString(request.pod_bytes or request.pod)
            return wire.PricingPodPriceResponse(price=table.pod(requests_of(pod), span))
        except (DecodeError, ValueError, ArithmeticError) as error:
            raise CallError(_Code.INVALID_ARGUMENT, f"no pod: {error}") from error

    def _warn_of_zero_or_max(self, group_id: str, wanted: bool) -> None:
        """Once for each group, until it asks for something else."""
        if not wanted:
            self._never_shrink.discard(group_id)
        elif group_id not in self._never_shrink:
            self._never_shrink.add(group_id)
            _log.warning(
                "this group grows and never shrinks: the Cluster Autoscaler removes no Nodes of a group with "
                "zeroormaxnodescaling over externalgrpc; scale it down yourself, or leave the annotation out",
                group=group_id,
            )

    def _priced_group(self, node: wire.ExternalGrpcNode) -> str:
        """Id of the node group that a real Node belongs to or a template Node stands for; "" if it is none's."""
        try:
            found = self._fleet.group_of(node.providerID) if node.providerID else None
        except AmbiguousError as error:
            raise CallError(_Code.FAILED_PRECONDITION, str(error)) from error
        if found is not None:
            return found.id
        groups = self._fleet.groups()
        return next((name for name in translate.candidate_groups(node) if name in groups), "")

    def _message(self, group: NodeGroup) -> wire.NodeGroup:
        return translate.node_group(group, self._fleet.replicas(group), self._fleet.is_rolling(group))

    def _group(self, id_: str) -> NodeGroup:
        group = self._fleet.groups().get(id_)
        if group is None:
            raise CallError(_Code.NOT_FOUND, f"there is no node group {id_!r}")
        return group

    def _body(self, group: NodeGroup) -> Obj:
        body = self._fleet.body(group)
        if body is None:
            raise CallError(_Code.NOT_FOUND, f"there is no node group {group.id!r}")
        return body

    def _prices(self) -> PriceTable:
        if self._options.prices is None:
            raise CallError(_Code.UNIMPLEMENTED, "there is no price table (--price-table)")
        return self._options.prices


def _span(request: wire.PricingNodePriceRequest | wire.PricingPodPriceRequest) -> timedelta:
    """Of either generation. Raises CallError."""
    try:
        if request.HasField("startTimestamp"):
            ends = request.startTimestamp.ToDatetime(UTC), request.endTimestamp.ToDatetime(UTC)
        else:
            ends = _moment(request.startTime), _moment(request.endTime)
    except (ValueError, OverflowError, OSError) as error:
        raise CallError(_Code.INVALID_ARGUMENT, f"startTimestamp, endTimestamp: {error}") from error
    if ends[1] < ends[0]:
        raise CallError(_Code.INVALID_ARGUMENT, "endTimestamp: before the start")
    return ends[1] - ends[0]


def _moment(found: wire.MetaTime) -> datetime:
    return datetime.fromtimestamp(found.seconds, UTC) + timedelta(microseconds=found.nanos / 1000)
