"""The webhook's server: TLS only, certificates taken anew without a restart, nothing a client sends ends it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from nodewright.gateways.admission.certificate import CertificateError, ServedCertificate
from nodewright.gateways.admission.server import AdmissionServer, Where
from nodewright.runtime.telemetry import metrics
from tests.gateways.pems import Pems, issue
from tests.gateways.test_review import REGISTRY, SIZE, asked, bad, good
from tests.runtime.stub_server import until

LOOPBACK = Where("127.0.0.1", 0)


class Door:
    """A running server and the files of its certificate."""

    def __init__(self, server: AdmissionServer, certificate: ServedCertificate, folder: Path) -> None:
        self.server = server
        self.certificate = certificate
        self.folder = folder

    async def send(self, trusted: Pems, path: str = "/validate", **what: Any) -> tuple[int, Any]:
        """What a client that trusts only ``trusted`` gets."""
        context = ssl.create_default_context(cadata=trusted.certificate.decode())
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:
            method = "POST" if what else "GET"
            async with session.request(method, self.server.url + path, **what) as answer:
                text = await answer.text()
                return answer.status, await answer.json() if answer.content_type == "application/json" else text


FIRST = issue("first")


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    certificate = ServedCertificate(*FIRST.write(tmp_path), metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    async with AdmissionServer(LOOPBACK, certificate, REGISTRY) as server:
        yield Door(server, certificate, tmp_path)


async def test_it_answers_reviews(door: Door) -> None:
    status, answer = await door.send(FIRST, json=asked(good()))
    assert (status, answer["response"]) == (200, {"uid": "r-1", "allowed": True})
    _, answer = await door.send(FIRST, json=asked(bad()))
    assert not answer["response"]["allowed"]
    assert SIZE in answer["response"]["status"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"kind": "Pod"}', b"\xff\xfe"])
async def test_what_is_no_review_is_refused_and_the_next_one_answered(door: Door, body: bytes) -> None:
    assert (await door.send(FIRST, data=body))[0] == 400
    assert (await door.send(FIRST, json=asked(good())))[0] == 200


async def test_health_is_served_beside_it(door: Door) -> None:
    assert await door.send(FIRST, "/healthz") == (200, "ok")
    assert await door.send(FIRST, "/readyz?verbose") == (200, "[+]ping ok\n[+]certificate ok\nreadyz check passed\n")


async def test_plain_http_is_not_spoken(door: Door) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(door.server.url.replace("https", "http") + "/healthz")


async def test_a_renewed_certificate_is_shown_without_a_restart(door: Door) -> None:
    second = issue("second")
    second.write(door.folder)
    assert door.certificate.reload()
    assert await door.send(second, "/healthz") == (200, "ok")
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await door.send(FIRST, "/healthz")
    assert not door.certificate.reload(), "nothing new"


async def test_files_are_followed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    from nodewright.gateways.admission import certificate as module  # noqa: PLC0415

    monkeypatch.setattr(module, "POLL_EVERY", 0.001)
    second = issue("second", datetime.now(UTC) + timedelta(days=9))
    second.write(door.folder)
    following = asyncio.create_task(door.certificate.follow())
    before = door.certificate.expires
    await until(lambda: door.certificate.expires != before, 10)
    following.cancel()
    assert await door.send(second, "/healthz") == (200, "ok")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "tls.key").write_bytes(issue("other").key),
        lambda folder: (folder / "tls.crt").write_bytes(b"-----BEGIN CERTIFICATE-----\nhalf"),
        lambda folder: (folder / "tls.key").unlink(),
    ],
    ids=["another key", "half a file", "no key"],
)
async def test_files_that_do_not_belong_together_leave_the_last_certificate(door: Door, spoil: Any) -> None:
    spoil(door.folder)
    assert not door.certificate.reload()
    assert await door.send(FIRST, "/healthz") == (200, "ok")
    FIRST.write(door.folder)
    third = issue("third")
    third.write(door.folder)
    assert door.certificate.reload(), "and good ones are taken again"


async def test_past_its_end_it_is_not_ready(tmp_path: Path) -> None:
    ended = issue("ended", datetime.now(UTC) - timedelta(days=1))
    certificate = ServedCertificate(*ended.write(tmp_path), metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    server = AdmissionServer(LOOPBACK, certificate, REGISTRY)
    assert server.readiness()["certificate"].startswith("expired at")


def test_at_the_start_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"tls\.crt: No such file"):
        ServedCertificate(tmp_path / "tls.crt", tmp_path / "tls.key", metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    FIRST.write(tmp_path)
    (tmp_path / "tls.key").write_text("nonsense")
    with pytest.raises(CertificateError, match="are no certificate and its key"):
        ServedCertificate(tmp_path / "tls.crt", tmp_path / "tls.key", metrics.WEBHOOK_CERTIFICATE_EXPIRY)


async def test_there_is_no_plain_http_and_nothing_but_reviews_and_health(tmp_path: Path) -> None:
    """The webhook asks for no login, wherever it listens: it tells a caller nothing that the caller has not sent."""
    certificate = ServedCertificate(*FIRST.write(tmp_path), metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    async with AdmissionServer(Where("0.0.0.0", 0), certificate, REGISTRY) as server:
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(60.0):
            assert not (await reader.read()).startswith(b"HTTP")
        writer.close()
        context = ssl.create_default_context(cadata=FIRST.certificate.decode())
        context.check_hostname = False
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            for path in ("/", "/metrics", "/debug", "/config", "/apis", "/validate"):
                async with session.get(f"https://127.0.0.1:{port}{path}") as answer:
                    assert answer.status in (404, 405)


async def test_a_body_that_does_not_arrive_is_a_408(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodewright.gateways.admission.server.BODY_SECONDS", 0.2)
    certificate = ServedCertificate(*FIRST.write(tmp_path), metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    async with AdmissionServer(LOOPBACK, certificate, REGISTRY) as server:
        context = ssl.create_default_context(cadata=FIRST.certificate.decode())
        reader, writer = await asyncio.open_connection("localhost", int(server.url.rpartition(":")[2]), ssl=context)
        writer.write(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        async with asyncio.timeout(60.0):
            assert b" 408 " in await reader.readline()
        writer.close()
