"""The HTTP side of the web view: login, the page, its JSON, and one stream of changes for each browser."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import orjson
import structlog
from aiohttp import web

from nodewright.gateways.callers import HostRule, refusal
from nodewright.gateways.cloudpool.listener import ListenerOptions
from nodewright.gateways.web import assets
from nodewright.gateways.web.access import Access, LoginError, Opener, Viewer
from nodewright.gateways.web.answers import ANSWERS, AskError
from nodewright.gateways.web.source import Source
from nodewright.runtime.kube.errors import KubeError
from nodewright.runtime.telemetry.patience import PatientRunner

_log = structlog.get_logger("nodewright.web")
COOKIE = "nodewright-view"
MOST_BYTES = 1024 * 1024
"""Of a request's body: manifests for a plan."""
HEARTBEAT = 15.0
"""Seconds after which a stream without news says that it is there."""
_VIEWER: web.RequestKey[Viewer] = web.RequestKey("viewer", Viewer)
Answer = Callable[[Source, Mapping[str, str]], Awaitable[Any]]
Question = Callable[[Source, Mapping[str, Any]], Awaitable[Any]]
"""Answers what a page asks with the object of its request. Nothing is written. Raises AskError."""


@dataclass(frozen=True, slots=True)
class WebOptions:
    """``one_time``: the token of the address that is printed; None: viewers log in with tokens of the cluster.

    ``more``: answers that need what a gateway may not import, by name. ``questions``: what is asked by
    POST, by name: ``plan``, ``whatif``.
    """

    listener: ListenerOptions
    one_time: str | None = field(default=None, repr=False)
    server: str = ""
    most_viewers: int = 20
    more: Mapping[str, Answer] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)


