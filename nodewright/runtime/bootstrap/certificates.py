"""What is known of each Cluster's certificates, read in the background while somebody asks, and the renewal of one.

    reconcile -> look -> (Secrets, and what servers show, now and then) -> plan -> RenewKubeconfig -> submit -> read

Certificates of servers are taken from a TLS handshake in which nothing of ours is sent and nothing is believed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from controllers.bootstrap.renewal import assess, readable_der, renew, secrets_of
from controllers.kernel.actions import RenewKubeconfig
from controllers.kernel.certificates import (
    Certificate,
    CertificateKind,
    CertificatesNeed,
    CertificatesRead,
    CertificatesUnread,
)
from controllers.kernel.refs import SECRET, Key, Obj
from nodewright.runtime.bootstrap.conversing import Sides, converse
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import SocketFactory
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.kube.servers import checked_sockets
from providers.base.addresses import current

_log = structlog.get_logger("nodewright.certificates")

PAUSE, PAUSE_IN_TROUBLE = 300.0, 20.0
"""Seconds between two reads; the second while something is wrong or could not be read."""
LIMIT = 60.0
"""Seconds for a read or a renewal."""
HANDSHAKE = 5.0
"""Seconds for one handshake."""
RETRY = 120.0
"""Seconds from a renewal that failed to the next."""
AT_ONCE = 8
FORGET = 3600.0
"""Seconds after which a Cluster that nobody asks for is forgotten."""
PORTS = ((CertificateKind.API_SERVER, 6443), (CertificateKind.ETCD, 2379))
"""Where kubeadm has them listen."""


@dataclass(slots=True)
class _Known:
    """``turn`` grows with each change: what was begun in an earlier one counts for nothing."""

    need: CertificatesNeed
    asked_at: float
    result: CertificatesRead | CertificatesUnread | None = None
    due_at: float = float("-inf")
    turn: int = 0
    task: asyncio.Task[None] | None = None
    renews: bool = False
    held_up: str = ""
    retry_at: float = float("-inf")


class CertificateDirectory:
    """``CertificatesView``. One event loop; ``close`` at the end. ``client``: fenced; ``ports``: others, for tests."""

    def __init__(
        self,
        client: KubeClient,
        now: Callable[[], datetime],
        sockets: SocketFactory | None = None,
        ports: tuple[tuple[CertificateKind, int], ...] = PORTS,
    ) -> None:
        self._client = client
        self._now = now
        self._sockets = sockets or checked_sockets(current())
        self._ports = ports
        self._known: dict[Key, _Known] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    def look(self, need: CertificatesNeed) -> CertificatesRead | CertificatesUnread | None:
        at = self._time()
        self._known = {key: each for key, each in self._known.items() if each.task or at - each.asked_at < FORGET}
        known = self._known.setdefault(need.key, _Known(need, at))
        known.asked_at = at
        if known.need != need:
            if known.need.cluster != need.cluster or known.need.endpoint != need.endpoint:
                known.result = None
            known.need, known.due_at, known.turn = need, float("-inf"), known.turn + 1
        if known.task is None and at >= known.due_at:
            self._begin(known, self._read(known, need, known.turn), f"read certificates of {need.key}")
        return known.result or CertificatesUnread("they were not read yet", finding_out=True)

    def submit(self, action: RenewKubeconfig) -> bool:
        """False while a renewal is under way for this Cluster, and for a while after one that failed."""
        known = self._known.get(action.cluster.key)
        if known is None or self._closed or known.renews or self._time() < known.retry_at:
            return False
        known.turn += 1
        known.result, known.due_at, known.renews = None, float("-inf"), True
        return self._begin(known, self._renew(known, action), f"renew the kubeconfig of {action.cluster.key}")

    def ends(self) -> Iterator[tuple[CertificateKind, datetime]]:
        """Expiry of all certificates that are known."""
        for known in self._known.values():
            if isinstance(known.result, CertificatesRead):
                yield from ((each.kind, each.ends) for each in known.result.certificates)

    async def close(self, grace: float) -> None:
        self._closed = True
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
                async with asyncio.timeout(LIMIT), self._slots:
                    await work
            except TimeoutError:
                _log.warning("certificates took too long", what=name)
            except Exception as error:
                _log.exception("a look at certificates failed", what=name, error=type(error).__name__)
            finally:
                work.close()
                if known.task is asyncio.current_task():  # else a renewal has taken its place
                    known.task, known.renews = None, False

        known.task = asyncio.create_task(run(), name=name, context=Context())
        return True

    async def _read(self, known: _Known, need: CertificatesNeed, turn: int) -> None:
        known.due_at = self._time() + PAUSE_IN_TROUBLE
        result = await self._look_at(need)
        if isinstance(result, CertificatesRead) and result.renewal and self._time() < known.retry_at:
            result = replace(result, renewal="", held_up=f"{result.renewal}: {known.held_up}")
        if known.turn == turn:
            known.result = result
            sound = isinstance(result, CertificatesRead) and not (result.faults or result.unread or result.held_up)
            known.due_at = self._time() + (PAUSE if sound else PAUSE_IN_TROUBLE)

    async def _look_at(self, need: CertificatesNeed) -> CertificatesRead | CertificatesUnread:
        secrets: dict[Key, Obj | None] = {}
        for key in secrets_of(need.key, need.endpoint):
            try:
                secrets[key] = await self._client.get(SECRET, key)
            except ApiError as error:
                if not error.not_found:
                    return CertificatesUnread(f"Secret {key} can't be read: {error.plain}")
                secrets[key] = None
            except KubeError as error:
                return CertificatesUnread(f"Secret {key} can't be read: {error.plain}")
        read = await asyncio.to_thread(assess, need.cluster, need.endpoint, secrets, self._now())
        shown = await asyncio.gather(
            *(self._shown(name, address, kind, port) for name, address in need.hosts for kind, port in self._ports)
        )
        certificates = tuple(each for each in shown if isinstance(each, Certificate))
        unread = tuple(each for each in shown if isinstance(each, str))
        return replace(read, certificates=read.certificates + certificates, unread=unread)

    async def _shown(self, name: str, address: str, kind: CertificateKind, port: int) -> Certificate | str:
        """The certificate that a server shows, or why it shows none."""
        title = f"{kind} of Machine {name}"
        try:
            async with asyncio.timeout(HANDSHAKE):
                der = await self._handshake(address, port)
        except (OSError, ValueError, ssl.SSLError) as error:
            return f"{title}: {_why(error)}"
        found = readable_der(der)
        if found is None:
            return f"{title}: it shows no certificate that can be read"
        holder = f"the certificate of the {title}"
        return Certificate(kind, holder, found.not_valid_after_utc, name, found.not_valid_before_utc)

    async def _handshake(self, address: str, port: int) -> bytes:
        """The server's certificate in DER. Raises OSError, ValueError. etcd asks for a client's certificate only after
        it has shown its own (TLS 1.3).
        """
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        made = self._sockets((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)))
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, (address, port))
            _, writer = await asyncio.open_connection(sock=made, ssl=context, server_hostname="")
        except BaseException:
            made.close()
            raise
        try:
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return bytes(shown or b"")
        finally:
            writer.transport.abort()

    async def _renew(self, known: _Known, action: RenewKubeconfig) -> None:
        try:
            why = await converse(renew(action.cluster, action.endpoint, self._now()), Sides(self._client, None))
        except KubeError as error:
            known.held_up, known.retry_at = error.plain, self._time() + RETRY
            _log.warning("a kubeconfig was not renewed", cluster=str(action.cluster.key), why=error.plain)
            return
        if why:
            _log.info("a kubeconfig was renewed", cluster=str(action.cluster.key), why=why)

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {HANDSHAKE:.0f} s"
    if isinstance(error, ConnectionError):
        return "no connection"
    return type(error).__name__
