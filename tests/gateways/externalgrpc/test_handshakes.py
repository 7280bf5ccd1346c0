"""Refused TLS handshakes: one line with peer and reason, and a metric. gRPC for Python tells nobody of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from structlog.testing import capture_logs

from hack.children import free_ports
from nodewright.gateways.externalgrpc import core_lines
from nodewright.gateways.externalgrpc.certificates import CertificateOptions, write_all
from nodewright.gateways.externalgrpc.core_lines import CoreLines, Foreign, Found, Logged, Refused
from nodewright.gateways.externalgrpc.core_log import SAME_AGAIN, Teller
from tests.runtime.stub_server import until
from tests.runtime.town import SECONDS, Town

START = "I1122 23:34:26.838596    2684 "
FAILED = f"{START}ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: error:1:X:Y:"
NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid certificate verification context"
TRACE = f"{START}handshaker.cc:155] CallNextHandshakerLocked: error="
LOCATION = ["=== Source Location Trace: === ", "src/core/util/status_helper.cc:68"]
ARGS = " shutdown=false index=2, args={endpoint=0x7f, args={grpc.internal.endpoint_peer_address="


def read(*lines: str) -> list[Found]:
    reader = CoreLines()
    return [found for line in lines for found in reader.feed(line)] + reader.flush()


def failure(text: str, peer: str) -> list[str]:
    return [
        f"{TRACE}UNKNOWN: Ssl handshake failed (TSI_PROTOCOL_FAILURE): {text}: OK",
        *LOCATION,
        f"{ARGS}{peer}, a=b}}",
    ]


def test_a_reason_and_the_trace_behind_it_are_one_refusal_with_its_peer() -> None:
    lines = [f"{FAILED}{NO_CERTIFICATE}", *failure(NO_CERTIFICATE, "ipv4:10.0.0.7:53548")]
    lines += [f"{START}channel_trace.h:396] handshake manager 0x7f: Failed with error: UNKNOWN", *LOCATION, ""]
    (found,) = read(*lines)
    assert isinstance(found, Refused)
    assert (found.reason, found.peer) == ("no-certificate", "10.0.0.7:53548")


def test_an_address_of_ipv6_is_readable() -> None:
    (found,) = read(*failure(NO_CERTIFICATE, "ipv6:%5B::1%5D:53548"))
    assert isinstance(found, Refused)
    assert found.peer == "[::1]:53548"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (NO_CERTIFICATE, "no-certificate"),
        ("CERTIFICATE_VERIFY_FAILED: certificate has expired", "untrusted-certificate"),
        ("NO_SHARED_CIPHER: x", "tls-version"),
        ("UNSUPPORTED_PROTOCOL: x", "tls-version"),
        ("WRONG_VERSION_NUMBER: x", "no-tls"),
        ("TLSV1_ALERT_UNKNOWN_CA: x", "caller-refused"),
        ("Handshake read failed (Socket closed)", "caller-left"),
        ("Handshake timed out", "timeout"),
        ("something new", "other"),
    ],
)
def test_reasons_are_few_and_what_is_new_is_one_of_them(text: str, reason: str) -> None:
    assert [each.reason for each in read(*failure(text, "ipv4:1.2.3.4:5")) if isinstance(each, Refused)] == [reason]


def test_without_a_trace_the_reason_is_told_alone_and_nothing_is_told_twice() -> None:
    """Another release of gRPC may trace otherwise."""
    (found,) = read(f"{FAILED}{NO_CERTIFICATE}")
    assert isinstance(found, Refused)
    assert (found.reason, found.peer) == ("no-certificate", "")
    two = read(f"{FAILED}{NO_CERTIFICATE}", f"{FAILED}WRONG_VERSION_NUMBER: x")
    assert [each.reason for each in two if isinstance(each, Refused)] == ["no-certificate", "no-tls"]
    (cut,) = read(f"{TRACE}UNKNOWN: {NO_CERTIFICATE}", *LOCATION)
    assert isinstance(cut, Refused)


def test_handshakes_that_succeed_and_a_stop_are_no_news() -> None:
    assert read(f"{TRACE}OK shutdown=false index=1, args={{grpc.internal.endpoint_peer_address=ipv4:1.2.3.4:5}}") == []
    assert read(*failure("Server shutdown", "ipv4:1.2.3.4:5")) == []


def test_other_lines_of_the_library_keep_their_level_and_lines_of_others_are_handed_on() -> None:
    lines = ["E1122 23:34:26.838596    2684 tcp_server.cc:1] no more descriptors", "aws: token expired", ""]
    found = read(*lines, f"{START}subchannel.cc:3] connected")
    assert found == [
        Logged("error", "tcp_server.cc: no more descriptors"),
        Foreign("aws: token expired"),
        Foreign(""),
        Logged("debug", "subchannel.cc: connected"),
    ]


def test_a_host_that_comes_again_and_again_is_counted_and_logged_once_a_minute() -> None:
    now = [0.0]
    tell = Teller(lambda: now[0])
    structlog.reset_defaults()
    with capture_logs() as lines:
        for number in range(100):
            tell(Refused("no-tls", "x", f"10.0.0.7:{number}"))
        tell(Refused("no-tls", "x", "10.0.0.8:1"))
        tell(Refused(core_lines.UNTRUSTED, "x", "10.0.0.7:1"))
        now[0] += SAME_AGAIN
        tell(Refused("no-tls", "x", "10.0.0.7:100"))
    assert [(line["peer"], line["more_since_last_line"]) for line in lines] == [
        ("10.0.0.7:0", 0),
        ("10.0.0.8:1", 0),
        ("10.0.0.7:1", 0),
        ("10.0.0.7:100", 99),
    ]


@dataclass(slots=True)
class Running:
    address: tuple[str, int]
    metrics: str
    stderr: Path

    def lines(self) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.stderr.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if line.get("event") == "TLS handshake refused"]


@asynccontextmanager
async def gateway(town: Town, folder: Path, **environment: str) -> AsyncIterator[Running]:
    """In a process of its own, since it takes the file descriptor of stderr."""
    (port,) = free_ports(1)
    flags = [f"--kubeconfig={town.plane.kubeconfig_path}", "--port=0", f"--metrics-port={port}", "--log-format=json"]
    flags += [f"--tls-cert-file={folder / 'server.crt'}", f"--tls-private-key-file={folder / 'server.key'}"]
    flags += [f"--client-ca-file={folder / 'ca.crt'}"]
    stderr = folder / "stderr"
    with stderr.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nodewright.cli", "gateway", "externalgrpc", *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
            env={**os.environ, **environment},
        )
    try:
        assert process.stdout is not None
        said = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode()
        assert said.startswith("ready: serving externalgrpc at "), stderr.read_text()
        host, _, number = said.split()[4].rpartition(":")
        yield Running((host, int(number)), f"http://127.0.0.1:{port}/metrics", stderr)
    finally:
        process.terminate()
        await process.wait()


def trust(ca: Path, client: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca / "ca.crt"))
    context.set_alpn_protocols(["h2"])
    if client is not None:
        context.load_cert_chain(client / "client.crt", client / "client.key")
    return context


async def knock(running: Running, context: ssl.SSLContext | None) -> str:
    """Connect, be refused; ``host:port`` from where, as far as Python tells."""
    name = None if context is None else "localhost"
    sockets = []
    with suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_connection(*running.address, ssl=context, server_hostname=name)
        sockets.append("{}:{}".format(*writer.get_extra_info("sockname")))
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.wait_for(reader.read(), SECONDS)
        writer.close()
    return sockets[0] if sockets else ""


@pytest.mark.slow
async def test_who_is_refused_is_a_line_and_a_number(town: Town, tmp_path: Path) -> None:
    for name in ("tls", "other"):
        write_all(tmp_path / name, CertificateOptions(("localhost", "127.0.0.1")))
    ours, other = tmp_path / "tls", tmp_path / "other"
    async with gateway(town, ours) as running:
        came = {
            "no-certificate": await knock(running, trust(ours)),
            "untrusted-certificate": await knock(running, trust(ours, other)),
            "no-tls": await knock(running, None),
        }
        await until(lambda: len(running.lines()) >= 3, SECONDS)
        logged = {line["reason"]: line["peer"] for line in running.lines()}
        assert logged.keys() == came.keys()
        assert all(re.fullmatch(r"127\.0\.0\.1:\d+", peer) for peer in logged.values())
        assert all(logged[reason] == peer for reason, peer in came.items() if peer)
        async with aiohttp.ClientSession() as session, session.get(running.metrics) as answer:
            text = await answer.text()
        for reason in came:
            assert f'nodewright_externalgrpc_handshakes_refused_total{{reason="{reason}"}} 1.0' in text
    raw = [line for line in running.stderr.read_text().splitlines() if not line.startswith("{")]
    assert raw == []


@pytest.mark.slow
async def test_whoever_traces_grpc_sees_all_that_it_says(town: Town, tmp_path: Path) -> None:
    write_all(tmp_path, CertificateOptions(("localhost", "127.0.0.1")))
    async with gateway(town, tmp_path, GRPC_TRACE="handshaker") as running:
        await knock(running, None)
        await until(lambda: "CallNextHandshakerLocked" in running.stderr.read_text(), SECONDS)
        assert running.lines() == []
