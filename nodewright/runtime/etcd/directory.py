"""What is known of each Cluster's etcd, read in the background while somebody asks for it.

    reconcile -> look -> (a read every few seconds) -> plan -> RemoveEtcdMember -> submit -> nothing is known -> read

After a change nothing is known until etcd was read anew: a read that was begun before it counts for nothing.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from controllers.kernel.actions import EtcdAction, RemoveEtcdMember, TakeEtcdSnapshot
from controllers.kernel.etcd import EtcdHost, EtcdRead, EtcdUnread
from controllers.kernel.refs import SECRET, Key, mapping
from nodewright.runtime.etcd.certificate import AuthorityError, ClientCertificate, issue
from nodewright.runtime.etcd.gateway import Gateway, NotReadable
from nodewright.runtime.etcd.reading import CLIENT_PORT, RemovalRefused, read, remove
from nodewright.runtime.etcd.snapshots import EtcdSnapshots, Means
from nodewright.runtime.etcd.ways import Locate, Ways, nowhere
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError, ConfigurationError, KubeError
from nodewright.runtime.kube.servers import ServerPolicy

_log = structlog.get_logger("nodewright.etcd")

SECRET_SUFFIX = "-etcd"  # noqa: S105 (the end of a name)
"""The Secret ``<cluster>-etcd`` holds etcd's CA: ``tls.crt`` and ``tls.key`` (Cluster API's names)."""
PAUSE = 4.0
"""Seconds between two reads."""
HELD = 60.0
"""Seconds for which a read counts."""
LIMIT = 30.0
"""Seconds for a read, or a removal."""
FORGET = 900.0
"""Seconds after which a Cluster that nobody asks for is forgotten."""

Hosts = tuple[EtcdHost, ...]


@dataclass(slots=True)
class _Known:
    """``turn`` grows with each change: what was begun in an earlier one counts for nothing.

    ``removes``: what is under way is a removal, and no read.
    """

    hosts: Hosts
    asked_at: float
    ways: Ways
    result: EtcdRead | None = None
    read_at: float = float("-inf")
    turn: int = 0
    task: asyncio.Task[None] | None = None
    removes: bool = False
    certificate: ClientCertificate | None = None
    authority: tuple[bytes, bytes] = (b"", b"")


class EtcdDirectory:
    """``EtcdView``. One event loop; ``close`` at the end. ``port``: another client port, for tests.

    ``servers``: which members and which buckets may be asked. ``locate``: where providers have ways of their own.
    """

    def __init__(
        self,
        client: KubeClient,
        now: Callable[[], datetime],
        port: int = CLIENT_PORT,
        servers: ServerPolicy | None = None,
        locate: Locate = nowhere,
    ) -> None:
        self._servers = servers = servers or ServerPolicy()
        self._client = client
        self._now = now
        self._port = port
        self._locate = locate
        self._known: dict[Key, _Known] = {}
        self._closed = False
        self.snapshots = EtcdSnapshots(Means(client, self.gateway, now, servers, port, locate))

    def look(self, cluster: Key, hosts: Hosts) -> EtcdRead:
        at = self._time()
        self._known = {key: each for key, each in self._known.items() if each.task or at - each.asked_at < FORGET}
        known = self._known.setdefault(cluster, self._new(cluster, hosts, at))
        known.asked_at = at
        if known.hosts != hosts:
            # Read before a Machine went, a member of it looks healthy, and like nobody's.
            known.hosts = hosts
            self._forget_reads(known)
        if known.task is None and at - known.read_at >= PAUSE:
            self._begin(known, self._read(cluster, known, known.turn), f"read etcd of {cluster}")
        if known.result is None or at - known.read_at > HELD:
            return EtcdUnread("it was not read yet", finding_out=True)
        return known.result

    def submit(self, action: EtcdAction) -> bool:
        """False if it can't be begun now; then it is decided anew."""
        return self.snapshots.submit(action) if isinstance(action, TakeEtcdSnapshot) else self._submit(action)

    def _submit(self, action: RemoveEtcdMember) -> bool:
        """False while a removal is under way for this cluster: then it is decided anew. A removal waits for a read
        to end: with a host that does not answer, a read is under way nearly all the time.
        """
        known = self._known.get(action.cluster)
        if known is None or self._closed:
            return False
        if known.removes:
            return False
        self._forget_reads(known)
        known.removes = True
        return self._begin(known, self._remove(action, known, known.task), f"remove an etcd member of {action.cluster}")

    @asynccontextmanager
    async def gateway(self, cluster: Key) -> AsyncIterator[Gateway]:
        """For others who ask its members. Raises NotReadable."""
        known = self._known.get(cluster) or self._new(cluster, (), self._time())
        async with await self._gateway(cluster, known) as gateway:
            yield gateway

    def _new(self, cluster: Key, hosts: Hosts, at: float) -> _Known:
        return _Known(hosts, at, Ways(self._locate, cluster.namespace, self._port))

    @staticmethod
    def _forget_reads(known: _Known) -> None:
        known.turn += 1
        known.result, known.read_at = None, float("-inf")

    async def close(self, grace: float) -> None:
        self._closed = True
        await self.snapshots.close(grace)
        tasks = [known.task for known in self._known.values() if known.task is not None]
        if tasks:
            _done, pending = await asyncio.wait(tasks, timeout=grace)
            for task in pending:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, known: _Known, work: Coroutine[Any, Any, None], name: str) -> bool:
        if self._closed:
            work.close()
            return False

        async def run() -> None:
            try:
                async with asyncio.timeout(LIMIT):
                    await work
            except TimeoutError:
                _log.warning("etcd took too long", what=name)
            except Exception as error:
                _log.exception("a look at etcd failed", what=name, error=type(error).__name__)
            finally:
                if known.task is asyncio.current_task():  # else another one has taken its place
                    known.task, known.removes = None, False

        known.task = asyncio.create_task(run(), name=name, context=Context())
        return True

    async def _read(self, cluster: Key, known: _Known, turn: int) -> None:
        result = await self._look_at(cluster, known)
        if known.turn == turn:
            known.result, known.read_at = result, self._time()

    async def _look_at(self, cluster: Key, known: _Known) -> EtcdRead:
        try:
            async with await self._gateway(cluster, known) as gateway:
                return await read(gateway, known.hosts, self._now(), self._port)
        except NotReadable as error:
            return EtcdUnread(str(error))

    async def _remove(self, action: RemoveEtcdMember, known: _Known, read: asyncio.Task[None] | None) -> None:
        if read is not None:
            try:
                await asyncio.wait({read})
            except asyncio.CancelledError:
                read.cancel()
                raise
        log = _log.bind(cluster=str(action.cluster), member=f"{action.member:x}")
        try:
            async with await self._gateway(action.cluster, known) as gateway:
                await remove(gateway, known.hosts, action, self._port)
        except (NotReadable, RemovalRefused) as error:
            log.warning("an etcd member stays", why=str(error))
        else:
            log.info("an etcd member was removed")

    async def _gateway(self, cluster: Key, known: _Known) -> Gateway:
        """Raises NotReadable. The certificate is made anew when the CA changes, or half of its life is over."""
        authority = await self._authority(Key(cluster.namespace, f"{cluster.name}{SECRET_SUFFIX}"))
        certificate = known.certificate
        if certificate is None or authority != known.authority or self._now() >= certificate.renew_at:
            try:
                certificate = issue(*authority, self._now())
            except AuthorityError as error:
                raise NotReadable(f"Secret {cluster}{SECRET_SUFFIX}, {error}") from None
            known.certificate, known.authority = certificate, authority
        connection = Connection(
            "https://etcd", ca=certificate.ca, client_certificate=certificate.certificate, client_key=certificate.key
        )
        try:
            context = connection.ssl_context()
        except ConfigurationError:
            raise NotReadable(f"Secret {cluster}{SECRET_SUFFIX}, tls.crt: can't be used") from None
        assert context is not None
        known.ways.know(known.hosts)
        return Gateway(context, self._servers.sockets(), known.ways)

    async def _authority(self, key: Key) -> tuple[bytes, bytes]:
        try:
            secret = await self._client.get(SECRET, key)
        except ApiError as error:
            what = "there is none" if error.not_found else "it can't be read"
            raise NotReadable(f"Secret {key} with etcd's CA: {what}") from None
        except KubeError:
            raise NotReadable(f"Secret {key} with etcd's CA: it can't be read") from None
        data = mapping(secret.get("data"))
        found = []
        for name in ("tls.crt", "tls.key"):
            try:
                found.append(base64.b64decode(data[name], validate=True))
            except (KeyError, TypeError, binascii.Error, ValueError):
                raise NotReadable(f"Secret {key}, {name}: missing or no base64") from None
        return found[0], found[1]

    def _time(self) -> float:
        return asyncio.get_running_loop().time()