class WebServer:
    """An async context manager; ``url`` is known inside."""

    def __init__(self, opener: Opener, options: WebOptions) -> None:
        self._options = options
        self._access = Access(opener, options.one_time, options.most_viewers)
        self._assets = assets.load()
        self._answers: dict[str, Answer] = {**ANSWERS, **options.more}
        names = {*options.listener.allowed_hosts, options.listener.host}
        self._hosts = HostRule(frozenset(name.lower() for name in names))
        self._streams: set[asyncio.Task[Any]] = set()
        self._following: asyncio.Task[None] | None = None
        self.url = ""

    async def __aenter__(self) -> WebServer:
        app = web.Application(middlewares=[self._guard], client_max_size=MOST_BYTES)
        app.router.add_get("/", self._page)
        app.router.add_get("/static/{name}", self._asset)
        app.router.add_post("/login", self._login)
        app.router.add_post("/logout", self._logout)
        app.router.add_get("/api/session", self._session)
        app.router.add_get("/api/events", self._events)
        app.router.add_post("/api/{name}", self._question)
        app.router.add_get("/api/{name}", self._answer)
        listener = self._options.listener
        self._runner = PatientRunner(app, head_seconds=listener.header_timeout, shutdown_timeout=1.0)
        await self._runner.setup()
        tls = listener.ssl_context()
        site = web.TCPSite(self._runner, listener.host, listener.port, ssl_context=tls)
        await site.start()
        if listener.certificate is not None:
            self._following = asyncio.create_task(listener.certificate.follow(), name="certificate")
        port = self._runner.addresses[0][1]
        host = f"[{listener.host}]" if ":" in listener.host else listener.host
        self.url = f"{'https' if tls else 'http'}://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._following is not None:
            self._following.cancel()
        for stream in self._streams:
            stream.cancel()
        await self._runner.cleanup()
        await self._access.close()

    async def read_ahead(self) -> None:
        """Begin to read before the first viewer is there. What the cluster refuses is said at the login."""
        with contextlib.suppress(KubeError):
            await self._access.read_ahead()

    @property
    def link(self) -> str:
        """The address for the first viewer: what stands behind ``#`` is sent to no server by itself."""
        return f"{self.url}/#token={self._options.one_time}" if self._options.one_time else self.url

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        refused = refusal(request.method, request.headers.getall("Host", []), request.headers, self._hosts)
        response: web.StreamResponse
        if refused is not None:
            response = _error(refused.status, refused.why)
        elif request.path.startswith("/api/") and not self._known(request):
            response = _error(401, "log in first")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = _error(error.status, error.reason)
        if not response.prepared:
            response.headers.update(assets.HEADERS)
        return response

    def _known(self, request: web.Request) -> bool:
        viewer = self._access.viewer(request.cookies.get(COOKIE, ""))
        if viewer is not None:
            request[_VIEWER] = viewer
        return viewer is not None

    async def _page(self, request: web.Request) -> web.Response:
        asset = self._assets["index.html"]
        return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8")

    async def _asset(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info["name"])
        if asset is None:
            return _error(404, "there is no such file")
        return web.Response(body=asset.body, content_type=asset.content_type, charset="utf-8")

    async def _login(self, request: web.Request) -> web.Response:
        body = _object(await request.read())
        token, namespace = body.get("token"), body.get("namespace") or ""
        try:
            if not isinstance(token, str) or not isinstance(namespace, str):
                raise LoginError("token and namespace are texts")
            name = await self._access.login(token.strip(), namespace.strip())
        except LoginError as error:
            return _error(403, str(error))
        except KubeError as error:
            return _error(403, f"the cluster does not let you in: {error}")
        response = _json({})
        secure = self._options.listener.certificate is not None
        response.set_cookie(COOKIE, name, httponly=True, samesite="Strict", secure=secure, path="/")
        return response

    async def _logout(self, request: web.Request) -> web.Response:
        await self._access.logout(request.cookies.get(COOKIE, ""))
        response = _json({})
        response.del_cookie(COOKIE, path="/")
        return response

    async def _session(self, request: web.Request) -> web.Response:
        source = request[_VIEWER].source
        views = sorted({*self._answers, *self._options.questions})
        return _json({
            "server": self._options.server, "namespace": source.namespace, "views": views,
            "ownTokens": self._access.own_tokens,
        })  # fmt: skip

    async def _answer(self, request: web.Request) -> web.Response:
        answer = self._answers.get(request.match_info["name"])
        if answer is None:
            return _error(404, "there is no such view")
        return await self._asked(answer(request[_VIEWER].source, request.query))

    async def _question(self, request: web.Request) -> web.Response:
        question = self._options.questions.get(request.match_info["name"])
        if question is None:
            return _error(404, "this is not asked here")
        return await self._asked(question(request[_VIEWER].source, _object(await request.read())))

    async def _asked(self, answer: Awaitable[Any]) -> web.Response:
        try:
            return _json(await answer)
        except AskError as error:
            return _error(error.status, str(error))
        except KubeError as error:
            return _error(502, f"the cluster says: {error}")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: ``fleet`` with each change, ``problems`` when they differ, ``changed`` with the kinds."""
        viewer, task = request[_VIEWER], asyncio.current_task()
        response = web.StreamResponse(headers={**assets.HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        assert task is not None
        self._streams.add(task)
        viewer.looking += 1
        try:
            await _tell(viewer.source, response)
        except ConnectionError:
            pass  # the browser went away
        finally:
            viewer.looking -= 1
            self._streams.discard(task)
        return response


async def _tell(source: Source, response: web.StreamResponse) -> None:
    version, problems = 0, None
    await response.write(_event("fleet", source.fleet()) + _event("problems", source.problems))
    while True:
        newer, kinds = await source.changes(version, HEARTBEAT)
        if newer == version:
            await response.write(b": still here\n\n")
            continue
        version = newer
        text = _event("fleet", source.fleet())
        if source.problems is not problems:
            problems = source.problems
            text += _event("problems", problems)
        await response.write(text + _event("changed", {"kinds": kinds}))
        await source.gather(0.15)


def _event(name: str, value: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise web.HTTPBadRequest(reason="the body is no JSON") from error
    if not isinstance(found, dict):
        raise web.HTTPBadRequest(reason="the body is no JSON object")
    return found


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json")


def _error(status: int, why: str) -> web.Response:
    return _json({"error": why.encode("utf-8", "replace").decode()}, status)
