"""The HTTPS server around ``review``: POST /validate, and health for the kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType

import orjson
import structlog
from aiohttp import web

from nodewright.gateways.admission.certificate import ServedCertificate
from nodewright.gateways.admission.review import BadReviewError, kind_of, review_text
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.logs import about
from nodewright.runtime.telemetry.observability import Checks, add_health
from nodewright.runtime.telemetry.patience import PatientRunner
from providers.base.registry import Registry

_log = structlog.get_logger("nodewright.webhook")

PATH = "/validate"
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of a request: an API server takes objects of 3 MiB at most, and a review may have two."""


BODY_SECONDS = 30.0
"""For a request's body; the API server itself waits 30 s at most (``timeoutSeconds`` of a webhook)."""


@dataclass(frozen=True, slots=True)
class Where:
    """``port`` 0 takes any free one."""

    host: str
    port: int


class AdmissionServer:
    """An async context manager; see ``url``. The certificate is read anew when its files change."""

    def __init__(
        self,
        where: Where,
        certificate: ServedCertificate,
        registry: Registry | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._where = where
        self._certificate = certificate
        self._registry = registry or Registry.installed()
        self._now = now
        self._stack = AsyncExitStack()
        self.url = ""

    async def __aenter__(self) -> AdmissionServer:
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post(PATH, self._validate)
        for name in ("livez", "healthz", "readyz"):
            add_health(app, name, self.readiness if name == "readyz" else dict)
        runner = PatientRunner(app, shutdown_timeout=5.0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, self._where.host, self._where.port, ssl_context=self._certificate.context)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        following = asyncio.create_task(self._certificate.follow(), name="certificate")
        self._stack.callback(following.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def readiness(self) -> Checks:
        """API servers refuse to talk to one whose certificate is past its end."""
        expires = self._certificate.expires
        past = expires is not None and expires <= self._now()
        return {"certificate": f"expired at {expires}" if past else ""}

    def families(self) -> tuple[object, ...]:
        """Nothing is counted only when asked."""
        return ()

    async def _validate(self, request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                text = await request.read()
        except TimeoutError:
            return web.Response(status=408, text=f"the request was not read within {BODY_SECONDS:g} s\n")
        try:
            body, answer = review_text(text, self._registry)
        except BadReviewError as error:
            metrics.of(metrics.REVIEWS, "", "unreadable").inc()
            _log.warning("a review could not be read", error=str(error))
            return web.Response(status=400, text=f"{error}\n")
        response = answer["response"]
        kind = kind_of(body)
        metrics.of(metrics.REVIEWS, kind, "allowed" if response["allowed"] else "refused").inc()
        metrics.REVIEW_SECONDS.observe(loop.time() - started)
        if not response["allowed"]:
            asked = body["request"]
            keys = {"kind": kind, "namespace": str(asked.get("namespace") or ""), "name": str(asked.get("name") or "")}
            with about(keys):
                _log.info("refused", fields=[cause["field"] for cause in response["status"]["details"]["causes"]])
        return web.Response(body=orjson.dumps(answer), content_type="application/json")
