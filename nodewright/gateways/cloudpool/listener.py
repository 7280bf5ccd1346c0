"""What both gateways do with every request: who may ask, how much, how errors look, and what is written down of it."""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import structlog
from aiohttp import web

from controllers.cloudpool.messages import MessageError, error_message, is_whole
from nodewright.gateways.admission.certificate import ServedCertificate
from nodewright.gateways.callers import READING_METHODS, HostRule, refusal
from nodewright.gateways.cloudpool import basic_auth
from nodewright.gateways.cloudpool.operations import OperationError
from nodewright.gateways.cloudpool.targets import Target, TargetError, normal_form
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.patience import PatientRunner

_log = structlog.get_logger("nodewright.cloudpool")
_audit = structlog.get_logger("nodewright.cloudpool.audit")

MOST_BYTES = 1024 * 1024
"""Bytes of a request that is read here; what is passed on is not measured."""
MOST_IN_FLIGHT = 400
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ROUTE: web.RequestKey[str] = web.RequestKey("route", str)
TARGET: web.RequestKey[Target] = web.RequestKey("target", Target)
"""The normal form of what was asked for; handlers decide on nothing else."""
_SHOWN_KEYS = frozenset(
    {"machineid", "desiredsize", "decrementdesiredsize", "servicestate", "membershipstatus", "active", "evictable"}
)
_SHOWN, _SHOWN_TEXT = 8, 100
_HIDDEN = "(hidden)"


class ListenerError(Exception):
    """Files that can't be used."""


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """``port`` 0 takes any free one. ``users`` None: anybody may ask. ``read_timeout``: seconds for a body."""

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: ServedCertificate | None = None
    client_ca: Path | None = None
    users: Mapping[str, str] | None = field(default=None, repr=False)
    read_timeout: float = 60.0
    in_flight: int = MOST_IN_FLIGHT
    allowed_hosts: frozenset[str] = frozenset()
    """Names, besides localhost and addresses, by which clients without a login may call it."""
    header_timeout: float = 10.0
    """Seconds for the head of a request, from its first byte on; of the first one from the connection's start on."""

    @property
    def hosts(self) -> HostRule:
        names = {*self.allowed_hosts, self.host}
        proves = self.users is not None or self.client_ca is not None
        return HostRule(frozenset(name.lower() for name in names), any_name=proves)

    def ssl_context(self) -> ssl.SSLContext | None:
        """Raises DoorError."""
        if self.certificate is None:
            return None
        context = self.certificate.context
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except (OSError, ssl.SSLError) as error:
                raise ListenerError(f"{self.client_ca}: {error}") from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def read_users(path: Path) -> dict[str, str]:
    """Lines ``user:password``. Raises DoorError naming the line, and nothing of what it says."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ListenerError(f"{path}: {error}") from error
    users = {}
    for number, line in enumerate(lines, 1):
        user, colon, password = line.strip().partition(":")
        if line.strip() and not line.startswith("#"):
            if not (user and colon and password):
                raise ListenerError(f"{path}: line {number} is not user:password")
            users[user] = password
    if not users:
        raise ListenerError(f"{path}: no user is in it")
    return users


def error_response(status: int, message: str, detail: str = "") -> web.Response:
    # A text that quotes the request, its path for one, may hold what is no UTF-8.
    message, detail = (text.encode("utf-8", "replace").decode() for text in (message, detail))
    body = orjson.dumps(error_message(message, detail), option=orjson.OPT_INDENT_2)
    headers = {"WWW-Authenticate": 'Basic realm="cloudpool"'} if status == 401 else None
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


class RequestGuard:
    """The one middleware. ``what``: the name of the gateway in the log."""

    def __init__(self, listener: ListenerOptions, what: str) -> None:
        self._options = listener
        self._what = what
        self._hosts = listener.hosts
        self._in_flight = 0

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started = asyncio.get_running_loop().time()
        response = await self._answered(request, handler)
        route = request.get(ROUTE, "other")
        metrics.of(metrics.CLOUDPOOL_REQUESTS, route, str(response.status)).inc()
        metrics.of(metrics.CLOUDPOOL_SECONDS, route).observe(asyncio.get_running_loop().time() - started)
        if request.method not in READING_METHODS:
            self._write_down(request, response.status, asyncio.get_running_loop().time() - started)
        return response

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = refusal(request.method, request.headers.getall("Host", []), request.headers, self._hosts)
        if refused is not None:
            return error_response(refused.status, refused.why)
        try:
            request[TARGET] = normal_form(request.raw_path)
        except TargetError as error:
            return error_response(400, "the request target is not understood", str(error))
        if not self._is_allowed(request):
            return error_response(401, "authentication is required")
        if self._in_flight >= self._options.in_flight:
            return error_response(503, f"{self._in_flight} requests are under way already")
        self._in_flight += 1
        request[GUARD] = self
        try:
            return await handler(request)
        except MessageError as error:
            return error_response(400, error.message, error.detail)
        except OperationError as error:
            return error_response(error.status, error.message, error.detail)
        except web.HTTPException as error:
            return error_response(error.status, f"{request.method} {request.path}: {error.reason}")
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("a request failed unexpectedly", path=request.path)
            return error_response(
                500, f"internal error on {request.method} {request.path}", f"{type(error).__name__}: {error}"
            )
        finally:
            self._in_flight -= 1

    @contextmanager
    def without_place(self) -> Iterator[None]:
        """While the request waits for its client it does not count as one in flight: it costs next to nothing."""
        self._in_flight -= 1
        try:
            yield
        finally:
            self._in_flight += 1

    def _is_allowed(self, request: web.Request) -> bool:
        if self._options.users is None:
            return True
        login = basic_auth.decode(request.headers.get("Authorization", ""))
        if login is None:
            return False
        known = self._options.users.get(login[0])
        return hmac.compare_digest((known or "").encode(), login[1].encode()) and known is not None

    def _write_down(self, request: web.Request, status: int, seconds: float) -> None:
        audited = request.get(AUDITED, "")
        _audit.info(
            "changed" if status < 400 else "refused",
            gateway=self._what,
            method=request.method,
            path=request[TARGET].path if TARGET in request else "(not understood)",
            body=audited,
            client=request.remote or "",
            user=_user_of(request),
            status=status,
            seconds=round(seconds, 3),
        )


AUDITED: web.RequestKey[str] = web.RequestKey("audited", str)
"""What a request that was read here asked for, for the audit log."""


GUARD: web.RequestKey[RequestGuard] = web.RequestKey("keeper", RequestGuard)
"""It counts the request as one in flight."""


async def read_body(request: web.Request, listener: ListenerOptions) -> bytes:
    """Raises OperationError if it is too large or too slow. Bodies that don't arrive keep no other request out."""
    guard = request.get(GUARD)
    try:
        with guard.without_place() if guard is not None else nullcontext():
            async with asyncio.timeout(listener.read_timeout):
                body = await request.read()
    except TimeoutError:
        raise OperationError(408, f"the request was not read within {listener.read_timeout:g} s") from None
    request[AUDITED] = _auditable(body)
    return body


