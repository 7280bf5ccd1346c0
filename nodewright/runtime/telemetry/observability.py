"""A small HTTP server for people and machines that watch us: health and metrics. Plain HTTP, no secrets in it.

``/livez``, ``/healthz`` and ``/readyz`` answer as those of a kube-apiserver do: "ok", or 5xx with a line a check;
``?verbose`` shows the lines in any case, ``?exclude=NAME`` leaves a check out, and ``/readyz/NAME`` is one check alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Protocol

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.patience import PatientRunner

Checks = Mapping[str, str]
"""Name of each check and what is wrong, "" if nothing is."""

PING = "ping"
"""The check that the process still answers; all that liveness asks for: a restart heals no API server."""


class Watched(Protocol):
    """What is shown of the program."""

    def readiness(self) -> Checks: ...

    def families(self) -> Iterable[object]:
        """Metrics that are counted now."""


class ObservabilityServer:
    """An async context manager. ``port`` 0 takes any free one; see ``url``."""

    def __init__(self, host: str, port: int, watched: Watched) -> None:
        self._host = host
        self._port = port
        self._watched = watched
        self._runner = PatientRunner(self._app(), shutdown_timeout=1.0)
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

    def _app(self) -> web.Application:
        app = web.Application()
        add_health(app, "livez", _alive)
        add_health(app, "healthz", _alive)
        add_health(app, "readyz", self._watched.readiness)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _metrics(self, _request: web.Request) -> web.Response:
        body = generate_latest(metrics.REGISTRY) + generate_latest(_Now(self._watched))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


def add_health(app: web.Application, name: str, checks: Callable[[], Checks]) -> None:
    """Serve ``checks`` at ``/NAME`` and each of them at ``/NAME/CHECK``."""

    async def answer(request: web.Request) -> web.Response:
        left_out = set(request.query.getall("exclude", []))
        wanted = request.match_info.get("check", "")
        found = {PING: "", **checks()}
        if wanted and wanted not in found:
            return web.Response(status=404, text=f"{name} has no check {wanted}\n")
        chosen = {check: why for check, why in found.items() if (not wanted or check == wanted)}
        return _health(name, chosen, left_out, "verbose" in request.query)

    app.router.add_get(f"/{name}", answer)
    app.router.add_get(f"/{name}/{{check}}", answer)


def _health(name: str, checks: Checks, left_out: set[str], verbose: bool) -> web.Response:
    lines = []
    bad = False
    for check, why in checks.items():
        if check in left_out:
            lines.append(f"[+]{check} excluded: ok")
        elif why:
            bad = True
            lines.append(f"[-]{check} failed: {why}")
        else:
            lines.append(f"[+]{check} ok")
    if not bad and not verbose:
        return web.Response(text="ok")
    lines.append(f"{name} check {'failed' if bad else 'passed'}")
    return web.Response(status=503 if bad else 200, text="".join(f"{line}\n" for line in lines))


def _alive() -> Checks:
    return {}


class _Now(Collector):
    """What is counted at the moment of the scrape, in the form that ``generate_latest`` takes."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def collect(self) -> Iterable[object]:  # type: ignore[override]
        return self._watched.families()
