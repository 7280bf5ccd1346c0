"""A tiny API server for faults that a sound one does not have: every answer is scripted by the test.

It keeps objects of one kind with resourceVersions and a log of changes, serves list (paged) and watch, and before each
request asks the script what to do instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def status(code: int, reason: str, **details: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"scripted {reason}",
        "details": details,
    }


def answers(code: int, reason: str, headers: dict[str, str] | None = None, **details: Any) -> Answer:
    """Refuse with a Status."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        body = orjson.dumps(status(code, reason, **details))
        return web.Response(status=code, body=body, content_type="application/json", headers=headers)

    return answer


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def text(code: int, body: str) -> Answer:
    """Not a Status: what a proxy in between says."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body)

    return answer


@dataclass
class StubServer:
    """``script`` is taken from the front, one entry a request; None serves that request normally."""

    script: list[Answer | None] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    version: int = 100
    compacted: int = 0
    url: str = ""
    snapshots: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    streams: set[asyncio.Queue[bytes | None]] = field(default_factory=set)

    def put(self, name: str, **spec: Any) -> dict[str, Any]:
        """Create or change an object."""
        self.version += 1
        known = name in self.objects
        uid = self.objects[name]["metadata"]["uid"] if known else f"uid-{name}-{self.version}"
        meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(self.version)}
        self._change("MODIFIED" if known else "ADDED", {"metadata": meta, "spec": spec})
        return self.objects[name]

    def remove(self, name: str) -> None:
        self.version += 1
        gone = self.objects[name]
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._change("DELETED", gone)

    def _change(self, type_: str, obj: dict[str, Any]) -> None:
        name = obj["metadata"]["name"]
        if type_ == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = obj
        self.log.append((self.version, type_, obj))
        self.say({"type": type_, "object": obj})

    def say(self, event: dict[str, Any]) -> None:
        """Write an event to every watch that runs."""
        self.write(orjson.dumps(event) + b"\n")

    def write(self, data: bytes | None) -> None:
        """Raw bytes to every watch; None ends them."""
        for stream in list(self.streams):
            stream.put_nowait(data)

    def compact(self) -> None:
        """Forget the log: watches from before are answered 410."""
        self.compacted = self.version
        self.log.clear()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        scripted = self.script.pop(0) if self.script else None
        if scripted is not None:
            return await scripted(request)
        if request.query.get("watch"):
            return await self._watch(request)
        if request.method == "GET":
            root, _, scoped = request.path.partition("/namespaces/")
            namespace, *rest = scoped.split("/")
            if len(rest) > 1:
                return self._one({"namespace": namespace, "name": rest[1]})
            *_, plural, name = root.split("/")
            return self._one({"name": name}) if plural == "nodes" else self._list(request)
        return web.json_response({"kind": "Status", "status": "Success"})

    def _one(self, meta: dict[str, str]) -> web.Response:
        """Any object that is asked for exists."""
        return web.json_response(self.objects.get(meta["name"], {"metadata": meta}))

    def _list(self, request: web.Request) -> web.Response:
        """All pages of a list show the world as it was at the first one, as in Kubernetes."""
        version, start = map(int, request.query.get("continue", f"{self.version}-0").split("-"))
        world = self.snapshots.setdefault(version, [self.objects[name] for name in sorted(self.objects)])
        limit = int(request.query.get("limit", 0)) or len(world)
        more = {"continue": f"{version}-{start + limit}"} if start + limit < len(world) else {}
        body = {"metadata": {"resourceVersion": str(version), **more}, "items": world[start : start + limit]}
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.compacted:
            return await answers(410, "Expired")(request)
        response = web.StreamResponse()
        response.content_type = "application/json"
        stream: asyncio.Queue[bytes | None] = asyncio.Queue()
        for version, type_, obj in self.log:
            if version > since:
                stream.put_nowait(orjson.dumps({"type": type_, "object": obj}) + b"\n")
        self.streams.add(stream)
        try:
            await response.prepare(request)
            while (data := await stream.get()) is not None:
                await response.write(data)
        except ConnectionError:
            pass
        finally:
            self.streams.discard(stream)
        return response


@asynccontextmanager
async def serve(stub: StubServer) -> AsyncIterator[StubServer]:
    runner = web.ServerRunner(web.Server(stub.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    stub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield stub
    finally:
        stub.write(None)
        await runner.cleanup()


async def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for a fact; fails after ``seconds``. Polls the loop, never asserts a duration."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  (the facts are in the program under test, which knows no events of ours)
            await asyncio.sleep(0.005)
