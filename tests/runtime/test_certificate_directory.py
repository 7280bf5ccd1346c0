"""Certificates of a cluster in the running program: Secrets on an API server, and what servers show on real TLS."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from controllers.bootstrap.founding import found
from controllers.bootstrap.renewal import access_in
from controllers.kernel.actions import RenewKubeconfig
from controllers.kernel.bootstrapping import FoundingOrder
from controllers.kernel.certificates import (
    CertificateKind,
    CertificatesNeed,
    CertificatesRead,
    CertificatesUnread,
)
from controllers.kernel.refs import CLUSTER, MACHINE, SECRET, Key, Ref, ref_of
from hack import credentials
from nodewright.runtime.bootstrap.certificates import CertificateDirectory
from nodewright.runtime.bootstrap.conversing import Sides, converse
from tests.runtime.etcd.test_reading import pem_of
from tests.runtime.stub_server import until
from tests.runtime.town import Town

ENDPOINT = "10.0.0.1:6443"
DEADLINE = 300.0
Look = Callable[[], CertificatesRead | CertificatesUnread | None]


class Clock:
    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@asynccontextmanager
async def server(tmp_path: Path, *, asks: bool) -> AsyncIterator[int]:
    """A TLS server; ``asks``: for a client's certificate, as etcd does."""
    ca = credentials.issue("mine")
    certificate, key = pem_of(credentials.issue("apiserver", issuer=ca))
    both = tmp_path / f"server-{asks}.pem"
    both.write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=pem_of(ca)[0].decode())
    listening = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0, ssl=context)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def read(look: Look) -> CertificatesRead:
    await until(lambda: isinstance(look(), CertificatesRead), DEADLINE)
    said = look()
    assert isinstance(said, CertificatesRead)
    return said


async def make_cluster(town: Town, now: datetime) -> Ref:
    """A Cluster with all its Secrets. It is there, since they go with it."""
    meta = {"name": "prod", "namespace": "default"}
    body = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": meta, "spec": {}}
    prod = ref_of(CLUSTER, await town.client.create(CLUSTER, body))
    order = FoundingOrder(prod, ENDPOINT, answers=False)
    await converse(found(order, Ref(MACHINE, Key("default", "cp-1"), "uid-1"), now), Sides(town.client, None))
    return prod


async def test_a_kubeconfig_is_renewed_in_time_and_the_certificates_of_servers_are_read(
    town: Town, tmp_path: Path
) -> None:
    clock = Clock()
    prod = await make_cluster(town, clock())
    async with server(tmp_path, asks=False) as api, server(tmp_path, asks=True) as etcd:
        ports = ((CertificateKind.API_SERVER, api), (CertificateKind.ETCD, etcd))
        directory = CertificateDirectory(town.client, clock, ports=ports)
        need = CertificatesNeed(prod, ENDPOINT, (("cp-1", "127.0.0.1"),))
        try:
            assert directory.look(need) == CertificatesUnread("they were not read yet", finding_out=True)
            first = await read(lambda: directory.look(need))
            assert {each.kind for each in first.certificates} == set(CertificateKind)
            assert (first.faults, first.renewal, first.unread) == ((), "", ())
            assert {kind for kind, _ in directory.ends()} == set(CertificateKind)
            clock.ahead = timedelta(days=300)
            need = CertificatesNeed(prod, ENDPOINT)
            await until(lambda: bool(getattr(directory.look(need), "renewal", "")), DEADLINE)
            due = await read(lambda: directory.look(need))
            assert "ends on" in due.renewal
            before = await town.client.get(SECRET, Key("default", "prod-kubeconfig"))
            action = RenewKubeconfig(prod, ENDPOINT, due.renewal)
            assert directory.submit(action)
            assert not directory.submit(action)
            assert not (await read(lambda: directory.look(need))).renewal
            after = await town.client.get(SECRET, Key("default", "prod-kubeconfig"))
            client = access_in(after).client
            assert client is not None
            assert client.not_valid_after_utc - clock() > timedelta(days=360)
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            old, new = (json.loads(base64.b64decode(each["data"]["value"])) for each in (before, after))
            assert old["clusters"] == new["clusters"]
        finally:
            await directory.close(5.0)


async def test_a_server_that_does_not_answer_and_an_address_that_is_none_are_told_and_hold_nothing_up(
    town: Town,
) -> None:
    prod = await make_cluster(town, datetime.now(UTC))
    directory = CertificateDirectory(town.client, Clock(), ports=((CertificateKind.API_SERVER, 1),))
    need = CertificatesNeed(prod, ENDPOINT, (("a", "127.0.0.1"), ("b", "not an address"), ("c", "10.0.0.1\x00")))
    try:
        said = await read(lambda: directory.look(need))
        assert [line.partition(":")[0] for line in said.unread] == [f"apiserver of Machine {name}" for name in "abc"]
        assert len(said.certificates) == 4
    finally:
        await directory.close(5.0)
