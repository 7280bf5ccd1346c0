"""The gRPC server around ``Reads`` and ``Changes``, with health and, on request, reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import grpc
import structlog
from google.protobuf import message_factory
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from nodewright.gateways.externalgrpc.changes import Changes, audit
from nodewright.gateways.externalgrpc.reads import CallError, Reads
from nodewright.gateways.externalgrpc.tls import ServerTls
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.externalgrpc")

SERVICE = wire.DESCRIPTOR.services_by_name["CloudProvider"]
_NAMES_OF_CALLERS = ("x509_common_name", "x509_subject_alternative_name")
_HOUR_MS = 3_600_000
_GRACE = 5.0
_Context = grpc.aio.ServicerContext[Any, Any]
_Handler = Callable[[Any, _Context], Awaitable[Message | bytes]]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """``port`` 0 takes any free one. ``tls`` None: plaintext. ``deadline``: seconds for a call that changes something,
    if its caller gives no fewer. ``at_once``: calls under way; further ones are refused.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: ServerTls | None = None
    reflection: bool = False
    deadline: float = 10.0
    at_once: int = 256
    most_bytes: int = 4 * 1024 * 1024


class GrpcServer:
    """An async context manager; see ``address``."""

    def __init__(self, options: ServerOptions, reads: Reads, changes: Changes) -> None:
        self._options = options
        self._reads = reads
        self._changes = changes
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            maximum_concurrent_rpcs=options.at_once,
            options=[
                ("grpc.max_receive_message_length", options.most_bytes),
                ("grpc.max_send_message_length", options.most_bytes),
                ("grpc.max_concurrent_streams", options.at_once),
                ("grpc.max_connection_age_ms", _HOUR_MS),  # so that a certificate is looked at again
                ("grpc.so_reuseport", 0),  # a second server on the port fails at once
            ],
        )
        self.address = ""

    async def __aenter__(self) -> GrpcServer:
        """Raises OSError if the port can't be had."""
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE.full_name, self._handlers()),)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if self._options.reflection:
            names = (SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        port = self._bind(f"{host}:{self._options.port}")
        await self._server.start()
        self.address = f"{host}:{port}"
        await self._say(health_pb2.HealthCheckResponse.SERVING)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Calls that are under way are finished, within bounds."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(_GRACE)

    def _bind(self, where: str) -> int:
        try:
            if self._options.tls is None:
                return self._server.add_insecure_port(where)
            return self._server.add_secure_port(where, self._options.tls.credentials)
        except RuntimeError as error:
            raise OSError(f"can't listen on {where}") from error

    async def _say(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        for name in ("", SERVICE.full_name):
            await self._health.set(name, status)

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Handlers of all methods that the .proto file declares; a missing one fails here, at the start."""
        handlers = {}
        for method in SERVICE.methods:
            change = getattr(self._changes, method.name, None)
            act = (
                self._changing(method.name, change)
                if change
                else _reading(method.name, getattr(self._reads, method.name))
            )
            parse = _parser(message_factory.GetMessageClass(method.input_type))
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(act, parse, _content)
        return handlers

    def _changing(self, name: str, act: Callable[[Any], Awaitable[Message]]) -> _Handler:
        seconds = metrics.of(metrics.GRPC_SECONDS, name)

        async def handle(request: Any, context: _Context) -> Message:
            started = asyncio.get_running_loop().time()
            outcome, why = grpc.StatusCode.OK, ""
            try:
                if request is None:
                    raise _unreadable()
                async with asyncio.timeout(self._within(context)):
                    return await act(request)
            except CallError as error:
                outcome, why = error.code, error.why
            except TimeoutError:
                outcome, why = grpc.StatusCode.DEADLINE_EXCEEDED, "not done in time"
            except asyncio.CancelledError:
                outcome, why = grpc.StatusCode.CANCELLED, "the caller left"
                raise
            except Exception as error:
                _log.exception("a call failed", call=name)
                outcome, why = grpc.StatusCode.INTERNAL, type(error).__name__
            finally:
                metrics.of(metrics.GRPC_CALLS, name, outcome.name).inc()
                seconds.observe(asyncio.get_running_loop().time() - started)
                audit(name, request, _caller(context), outcome.name, why)
            await context.abort(outcome, why)
            raise AssertionError("abort has raised")

        return handle

    def _within(self, context: _Context) -> float:
        """Seconds: the caller's own limit, if it is shorter than ours."""
        remaining = context.time_remaining()
        return self._options.deadline if remaining is None else min(remaining, self._options.deadline)


def _reading(name: str, act: Callable[[Any], Message | bytes]) -> _Handler:
    seconds, fine = metrics.of(metrics.GRPC_SECONDS, name), metrics.of(metrics.GRPC_CALLS, name, "OK")
    time = asyncio.get_running_loop().time

    async def handle(request: Any, context: _Context) -> Message | bytes:
        started = time()
        try:
            if request is None:
                raise _unreadable()
            answer = act(request)
        except CallError as error:
            outcome, why = error.code, error.why
        except Exception as error:
            _log.exception("a call failed", call=name)
            outcome, why = grpc.StatusCode.INTERNAL, type(error).__name__
        else:
            fine.inc()
            seconds.observe(time() - started)
            return answer
        metrics.of(metrics.GRPC_CALLS, name, outcome.name).inc()
        await context.abort(outcome, why)
        raise AssertionError("abort has raised")

    return handle


def _parser(message: type[Message]) -> Callable[[bytes], Message | None]:
    def parse(content: bytes) -> Message | None:
        """None: not readable, which the call is to say; gRPC itself would call it a fault of ours."""
        try:
            return message.FromString(content)
        except DecodeError:
            return None

    return parse


def _content(answer: Message | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def _unreadable() -> CallError:
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, "the request can't be read")


def _caller(context: _Context) -> Sequence[str]:
    """Names in the caller's certificate, and where it called from."""
    found = context.auth_context()
    names = [name.decode("utf-8", "replace") for key in _NAMES_OF_CALLERS for name in found.get(key, ())]
    return (*dict.fromkeys(names), context.peer())
