"""Where hosts join: server, CA and version of an API server as hosts see it. Asked in the background, held for a while.

An address that only pods or this machine can reach is of no use to a host that has yet to join.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog

from api import yamltext
from api.conditions import Reason
from controllers.kernel.bootstrapping import JoinTarget, NoTarget
from controllers.kernel.refs import CONFIG_MAP, Key, mapping, objects
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError

_log = structlog.get_logger("nodewright.bootstrap")

HELD, RETRIED = 60.0, 15.0
"""Seconds for which an answer counts, and after which one is asked for again that was none. Workers whose control plane
was upgraded wait for as long as that."""
OUTLASTS = 300.0
"""Seconds for which an answer counts while the API server does not answer anew."""
FORGET = 3600.0
"""Seconds after which a Cluster that nobody asks for is forgotten. It holds a CA, and tenants make and delete many."""
CLUSTER_INFO = Key("kube-public", "cluster-info")
"""What kubeadm's clusters say of themselves."""
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")
_LARGEST_CA = 64 << 10


@dataclass(frozen=True, slots=True)
class Site:
    """An API server that hosts may join. ``client`` None: no contact."""

    client: KubeClient | None
    title: str
    is_workload: bool = False


class Sites(Protocol):
    """Finds it for a Cluster; None: it is being found out."""

    def __call__(self, cluster: Key | None) -> Site | None: ...


@dataclass(slots=True)
class _Known:
    value: JoinTarget | NoTarget
    until: float
    asked_at: float
    answered_at: float
    """When ``value`` was answered; not later than ``asked_at``."""


class Targets:
    """``changed`` is called with the Cluster once more is known of where it is joined."""

    def __init__(self, sites: Sites, now: Callable[[], datetime], changed: Callable[[Key | None], None]) -> None:
        self._sites = sites
        self._now = now
        self._changed = changed
        self._known: dict[Key | None, _Known] = {}
        self._pending: dict[Key | None, asyncio.Task[None]] = {}

    def look(self, cluster: Key | None, endpoint: str) -> JoinTarget | NoTarget | None:
        """``endpoint`` takes the place of the server that the cluster names. None: it is being asked."""
        site = self._sites(cluster)
        if site is None:
            return None
        place = cluster if site.is_workload else None
        known = self._known.get(place)
        if known is not None:
            known.asked_at = self._time()
        if site.client is None:
            if known is None or isinstance(known.value, NoTarget):
                return NoTarget(str(Reason.WORKLOAD_UNREACHABLE), f"{site.title} can't be reached")
            return with_server(known.value, endpoint, site)
        if known is None or known.until <= self._time():
            self._ask(place, site, site.client)
        if known is None:
            return None
        return with_server(known.value, endpoint, site)

    async def close(self) -> None:
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, place: Key | None, site: Site, client: KubeClient) -> None:
        if place not in self._pending:
            work = self._answered(place, site, client)
            self._pending[place] = asyncio.create_task(work, name=f"join target {place}", context=Context())

    async def _answered(self, place: Key | None, site: Site, client: KubeClient) -> None:
        before = self._known.get(place)
        try:
            answer = await ask(site, client, self._now())
        except Exception as error:
            _log.exception("join target failed")
            answer = NoTarget(str(Reason.NO_ENDPOINT), f"{site.title} can't be understood ({type(error).__name__})")
        finally:
            self._pending.pop(place, None)
        now = answered_at = self._time()
        held = HELD if isinstance(answer, JoinTarget) else RETRIED
        if before is not None and _outlasts(before, answer, now):
            answer, answered_at = before.value, before.answered_at
        self._known = {key: each for key, each in self._known.items() if now - each.asked_at < FORGET}
        self._known[place] = _Known(answer, now + held, now, answered_at)
        if before is None or before.value != answer:
            self._changed(place)

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()


