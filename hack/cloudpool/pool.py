"""A cloudpool as the lineage writes them: desired size in memory, victims of its own choice, errors on request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

Instead = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Pool:
    """``machines`` by id. ``instead``: what happens at a path (``POST /pool/terminate``) in place of the usual."""

    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    desired: int = 0
    calls: list[tuple[str, Any]] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    """Machines that the pool took away by its own choice: nobody knows what ran on them."""
    terminated: list[str] = field(default_factory=list)
    instead: dict[str, Instead] = field(default_factory=dict)
    cached: list[dict[str, Any]] | None = None
    """Shown in place of the machines, as a pool does that reads its cloud only now and then."""
    url: str = ""

    def add(self, *ids: str, state: str = "RUNNING", **more: Any) -> None:
        for id_ in ids:
            self.machines[id_] = {
                "id": id_,
                "machineState": state,
                "membershipStatus": {"active": True, "evictable": True},
                "serviceState": "UNKNOWN",
                "cloudProvider": "test",
                "region": "here",
                "machineSize": "small",
                "publicIps": [],
                "privateIps": [],
                **more,
            }
        self.desired += len(ids)

    @property
    def active(self) -> list[str]:
        started = ("REQUESTED", "PENDING", "RUNNING")
        return [
            id_ for id_, m in self.machines.items() if m["machineState"] in started and m["membershipStatus"]["active"]
        ]

    def asked(self, what: str) -> list[Any]:
        return [body for called, body in self.calls if called == what]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            content = orjson.loads(body) if body else None
        except orjson.JSONDecodeError:
            return web.Response(status=400)
        self.calls.append((f"{request.method} {request.path}", content))
        instead = self.instead.get(f"{request.method} {request.path}")
        if instead is not None:
            return await instead(request)
        return self._answer(request, orjson.loads(body) if body else {})

    def _answer(self, request: web.Request, body: Any) -> web.Response:
        time = "2026-11-20T08:00:00.000Z"
        match request.method, request.path:
            case "GET", "/pool":
                shown = list(self.machines.values()) if self.cached is None else self.cached
                return web.json_response({"timestamp": time, "machines": shown})
            case "GET", "/pool/size":
                count = len(self.active)
                size = {"timestamp": time, "desiredSize": self.desired, "allocated": count, "active": count}
                return web.json_response(size)
            case "POST", "/pool/size":
                self.desired = body["desiredSize"]
                while len(self.active) > self.desired:
                    self.chosen.append(self.active[-1])
                    self.machines[self.active[-1]]["machineState"] = "TERMINATING"
                return web.Response()
            case "POST", "/pool/terminate":
                return self._terminate(body)
            case "GET", "/status":
                return web.json_response({"started": True, "configured": True})
        return web.json_response({"message": f"unrecognized: {request.path}", "detail": ""}, status=404)

    def _terminate(self, body: Any) -> web.Response:
        machine = body["machineId"]
        if machine not in self.active:
            return web.json_response({"message": f"unrecognized machine: {machine}", "detail": ""}, status=404)
        self.machines[machine]["machineState"] = "TERMINATING"
        self.terminated.append(machine)
        self.desired -= int(body["decrementDesiredSize"])
        return web.Response()


def refuses(status: int, body: str = '{"message": "no", "detail": ""}') -> Instead:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type="application/json")

    return answer


async def hangs(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def serving(pool: Pool) -> TestServer:
    """To be entered; ``pool.url`` is set by whoever does."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pool.answer)
    return TestServer(app, host="127.0.0.1")