def _auditable(body: bytes) -> str:
    """What of a body the audit log may hold: known fields without secrets, at a bounded length."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return f"({len(body)} bytes, not JSON)"
    if not isinstance(fields, dict):
        return f"({len(body)} bytes, no object)"
    return json.dumps(_shown(fields))


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    known = [(key, value) for key, value in fields.items() if key.lower() in _SHOWN_KEYS][:_SHOWN]
    found = {key: _shown_value(key, value) for key, value in known}
    left_out = len(fields) - len(known)
    return {**found, _HIDDEN: left_out} if left_out else found


def _shown_value(key: str, value: Any) -> Any:
    if key.lower() == "membershipstatus" and isinstance(value, dict):
        return {name: each for name, each in _shown(value).items() if isinstance(each, bool | int)}
    if isinstance(value, str):
        return value[:_SHOWN_TEXT]
    return value if value is None or is_whole(value) or isinstance(value, bool) else _HIDDEN


def _user_of(request: web.Request) -> str:
    """By certificate, else by name."""
    peer = request.get_extra_info("peercert") or {}
    named = [value for part in peer.get("subject", ()) for key, value in part if key == "commonName"]
    if named:
        return str(named[0])
    login = basic_auth.decode(request.headers.get("Authorization", ""))
    return login[0] if login is not None else ""


async def open_listener(app: web.Application, listener: ListenerOptions, stack: AsyncExitStack) -> str:
    """Listen until the stack ends; answers the URL. Raises OSError and DoorError."""
    context = listener.ssl_context()
    runner = PatientRunner(
        app,
        head_seconds=listener.header_timeout,
        shutdown_timeout=5.0,
        auto_decompress=False,
    )
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, listener.host, listener.port, ssl_context=context).start()
    if listener.certificate is not None:
        following = asyncio.create_task(listener.certificate.follow(), name="certificate")
        stack.callback(following.cancel)
    host, port = runner.addresses[0][:2]
    return f"{'https' if context else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
