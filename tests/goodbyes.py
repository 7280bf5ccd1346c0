"""TLS connections that were closed and wait for their peer's goodbye are ended with their event loop.

``close`` of a TLS transport sends ``close_notify`` and keeps the socket until the peer answers it, up to 30 s
(``ssl_shutdown_timeout`` of asyncio). aiohttp closes a connection so when a request is cancelled or a watch is left,
and doesn't wait for it. A loop that ends in between leaves the socket to the garbage collector, which warns of it
within whatever test runs minutes later, and with ``filterwarnings = error`` fails that one. Connections that nobody
closed are left as they are: those are faults of their test.
"""

from __future__ import annotations

import asyncio
from asyncio.selector_events import BaseSelectorEventLoop
from asyncio.sslproto import SSLProtocol

_CLOSE = BaseSelectorEventLoop.close


def register() -> None:
    """For all event loops of the process, from now on."""
    BaseSelectorEventLoop.close = _close  # type: ignore[method-assign, assignment]


def _close(loop: BaseSelectorEventLoop) -> None:
    if not loop.is_closed() and (waiting := _waiting(loop)):
        for transport in waiting:
            transport.abort()
        loop.run_until_complete(asyncio.sleep(0))  # an aborted transport closes its socket in the loop's next turn
    _CLOSE(loop)


def _waiting(loop: BaseSelectorEventLoop) -> list[asyncio.Transport]:
    """The transports below a TLS connection that is closing. asyncio has no public name for them."""
    found: list[asyncio.Transport] = list(loop._transports.values())  # type: ignore[attr-defined]
    return [transport for transport in found if _says_goodbye(transport)]


def _says_goodbye(transport: asyncio.Transport) -> bool:
    protocol = transport.get_protocol()
    if not isinstance(protocol, SSLProtocol) or transport.is_closing():
        return False
    above = protocol._app_transport
    return above is not None and bool(above.is_closing())
