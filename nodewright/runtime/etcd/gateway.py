"""etcd's JSON gateway on a member's client port: the calls that controllers need, bounded in time and size.

Paths and fields are those of etcd's ``rpc.proto`` (api/etcdserverpb, 3.5 and 3.6): 64-bit numbers are decimal strings.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from nodewright.runtime.etcd.ways import Tunnels, Way, Ways
from nodewright.runtime.kube.connection import SocketFactory
from nodewright.runtime.kube.servers import checked_sockets
from providers.base.addresses import AddressRefusedError, current

MOST_BYTES = 1 << 20
"""Bytes of an answer; a list of seven members has 2 KiB."""
TIMEOUT = 5.0
"""Seconds for one call."""
HURRY = 2.0
"""Seconds for a direct connection where there is another way."""
SILENCE = 60.0
"""Seconds for which a snapshot may stand still."""
MOST_MEMBERS = 32
MOST_TEXT = 200


class GatewayError(Exception):
    """A member did not answer, or not as etcd does; the message is short and for people."""


class NotReadable(Exception):
    """Why a cluster's etcd can't be asked at all."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of the member list. ``url``: where its client port is, "" if it says none that can be used."""

    id: int
    name: str
    learner: bool
    url: str


@dataclass(frozen=True, slots=True)
class Status:
    """What a member says of itself. ``leader`` 0: it knows of none; ``version``: of its program, without ``v``;
    ``revision``: of its data."""

    member: int
    leader: int
    db_size_bytes: int
    errors: tuple[str, ...] = ()
    version: str = ""
    revision: int = 0


