"""The three calls that change the size of a group. Each is logged with who asked and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import grpc
import structlog

from controllers.externalgrpc import decide
from controllers.externalgrpc.decide import Asked, Decision, GroupFacts
from nodewright.gateways.externalgrpc.fleet import AmbiguousError, Fleet
from nodewright.gateways.externalgrpc.reads import CallError
from nodewright.gateways.externalgrpc.removals import Removals
from nodewright.gateways.externalgrpc.scaler import RefusedError, Scaler, UnavailableError
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire

_log = structlog.get_logger("nodewright.externalgrpc")
_MOST_NAMED = 5
"""Nodes of a request that the log names."""


class Changes:
    """One method a call, named as on the wire."""

    def __init__(self, fleet: Fleet, scaler: Scaler) -> None:
        self._fleet = fleet
        self._scaler = scaler
        self._removals = Removals(scaler, fleet)

    async def close(self) -> None:
        """When no more calls come."""
        await self._removals.close()

    async def NodeGroupIncreaseSize(
        self, request: wire.NodeGroupIncreaseSizeRequest
    ) -> wire.NodeGroupIncreaseSizeResponse:
        await self._change(request.id, lambda facts: decide.increase(facts, request.delta))
        return wire.NodeGroupIncreaseSizeResponse()

    async def NodeGroupDecreaseTargetSize(
        self, request: wire.NodeGroupDecreaseTargetSizeRequest
    ) -> wire.NodeGroupDecreaseTargetSizeResponse:
        await self._change(request.id, lambda facts: decide.decrease(facts, request.delta))
        return wire.NodeGroupDecreaseTargetSizeResponse()

    async def NodeGroupDeleteNodes(
        self, request: wire.NodeGroupDeleteNodesRequest
    ) -> wire.NodeGroupDeleteNodesResponse:
        with _as_statuses():
            await self._removals.remove(request.id, lambda: self._asked(request.nodes))
        return wire.NodeGroupDeleteNodesResponse()

    def _asked(self, nodes: Sequence[wire.ExternalGrpcNode]) -> list[Asked]:
        return [self._fleet.asked(node.providerID or node.name, node.annotations) for node in nodes]

    async def _change(self, group: str, judge: Callable[[GroupFacts], Decision]) -> None:
        with _as_statuses():
            await self._scaler.change(group, judge)


@contextmanager
def _as_statuses() -> Iterator[None]:
    """Raises CallError for what the scaling raises."""
    try:
        yield
    except RefusedError as error:
        raise CallError(grpc.StatusCode[error.refusal.code], error.refusal.why) from error
    except AmbiguousError as error:
        raise CallError(grpc.StatusCode.FAILED_PRECONDITION, str(error)) from error
    except UnavailableError as error:
        raise CallError(grpc.StatusCode.UNAVAILABLE, str(error)) from error


def audit(name: str, request: object, caller: Sequence[str], outcome: str, why: str) -> None:
    """One line for each call that may change something."""
    fields: dict[str, object] = {"group": getattr(request, "id", "")}
    if isinstance(request, wire.NodeGroupDeleteNodesRequest):
        ids = [node.providerID or node.name for node in request.nodes[:_MOST_NAMED]]
        fields |= {"nodes": ids, "count": len(request.nodes)}
    else:
        fields["delta"] = getattr(request, "delta", 0)
    log = _log.info if outcome == grpc.StatusCode.OK.name else _log.warning
    log("size change", call=name, caller=list(caller), result=outcome, why=why, **fields)
