"""The tests' event loops end TLS connections that wait for a peer's goodbye, and no others."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.gateways.pems import issue


@contextmanager
def silent_peer() -> Iterator[socket.socket]:
    """A listening socket whose owner reads nothing by itself."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        yield listening


def left(of: Callable[[], None]) -> list[str]:
    """What the garbage collector warns of after a function."""
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        of()
        gc.collect()
    return [str(one.message) for one in seen if one.category is ResourceWarning]


def handshake(listening: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The peer's end of one connection, which will never answer a close."""
    return context.wrap_socket(listening.accept()[0], server_side=True)


def test_a_closed_tls_connection_whose_peer_hangs_leaves_nothing(tmp_path: Path) -> None:
    cert, key = issue("server").write(tmp_path)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(cert, key)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.check_hostname, ours.verify_mode = False, ssl.CERT_NONE

    async def close_and_leave() -> None:
        with silent_peer() as listening:
            accepting = asyncio.create_task(asyncio.to_thread(handshake, listening, theirs))
            _, writer = await asyncio.open_connection(*listening.getsockname(), ssl=ours, server_hostname="")
            peer = await accepting
            writer.close()
            assert len(asyncio.get_running_loop()._transports) == 1  # type: ignore[attr-defined]
            peers.append(peer)

    peers: list[ssl.SSLSocket] = []
    try:
        assert left(lambda: asyncio.run(close_and_leave())) == []
    finally:
        for peer in peers:
            peer.close()


def test_a_connection_that_nobody_closed_is_still_warned_of() -> None:
    async def leave(address: tuple[str, int]) -> None:
        await asyncio.get_running_loop().create_connection(asyncio.Protocol, *address)

    with silent_peer() as listening:
        found = left(lambda: asyncio.run(leave(listening.getsockname())))
    assert any("unclosed transport" in one for one in found)