def _outlasts(before: _Known, answer: JoinTarget | NoTarget, now: float) -> bool:
    """An API server that is away for a moment, as in its own upgrade, does not take back what it answered."""
    away = isinstance(answer, NoTarget) and answer.reason == Reason.WORKLOAD_UNREACHABLE
    return away and isinstance(before.value, JoinTarget) and now - before.answered_at < OUTLASTS


async def ask(site: Site, client: KubeClient, now: datetime) -> JoinTarget | NoTarget:
    """What ``client`` tells of where hosts join; ``server`` "" where nobody says. Raises nothing."""
    connection = client.connection
    try:
        version = _VERSION.match(str((await client.version()).get("gitVersion") or ""))
        answer = await _cluster_info(client)
    except KubeError as error:
        return NoTarget(str(Reason.WORKLOAD_UNREACHABLE), f"{site.title} can't be asked: {error.plain}")
    ca = connection.ca or answer.ca
    fault = ca_fault(ca, now)
    if fault:
        text = f"the CA of {site.title} {fault}; name its PEM as certificate-authority-data in the kubeconfig"
        return NoTarget(str(Reason.INVALID_CERTIFICATE_AUTHORITY), text)
    own = "" if connection.in_cluster else connection.server
    found = (own, answer.server) if site.is_workload else (answer.server, own)
    server = next((each for each in found if is_reachable(each)), "")
    return JoinTarget(server, ca.decode(), version[1] if version else "")


def with_server(answer: JoinTarget | NoTarget, endpoint: str, site: Site) -> JoinTarget | NoTarget:
    """The same with the server that somebody names in its place, "" for nobody."""
    if isinstance(answer, NoTarget):
        return answer
    if endpoint or answer.server:
        return replace(answer, server=endpoint or answer.server)
    text = (
        f"nobody says at which URL hosts reach {site.title}: set spec.bootstrap.endpoint of the Cluster or "
        "the Machine, or status.apiEndpoints of the Cluster"
    )
    return NoTarget(str(Reason.NO_ENDPOINT), text)


@dataclass(frozen=True, slots=True)
class _ClusterInfo:
    server: str = ""
    ca: bytes = b""


async def _cluster_info(client: KubeClient) -> _ClusterInfo:
    """What ``kube-public/cluster-info`` says; nothing where there is none or it may not be read."""
    try:
        found = await client.get(CONFIG_MAP, CLUSTER_INFO)
    except ApiError as error:
        if error.code in {401, 403, 404}:
            return _ClusterInfo()
        raise
    text = mapping(found.get("data")).get("kubeconfig")
    if not isinstance(text, str):
        return _ClusterInfo()
    try:
        document = yamltext.load(text)
    except ValueError:
        return _ClusterInfo()
    cluster: Any = next((mapping(each.get("cluster")) for each in objects(mapping(document).get("clusters"))), {})
    try:
        ca = base64.b64decode(str(cluster.get("certificate-authority-data") or ""), validate=True)
    except (binascii.Error, ValueError):
        ca = b""
    return _ClusterInfo(str(cluster.get("server") or ""), ca)


def is_reachable(server: str) -> bool:
    """Whether a host may reach it at all: HTTPS, and neither this machine's own address nor a name of pods."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if parts.scheme != "https" or not host or parts.path not in ("", "/"):
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host != "localhost" and not host.endswith((".localhost", ".svc", ".svc.cluster.local"))
    return not (address.is_loopback or address.is_unspecified or address.is_link_local or address.is_multicast)


def ca_fault(pem: bytes, now: datetime) -> str:
    """What is wrong with a CA's PEM, "" if hosts can trust it. One valid certificate among several is enough."""
    from cryptography import x509  # noqa: PLC0415  (slow to import)

    if not pem or len(pem) > _LARGEST_CA:
        return "is not known" if not pem else f"is larger than {_LARGEST_CA} bytes"
    try:
        ends = max(certificate.not_valid_after_utc for certificate in x509.load_pem_x509_certificates(pem))
    except ValueError:
        return "is no PEM of certificates"
    return f"expired on {ends:%Y-%m-%d}" if ends <= now else ""
