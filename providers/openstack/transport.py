"""The HTTP below the SDK, held: a Secret of a namespace names the cloud, so its answers are as little trusted.

No redirect, no proxy and no ``.netrc`` of this machine; addresses as the process's policy has them; bodies bounded in
bytes and time. Imported in a thread, with the SDK.
"""

from __future__ import annotations

import time
from typing import Any

from keystoneauth1.session import TCPKeepAliveAdapter
from requests import PreparedRequest, Response
from requests.exceptions import ConnectionError as NoConnection
from requests.exceptions import ReadTimeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from providers.base import addresses

LARGEST = 64 << 20
"""Bytes of one answer; a page of 200 servers has some 600 KiB."""
_PIECE = 64 << 10


class _Plain(HTTPConnection):
    def _new_conn(self) -> Any:
        return _checked(super()._new_conn())


class _Secured(HTTPSConnection):
    def _new_conn(self) -> Any:
        return _checked(super()._new_conn())


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecuredPool(HTTPSConnectionPool):
    ConnectionCls = _Secured


class _Adapter(TCPKeepAliveAdapter):  # type: ignore[misc, unused-ignore]
    """``seconds``: how long an answer may take to its last byte."""

    def __init__(self, seconds: float, largest: int = LARGEST) -> None:
        self._seconds = seconds
        self._largest = largest
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecuredPool}

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        request.headers["Accept-Encoding"] = "identity"  # a compressed answer can be a thousand times what it seems
        ends = time.monotonic() + self._seconds
        response: Response = super().send(request, *args, **{**kwargs, "stream": True})
        if response.headers.get("Content-Encoding", "identity").lower() not in {"", "identity"}:
            response.close()
            raise NoConnection("the answer is compressed, though that was not asked for")
        parts: list[bytes] = []
        size = 0
        while part := response.raw.read1(_PIECE, decode_content=False):  # what is there, however little
            size += len(part)
            if size > self._largest or time.monotonic() > ends:
                response.close()
                raise NoConnection("the answer is too large") if size > self._largest else ReadTimeout()
            parts.append(part)
        # requests has no public way to hand in a body that was read in pieces.
        response._content = b"".join(parts)
        response._content_consumed = True
        return response


def harden(connection: Any, seconds: float, largest: int = LARGEST) -> None:
    """Change an SDK's connection before its first request."""
    keystone = connection.session
    keystone.redirect = False
    keystone.session.trust_env = False
    for scheme in list(keystone.session.adapters):
        keystone.session.mount(scheme, _Adapter(seconds, largest))


def _checked(connected: Any) -> Any:
    """Nothing was sent yet: TLS and HTTP come after."""
    try:
        addresses.current().check(str(connected.getpeername()[0]))
    except OSError:
        connected.close()
        raise
    return connected
