"""A load balancer of connections: one address in front of hosts of which some may be away. For tests on a lab."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence


class Balancer:
    """``with Balancer(address, backends)``: a connection to ``address:port`` goes to the first backend that takes it.

    The backends take turns at being asked first. ``port`` is one that the kernel gave.
    """

    def __init__(self, address: str, backends: Sequence[tuple[str, int]]) -> None:
        self._backends = list(backends)
        self._turn = 0
        self._server = socket.create_server((address, 0), backlog=128)
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Balancer:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        backend = self._connected()
        if backend is None:
            client.close()
            return
        back = threading.Thread(target=_pump, args=(backend, client), daemon=True)
        back.start()
        _pump(client, backend)
        back.join()
        for side in (client, backend):
            side.close()

    def _connected(self) -> socket.socket | None:
        self._turn += 1
        for offset in range(len(self._backends)):
            with contextlib.suppress(OSError):
                return socket.create_connection(self._backends[(self._turn + offset) % len(self._backends)], timeout=1)
        return None


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
