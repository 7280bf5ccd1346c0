"""Real etcd members over TLS, asked through their JSON gateway: who is healthy, and a member that is taken out."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from controllers.kernel.actions import RemoveEtcdMember
from controllers.kernel.etcd import EtcdHost, EtcdMembers, EtcdUnread
from controllers.kernel.refs import Key
from hack import credentials
from hack.binaries import find
from nodewright.runtime.etcd.certificate import AuthorityError, issue
from nodewright.runtime.etcd.gateway import Gateway, GatewayError, url_of
from nodewright.runtime.etcd.reading import RemovalRefused, read, remove
from nodewright.runtime.kube.connection import Connection
from providers.base.addresses import current
from tests.realplane import require

CLUSTER = Key("default", "prod")
DEADLINE = 300.0
LOCALS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
"""One address for each member, so that all may have the same client port."""


def now() -> datetime:
    return datetime.now(UTC)


def pem_of(pair: credentials.Pair) -> tuple[bytes, bytes]:
    key = pair.key.private_bytes(
        credentials.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return pair.certificate.public_bytes(credentials.PEM), key


def context_of(ca: credentials.Pair) -> ssl.SSLContext:
    made = issue(*pem_of(ca), now())
    context = Connection("https://x", made.ca, made.certificate, made.key).ssl_context()
    assert context is not None
    return context


def free_ports() -> tuple[int, int]:
    """A client and a peer port that are free on all three addresses."""
    with ExitStack() as stack:
        ports = []
        while len(ports) < 2:
            first = stack.enter_context(socket.socket())
            first.bind((LOCALS[0], 0))
            port = first.getsockname()[1]
            try:
                for address in LOCALS[1:]:
                    stack.enter_context(socket.socket()).bind((address, port))
            except OSError:
                continue
            ports.append(port)
        return ports[0], ports[1]


class Members:
    """Three real members with client certificates asked for, as kubeadm sets them up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = credentials.issue("etcd-ca")
        self.client, self.peer = free_ports()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "ca.crt").write_bytes(pem_of(self.ca)[0])

    @property
    def hosts(self) -> tuple[EtcdHost, ...]:
        return tuple(EtcdHost(f"m{number}", address) for number, address in enumerate(LOCALS))

    def start(self, name: str, address: str) -> None:
        binary = find("etcd")
        assert binary is not None
        certificate, key = pem_of(credentials.issue(name, issuer=self.ca, address=address))
        crt, private = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        crt.write_bytes(certificate)
        credentials.private(private, key)
        everybody = ",".join(f"{host.name}=http://{host.address}:{self.peer}" for host in self.hosts)
        flags = {
            "name": name,
            "data-dir": str(self.folder / name),
            "listen-client-urls": url_of(address, self.client),
            "advertise-client-urls": url_of(address, self.client),
            "listen-peer-urls": f"http://{address}:{self.peer}",
            "initial-advertise-peer-urls": f"http://{address}:{self.peer}",
            "initial-cluster": everybody,
            "cert-file": str(crt),
            "key-file": str(private),
            "trusted-ca-file": str(self.folder / "ca.crt"),
            "client-cert-auth": "true",
            "log-level": "error",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [str(binary), *(f"--{key}={value}" for key, value in flags.items())], stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for name in tuple(self.running):
            self.kill(name)


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    require(("etcd",))
    found = Members(tmp_path)
    try:
        for host in found.hosts:
            found.start(host.name, host.address)
        yield found
    finally:
        found.stop()


@pytest.fixture
async def gateway(members: Members) -> AsyncIterator[Gateway]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(Gateway(context_of(members.ca)))


async def until_healthy(gateway: Gateway, members: Members, count: int) -> EtcdMembers:
    """The list once ``count`` of its members are healthy."""
    found: object = None
    async with asyncio.timeout(DEADLINE):
        while True:
            found = await read(gateway, members.hosts, now(), members.client)
            if isinstance(found, EtcdMembers) and sum(bool(m.healthy) for m in found.members) == count:
                return found
            await asyncio.sleep(0.05)


@pytest.mark.realplane
async def test_who_is_healthy_and_a_dead_members_removal(members: Members, gateway: Gateway) -> None:
    seen = await until_healthy(gateway, members, 3)
    assert sorted(m.name for m in seen.members) == ["m0", "m1", "m2"]
    assert all(m.db_size_bytes and not m.learner and not m.alarms for m in seen.members)

    members.kill("m2")
    seen = await until_healthy(gateway, members, 2)
    [dead] = [m for m in seen.members if not m.healthy]
    assert (dead.name, dead.why) == ("m2", "no connection")

    everybody = frozenset(m.id for m in seen.members)
    healthy = frozenset(m.id for m in seen.members if m.healthy)
    wrong = RemoveEtcdMember(CLUSTER, dead.id, everybody | {7}, healthy, "")
    with pytest.raises(RemovalRefused, match="other members"):
        await remove(gateway, members.hosts, wrong, members.client)
    blind = RemoveEtcdMember(CLUSTER, min(healthy), everybody, frozenset({dead.id}), "")
    with pytest.raises(RemovalRefused, match="m2 does not work"):
        await remove(gateway, members.hosts, blind, members.client)

    await remove(gateway, members.hosts, RemoveEtcdMember(CLUSTER, dead.id, everybody, healthy, ""), members.client)
    seen = await until_healthy(gateway, members, 2)
    assert sorted(m.name for m in seen.members) == ["m0", "m1"]


@pytest.mark.realplane
async def test_without_a_quorum_the_list_is_still_seen_and_nothing_is_removed(
    members: Members, gateway: Gateway
) -> None:
    seen = await until_healthy(gateway, members, 3)
    members.kill("m1")
    members.kill("m2")
    async with asyncio.timeout(DEADLINE):
        while True:
            found = await read(gateway, members.hosts, now(), members.client)
            if isinstance(found, EtcdMembers) and not any(m.healthy for m in found.members):
                break
            await asyncio.sleep(0.05)
    assert len(found.members) == 3
    action = RemoveEtcdMember(CLUSTER, seen.members[0].id, frozenset(m.id for m in seen.members), frozenset(), "")
    with pytest.raises(RemovalRefused):
        await remove(gateway, members.hosts, action, members.client)


@pytest.mark.realplane
async def test_a_foreign_authority_gets_no_answer(members: Members, gateway: Gateway) -> None:
    await until_healthy(gateway, members, 3)
    async with Gateway(context_of(credentials.issue("another-ca"))) as stranger:
        found = await read(stranger, members.hosts, now(), members.client)
    assert isinstance(found, EtcdUnread)
    assert "its certificate is not one of etcd's CA" in found.why


def test_a_certificate_lives_a_day_and_no_longer_than_its_authority() -> None:
    ca = credentials.issue("etcd-ca")
    made = issue(*pem_of(ca), now())
    assert timedelta(hours=11) < made.renew_at - now() < timedelta(hours=13)
    assert "PRIVATE" not in repr(made)
    with pytest.raises(AuthorityError, match="expired"):
        issue(*pem_of(ca), now() + timedelta(days=8))


@pytest.mark.parametrize(
    ("crt", "key", "field"),
    [(b"", b"", "tls.crt"), (b"x", b"", "tls.crt"), (None, b"secret-text", "tls.key"), (None, None, "not the key")],
)
def test_an_unusable_authority_is_named_by_its_key_alone(crt: bytes | None, key: bytes | None, field: str) -> None:
    certificate, _ = pem_of(credentials.issue("etcd-ca"))
    _, other = pem_of(credentials.issue("etcd-ca"))
    with pytest.raises(AuthorityError, match=field) as raised:
        issue(certificate if crt is None else crt, other if key is None else key, now())
    assert "secret-text" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "without JSON"),
        (b"[1]", "HTTP 200"),
        (b'{"members": []}', "lists no members"),
        (b'{"members": [{"ID": "no"}]}', "without an ID"),
        (b'{"members": [' + b'{"ID": "1"},' * 40 + b'{"ID": "2"}]}', "too many"),
        (b"[" * 100_000, "HTTP 200"),
        (b" " * ((1 << 20) + 1), "too long"),
    ],
)
async def test_hostile_answers_are_refused(answer: bytes, why: str) -> None:
    """A server that has a certificate of the CA, and says what it wants."""
    ca = credentials.issue("etcd-ca")
    async with _Saying(ca, answer) as url, Gateway(context_of(ca)) as gateway:
        with pytest.raises(GatewayError, match=why):
            await gateway.members(url, agreed=True)


