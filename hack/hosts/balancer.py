"""A load balancer of connections: one address in front of API servers of which some may be away. For tests on a lab.

It does what one in front of a control plane is set up to do: ask each server for ``/readyz`` (which anybody may, with
kubeadm's settings), give it no connection while it is not ready, and cut those that it has.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Backend = tuple[str, int]
T = TypeVar("T")
LOOK_SECONDS, PATIENCE_SECONDS = 1.0, 2.0


class Balancer:
    """``with Balancer(address, backends)``: a connection to ``address:port`` goes to a backend that is ready.

    While none is, it goes to the first that takes it. The backends take turns. ``port`` is one that the kernel gave.
    """

    def __init__(self, address: str, backends: Sequence[Backend]) -> None:
        self._backends = list(backends)
        self._ready: dict[Backend, bool] = {}
        self._open: dict[Backend, set[socket.socket]] = {backend: set() for backend in backends}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._turn = 0
        self._server = socket.create_server((address, 0), backlog=128)
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Balancer:
        threading.Thread(target=self._serve, daemon=True).start()
        for backend in self._backends:
            threading.Thread(target=self._watch, args=(backend,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _watch(self, backend: Backend) -> None:
        while not self._over.wait(LOOK_SECONDS):
            ready = _is_ready(backend)
            with self._lock:
                lost = self._ready.get(backend) and not ready
                self._ready[backend] = ready
                cut = list(self._open[backend]) if lost else []
            for connection in cut:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        found = self._connected()
        if found is None:
            client.close()
            return
        name, backend = found
        with self._lock:
            self._open[name].add(backend)
        back = threading.Thread(target=_pump, args=(backend, client), daemon=True)
        back.start()
        _pump(client, backend)
        back.join()
        with self._lock:
            self._open[name].discard(backend)
        for side in (client, backend):
            side.close()

    def _connected(self) -> tuple[Backend, socket.socket] | None:
        self._turn += 1
        turn = self._turn % len(self._backends)
        order = [*self._backends[turn:], *self._backends[:turn]]
        for backend in sorted(order, key=lambda each: not self._ready.get(each)):
            with contextlib.suppress(OSError):
                return backend, socket.create_connection(backend, timeout=PATIENCE_SECONDS)
        return None


def _is_ready(backend: Backend) -> bool:
    """Whether ``/readyz`` answers with 200.

    TLS runs on memory buffers. If the peer resets the connection before the handshake, ``SSLSocket._create`` of CPython
    3.11 raises without closing the socket, and the ResourceWarning fails the test that runs at that moment.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = ssl._create_unverified_context().wrap_bio(incoming, outgoing)
    request = f"GET /readyz HTTP/1.0\r\nHost: {backend[0]}\r\n\r\n".encode()
    with contextlib.suppress(OSError), socket.create_connection(backend, timeout=PATIENCE_SECONDS) as connection:

        def run(act: Callable[[], T]) -> T:
            while True:
                try:
                    result = act()
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    received = connection.recv(65536)
                    if not received:
                        raise ConnectionError("closed by the peer") from None
                    incoming.write(received)
                    continue
                connection.sendall(outgoing.read())
                return result

        run(session.do_handshake)
        run(lambda: session.write(request))
        return b" 200 " in run(lambda: session.read(64))
    return False


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Until either side ends; then both directions do."""
    source.settimeout(None)
    target.settimeout(None)
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for side in (source, target):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