class Gateway:
    """One TLS configuration, any member. ``async with`` it.

    ``sockets``: which addresses may be connected to (None: as the process allows it); they come from statuses of
    Machines and from the member list, so others write them. ``ways``: where another one than the direct one leads.
    """

    def __init__(self, context: ssl.SSLContext, sockets: SocketFactory | None = None, ways: Ways | None = None) -> None:
        self._context = context
        self._ways = ways
        self._tunnels = Tunnels(ways) if ways is not None else None
        self._sockets = sockets or checked_sockets(current())
        self._sessions: dict[Way, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Gateway:
        self._sessions[Way.DIRECT] = self._session(self._sockets)
        if self._tunnels is not None:
            self._sessions[Way.CHANNEL] = self._session(self._tunnels.make)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            await session.close()
        if self._tunnels is not None:
            await self._tunnels.close()

    def _session(self, sockets: SocketFactory) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self._context, limit=16, socket_factory=sockets)
        return aiohttp.ClientSession(connector=connector, trust_env=False)

    async def members(self, url: str, *, agreed: bool) -> tuple[Listed, ...]:
        """The member list. ``agreed``: a quorum confirms it; else it is what this member knows."""
        answer = await self._ask(url, "/v3/cluster/member/list", {"linearizable": agreed})
        found = answer.get("members")
        if not isinstance(found, list) or not found or len(found) > MOST_MEMBERS:
            raise GatewayError("it lists no members, or too many")
        return tuple(_listed(each) for each in found)

    async def status(self, url: str) -> Status:
        answer = await self._ask(url, "/v3/maintenance/status", {})
        header = answer.get("header")
        header = header if isinstance(header, Mapping) else {}
        own, revision = _number(header.get("member_id")), _number(header.get("revision"))
        errors = answer.get("errors")
        reported = tuple(_text(each) for each in errors[:5]) if isinstance(errors, list) else ()
        leader, size = _number(answer.get("leader")), _number(answer.get("dbSize"))
        return Status(own, leader, size, reported, _text(answer.get("version") or ""), revision)

    async def alarms(self, url: str) -> dict[int, tuple[str, ...]]:
        """By member: ``NOSPACE``, ``CORRUPT``."""
        answer = await self._ask(url, "/v3/maintenance/alarm", {"action": "GET"})
        found: dict[int, tuple[str, ...]] = {}
        listed = answer.get("alarms")
        for each in (listed if isinstance(listed, list) else [])[: 2 * MOST_MEMBERS]:
            if isinstance(each, Mapping) and each.get("alarm") not in (None, "NONE"):
                member = _number(each.get("memberID"))
                found[member] = (*found.get(member, ()), _text(each["alarm"]))
        return found

    async def remove(self, url: str, member: int) -> None:
        await self._ask(url, "/v3/cluster/member/remove", {"ID": str(member)})

    async def snapshot(self, url: str) -> AsyncIterator[bytes]:
        """The member's answer as it comes, a line of JSON for each part of its database (``SnapshotReader``)."""
        try:
            async with await self._post(url, "/v3/maintenance/snapshot", {}, silence=SILENCE) as answer:
                if answer.status != 200:
                    raise GatewayError(f"HTTP {answer.status} for a snapshot")
                async for chunk in answer.content.iter_any():
                    yield chunk
        except TimeoutError:
            raise GatewayError(f"its snapshot stood still for {SILENCE:.0f} s") from None
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            raise GatewayError(_why(error)) from None

    async def _post(
        self, url: str, path: str, body: Mapping[str, Any], *, silence: float | None = None
    ) -> aiohttp.ClientResponse:
        """By the first way that is open: what may have been sent by one is sent by no other. ``silence``: seconds; then
        there is no limit of the whole.

        Raises GatewayError if there was another way, and neither is open; else what aiohttp raises.
        """
        parts = urlsplit(url)
        address = parts.hostname or ""
        ways = self._ways.order(address, parts.port) if self._ways is not None else (Way.DIRECT,)
        shut: list[str] = []
        for way in ways:
            connect = HURRY if way is Way.DIRECT and len(ways) > 1 else TIMEOUT
            limits = aiohttp.ClientTimeout(None if silence else TIMEOUT, sock_connect=connect, sock_read=silence)
            try:
                answer = await self._sessions[way].post(url + path, json=body, allow_redirects=False, timeout=limits)
            except (aiohttp.ClientError, OSError) as error:
                why = self._shut(address, way, error)
                if not why or self._ways is None or len(ways) == 1:
                    raise
                shut.append(why)
            else:
                if self._ways is not None:
                    self._ways.worked(address, way, tried=bool(shut))
                return answer
        raise GatewayError("; ".join(shut))

    def _shut(self, address: str, way: Way, error: Exception) -> str:
        """Why nothing was sent; "" if something may have been, or if the address is one that is to be left alone."""
        if way is Way.CHANNEL:
            assert self._tunnels is not None
            why = self._tunnels.problems.pop(address, "")
            return f"by its provider: {why}" if why else ""
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return "no connection"
        if not isinstance(error, aiohttp.ClientConnectorError) or isinstance(error, aiohttp.ClientSSLError):
            return ""
        return "" if isinstance(error.os_error, AddressRefusedError) else "no connection"

    async def _ask(self, url: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            async with await self._post(url, path, body) as answer:
                text = await answer.content.read(MOST_BYTES + 1)
                while len(text) <= MOST_BYTES and (more := await answer.content.read(MOST_BYTES)):
                    text += more
                status = answer.status
        except TimeoutError:
            raise GatewayError(f"no answer within {TIMEOUT:.0f} s") from None
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            raise GatewayError(_why(error)) from None
        if len(text) > MOST_BYTES:
            raise GatewayError("the answer is too long")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise GatewayError(f"HTTP {status} without JSON") from None
        if status != 200 or not isinstance(found, dict):
            message = found.get("message") or found.get("error") if isinstance(found, dict) else ""
            raise GatewayError(f"HTTP {status}: {_text(message)}")
        return found


def url_of(address: str, port: int) -> str:
    """URL of a host's client port; "" for what is no address."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return ""
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def _listed(found: object) -> Listed:
    if not isinstance(found, Mapping) or not (number := _number(found.get("ID"))):
        raise GatewayError("a member without an ID")
    urls = found.get("clientURLs")
    usable = [url for url in (urls if isinstance(urls, list) else [])[:8] if _is_usable(url)]
    return Listed(number, _text(found.get("name")), found.get("isLearner") is True, usable[0] if usable else "")


def _is_usable(url: object) -> bool:
    """An address with TLS and nothing more: members are asked by what the list says, and it is not ours."""
    if not isinstance(url, str) or len(url) > MOST_TEXT:
        return False
    try:
        parts = urlsplit(url)
        ipaddress.ip_address(parts.hostname or "")
        return parts.scheme == "https" and bool(parts.port) and url == f"https://{parts.netloc}" and "@" not in url
    except ValueError:
        return False


def _number(value: object) -> int:
    """A protobuf uint64 as JSON has it; 0 for anything else."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return value if 0 <= value < 1 << 64 else 0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return _number(int(value))
    return 0


def _text(value: object) -> str:
    return "".join(char if char.isprintable() else "?" for char in value[:MOST_TEXT]) if isinstance(value, str) else ""


def _why(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not one of etcd's CA for this address"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefusedError):
        return str(error.os_error.strerror)
    if isinstance(error, aiohttp.ClientConnectorError):
        return "no connection"
    if isinstance(error, asyncio.IncompleteReadError | aiohttp.ClientPayloadError):
        return "the answer ended early"
    return type(error).__name__