async def test_addresses_that_members_tell_are_plain_addresses_with_tls() -> None:
    ca = credentials.issue("etcd-ca")
    urls = '["http://10.0.0.1:2379", "https://evil.example:2379", "https://a@10.0.0.1:1", "https://10.0.0.9:2379/x"]'
    body = f'{{"members": [{{"ID": "18446744073709551615", "name": "a\\u0007b", "clientURLs": {urls}}}]}}'.encode()
    async with _Saying(ca, body) as url, Gateway(context_of(ca)) as gateway:
        [found] = await gateway.members(url, agreed=False)
    assert (found.id, found.name, found.url) == ((1 << 64) - 1, "a?b", "")


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1"])
async def test_addresses_that_servers_may_not_have_are_not_connected_to(address: str) -> None:
    """Machines' statuses and member lists are written by others."""
    ca = credentials.issue("etcd-ca")
    url, refused = url_of(address, 2379), current().why_not(address)
    body = f'{{"members": [{{"ID": "5", "name": "a", "clientURLs": ["{url}"]}}]}}'.encode()
    async with _Saying(ca, body) as saying, Gateway(context_of(ca)) as gateway:
        port = int(saying.rsplit(":", 1)[1])
        told = await read(gateway, (EtcdHost("a", "127.0.0.1"),), now(), port)
        asked = await read(gateway, (EtcdHost("a", address), EtcdHost("b", "evil.example/x")), now())
    assert isinstance(told, EtcdMembers)
    assert [(m.healthy, m.why) for m in told.members] == [(False, refused)]
    assert asked == EtcdUnread(f"{url}: {refused}; {url}: {refused}")


class _Saying:
    """An HTTPS server on loopback that answers anything with ``answer``."""

    def __init__(self, ca: credentials.Pair, answer: bytes) -> None:
        self._pair = credentials.issue("etcd", issuer=ca)
        self._answer = answer

    async def __aenter__(self) -> str:
        import tempfile  # noqa: PLC0415

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"".join(pem_of(self._pair)))
            file.flush()
            context.load_cert_chain(file.name)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        return url_of("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(self._answer))
        writer.write(self._answer)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()
