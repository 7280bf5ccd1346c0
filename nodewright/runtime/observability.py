"""A small HTTP server for people and machines that watch us: readiness and metrics. Plain HTTP, no secrets in it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from nodewright.runtime import metrics

Problems = Callable[[], list[str] | None]
"""What keeps the program from being ready; None: it has not started, empty: nothing."""


class ObservabilityServer:
    """An async context manager. ``port`` 0 takes any free one; see ``url``."""

    def __init__(self, host: str, port: int, problems: Problems) -> None:
        self._host = host
        self._port = port
        self._problems = problems
        app = web.Application()
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=1.0, access_log=None)
        self.url = ""

    async def __aenter__(self) -> ObservabilityServer:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _readyz(self, _request: web.Request) -> web.Response:
        problems = self._problems()
        if problems is None:
            return web.Response(status=503, text="starting\n")
        if problems:
            return web.Response(status=503, text="".join(f"{problem}\n" for problem in problems))
        return web.Response(text="ok\n")

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})
