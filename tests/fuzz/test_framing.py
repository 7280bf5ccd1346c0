"""HTTP's framing, damaged, against every HTTP server: no 5xx of its own, no traceback, no hang, and it serves on."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from hack.cloudpool.scene import scene
from nodewright.apiserver.app import APIServer, APIServerConfig, Limits
from nodewright.crds import load_crds
from nodewright.gateways.admission.certificate import ServedCertificate
from nodewright.gateways.admission.server import AdmissionServer
from nodewright.gateways.cloudpool.listener import ListenerOptions
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.telemetry.observability import ObservabilityServer
from tests.api.samples import GOOD
from tests.fuzz.driving import REPLAYED, drive, sizes
from tests.fuzz.framing import Asked, Wire, framed, whole
from tests.fuzz.inputs import as_json
from tests.fuzz.test_servers import CALLS, COLLECTIONS, GROUPED
from tests.gateways.cloudpool.conftest import quiet_logs, town
from tests.gateways.cloudpool.test_server import served as cloudpools
from tests.gateways.externalgrpc.caller import serving
from tests.gateways.pems import issue
from tests.gateways.test_admission_server import LOOPBACK
from tests.gateways.test_review import REGISTRY, asked, good
from tests.runtime.town import Town

__all__ = ["quiet_logs", "town"]

JSON = {b"Content-Type": b"application/json"}
TOGETHER = 25
SHORT = 0.2
"""Seconds for heads, bodies and idle connections: inputs that never end are given up soon. No test waits for more."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "KEEP_ALIVE", "LINGER_SECONDS"):
        monkeypatch.setattr(f"nodewright.runtime.telemetry.patience.{name}", SHORT)
    monkeypatch.setattr("nodewright.gateways.admission.server.BODY_SECONDS", SHORT)


def wire_to(url: str, tls: ssl.SSLContext | None = None) -> Wire:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    return Wire(address.hostname, address.port, tls)


async def answers(wire: Wire, requests: Sequence[Asked], count: int, caplog: pytest.LogCaptureFixture) -> None:
    """Damage the requests ``count`` times; the last of them, whole, has to be a 200."""
    caplog.set_level(logging.WARNING)
    await wire.must_serve(requests[-1])

    async def act(rng: random.Random) -> None:
        await wire.must_answer(framed(rng, rng.choice(requests)))

    await drive(count, act, together=TOGETHER)
    await wire.must_serve(requests[-1])
    assert REPLAYED or {200, 400} <= wire.seen, wire.seen
    assert not [
        record.getMessage() for record in caplog.records if record.exc_info or "Traceback" in record.getMessage()
    ]


@sizes(140, 3_000)
async def test_the_plane_answers_broken_framing(count: int, caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(header_seconds=SHORT * 5, body_seconds=SHORT, idle_seconds=SHORT)
    async with APIServer(APIServerConfig(crds=tuple(load_crds()), limits=limits)) as plane:
        fields = {b"Authorization": f"Bearer {plane.token}".encode()}
        machine = as_json(next(obj for obj in GOOD.values() if obj["kind"] == "Machine"))
        requests = [
            whole(b"POST", (GROUPED + "machines").encode(), {**fields, **JSON}, machine),
            *(whole(b"GET", path.encode(), fields) for path in COLLECTIONS),
            whole(b"GET", b"/version", fields),
        ]
        wire = wire_to(plane.url, ssl.create_default_context(cafile=str(plane.ca_path)))
        await answers(wire, requests, count, caplog)


@sizes(100, 2_000)
async def test_the_webhook_answers_broken_framing(count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pems = issue("fuzz")
    certificate = ServedCertificate(*pems.write(tmp_path), metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    async with AdmissionServer(LOOPBACK, certificate, REGISTRY) as server:
        tls = ssl.create_default_context(cadata=pems.certificate.decode())
        requests = [whole(b"GET", b"/readyz", {}), whole(b"POST", b"/validate", JSON, as_json(asked(good())))]
        await answers(wire_to(server.url, tls), requests, count, caplog)


@sizes(100, 2_000)
async def test_the_cloudpool_gateway_answers_broken_framing(
    town: Town, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    await town.machine_set("workers", 0)
    requests = [whole(b"POST", path.encode(), JSON, as_json(body)) for path, body in CALLS if path != "/pool/size"]
    requests.append(whole(b"GET", b"/pool", {}))
    async with cloudpools(town, header_timeout=SHORT, read_timeout=SHORT) as client:
        await answers(wire_to(client.url), requests, count, caplog)


@sizes(100, 2_000)
async def test_the_cloudpool_proxy_answers_broken_framing(count: int, caplog: pytest.LogCaptureFixture) -> None:
    async def accepted(_: web.Request) -> web.StreamResponse:
        return web.Response()

    async with scene() as stage:
        stage.pool.instead.update({f"POST {path}": accepted for path, _ in CALLS})
        proxy = await stage.start(listener=ListenerOptions(port=0, header_timeout=SHORT, read_timeout=SHORT))
        requests = [whole(b"POST", path.encode(), JSON, as_json(body)) for path, body in CALLS]
        await answers(wire_to(proxy.url), [*requests, whole(b"GET", b"/pool", {})], count, caplog)


@sizes(40, 500)
async def test_metrics_and_health_answer_broken_framing(count: int, caplog: pytest.LogCaptureFixture) -> None:
    class Nothing:
        def readiness(self) -> dict[str, str]:
            return {}

        def families(self) -> tuple[object, ...]:
            return ()

    async with ObservabilityServer("127.0.0.1", 0, Nothing()) as server:
        requests = [whole(b"GET", path, {}) for path in (b"/metrics", b"/readyz?verbose", b"/livez")]
        await answers(wire_to(server.url), requests, count, caplog)


@sizes(20, 500)
async def test_the_externalgrpc_gateway_drops_what_is_not_http_2(town: Town, count: int) -> None:
    async with serving(town) as served:
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        host, _, port = served.address.rpartition(":")

        async def act(rng: random.Random) -> None:
            sent = framed(rng, whole(b"POST", b"/x", JSON, b"{}"))
            if rng.random() < 0.5:
                sent = preface + rng.randbytes(rng.randrange(1, 200))
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            writer.close()

        await drive(count, act)
        await served.caller.send("NodeGroups", b"")
