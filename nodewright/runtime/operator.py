"""Run the controllers as a kopf operator: kopf keeps the process (signals, login, liveness, start-up and clean-up).

kopf watches nothing and writes nothing here: its handlers are those of the operator's own life. Watches and caches are
ours, since kopf's cost 11 to 18 times the CPU per event and lose deletions on a relist (ADR 0002).
Should kopf end by an error of its own, it is started again. This is the only module that imports kopf.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf
import structlog

from nodewright.runtime.election.leadership import LeadershipLostError
from nodewright.runtime.kube.connection import Connection, StaticToken
from nodewright.runtime.manager import Manager, run_controllers
from nodewright.runtime.settings.options import RunOptions, StartRefusedError
from nodewright.runtime.signals import stop_on_signals
from nodewright.runtime.telemetry.observability import Checks, ObservabilityServer

_log = structlog.get_logger("nodewright.operator")

_TOKEN_LIFE = timedelta(seconds=60)
_FIRST_RESTART, _LONGEST_RESTART = 1.0, 60.0
_STABLE = 300.0
"""Seconds after which an end counts as the first one again."""


async def operate(
    connection: Connection,
    options: RunOptions,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | Callable[[], None] | None = None,
) -> None:
    """Run until ``stop`` is set, or SIGINT or SIGTERM comes (both are taken over if this is the main thread).

    kopf wants the event loop for itself: when it stops it cancels every task that was begun after it. A server that
    lives in the same process uses ``run_controllers`` instead.

    Raises ConfigurationError if the connection can't be used, LeadershipLostError and StartRefusedError: then the
    process should end.
    Everything else is logged and tried again.
    """
    connection.ssl_context()  # fail now, not in a loop
    pause = _FIRST_RESTART
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        current = _Current()
        if options.metrics_port is not None:
            server = ObservabilityServer(options.listen_host, options.metrics_port, current)
            await stack.enter_async_context(server)
            _log.info("serving metrics and readiness", url=server.url)
        while not stop.is_set():
            started = loop.time()
            life = _Life(connection, options, ready, current)
            try:
                await life.run(stop)
            except (LeadershipLostError, StartRefusedError):
                raise
            except Exception as error:
                if loop.time() - started > _STABLE:
                    pause = _FIRST_RESTART
                _log.exception("the operator ended, it is started again", error=str(error), restart_in=pause)
                await _sleep_unless(stop, pause)
                pause = min(pause * 2, _LONGEST_RESTART)
            else:
                return


class _Current:
    """The Manager that is at work now, for readiness and metrics."""

    manager: Manager | None = None

    def set(self, manager: Manager) -> None:
        self.manager = manager

    def problems(self) -> list[str] | None:
        """A process that waits for its turn to lead is ready: it has read everything."""
        if self.manager is None or not self.manager.synced:
            return None
        return self.manager.problems()

    def readiness(self) -> Checks:
        """``problems``, by check: the controllers, and the watch of each kind."""
        started = {"controllers": "starting" if self.problems() is None else ""}
        watches = self.manager.watches() if self.manager is not None else {}
        return started | {f"watch-{plural}": why for plural, why in watches.items()}

    def families(self) -> Iterable[object]:
        return self.manager.families() if self.manager is not None else ()


class _Life:
    """One life of the kopf operator, with the controllers inside."""

    def __init__(
        self,
        connection: Connection,
        options: RunOptions,
        ready: asyncio.Event | Callable[[], None] | None,
        current: _Current,
    ) -> None:
        self._connection = connection
        self._options = options
        self._ready = ready
        self._current = current
        self._stop_controllers = asyncio.Event()
        self._stop_kopf = asyncio.Event()
        self._controllers: asyncio.Task[None] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Returns after a signal or ``stop``. Raises what kopf or the controllers died of."""
        stopper = asyncio.create_task(self._forward(stop))
        options = self._options
        liveness = f"http://{options.listen_host}:{options.health_port}/healthz"
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                clusterwide=True,
                standalone=True,
                stop_flag=self._stop_kopf,
                liveness_endpoint=liveness if options.health_port is not None else None,
            )
        finally:
            stopper.cancel()
            await asyncio.gather(stopper, return_exceptions=True)
            await self._end_controllers()
        if self._controllers is not None:
            self._controllers.result()

    async def _forward(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stop_kopf.set()

    def _registry(self) -> Any:
        registry = kopf.OperatorRegistry()  # kopf's default one is global to the process

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.ConnectionInfo:
            return await login_of(self._connection)

        @kopf.on.startup(registry=registry)
        async def startup(**_: Any) -> None:
            self._controllers = asyncio.create_task(self._run_controllers(), name="controllers")

        @kopf.on.cleanup(registry=registry)
        async def cleanup(**_: Any) -> None:
            await self._end_controllers()

        @kopf.on.probe(registry=registry, id="controllers")
        async def probe(**_: Any) -> str:
            problems = self._current.problems()
            return "starting" if problems is None else "; ".join(problems) or "ok"

        return registry

    async def _run_controllers(self) -> None:
        if threading.current_thread() is threading.main_thread():
            stop_on_signals(self._stop_kopf)  # kopf's own handlers, set by now, fail on a second signal
        try:
            await run_controllers(
                self._connection,
                self._options,
                stop=self._stop_controllers,
                ready=self._ready,
                on_manager=self._current.set,
            )
        finally:
            self._stop_kopf.set()

    async def _end_controllers(self) -> None:
        """Stop them gracefully, in time: kopf cancels tasks that outlive it. Never raises (kopf would try again)."""
        self._stop_controllers.set()
        if self._controllers is not None:
            await asyncio.wait({self._controllers})


async def login_of(connection: Connection) -> kopf.ConnectionInfo:
    """Our connection in kopf's words. A token that may change expires soon, so that kopf asks again."""
    token = await connection.tokens.token() if connection.tokens is not None else None
    changing = connection.tokens is not None and not isinstance(connection.tokens, StaticToken)
    return kopf.ConnectionInfo(
        server=connection.server,
        ca_data=connection.ca or None,
        insecure=connection.insecure,
        certificate_data=connection.client_certificate or None,
        private_key_data=connection.client_key or None,
        scheme="Bearer" if token else None,
        token=token,
        default_namespace=connection.namespace,
        proxy_url=connection.proxy or None,
        expiration=datetime.now(UTC) + _TOKEN_LIFE if changing else None,
    )


def _settings() -> kopf.OperatorSettings:
    """No scanning, no posting, no writing; storages that would refuse to write."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    return settings


class _NoDiffBase(kopf.DiffBaseStorage):  # type: ignore[misc, unused-ignore]
    def build(self, *, body: Any, extra_fields: Any = None, ignored_fields: Any = None) -> Any:
        return {}

    def fetch(self, *, body: Any) -> None:
        return None

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        raise RuntimeError("kopf must not write")


class _NoProgress(kopf.ProgressStorage):  # type: ignore[misc, unused-ignore]
    def fetch(self, *, key: Any, body: Any) -> None:
        return None

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        raise RuntimeError("kopf must not write")

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        """Nothing was stored."""

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        """Nothing is triggered by touching."""

    def clear(self, *, essence: Any) -> Any:
        return essence


async def _sleep_unless(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
