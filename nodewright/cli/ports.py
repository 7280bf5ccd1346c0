"""Whether ports can be listened on, asked before anything is begun."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack

from nodewright.cli.exits import CliError


def must_be_free(host: str, ports: Mapping[str, int | None]) -> None:
    """``ports``: option to port; None and 0 are always free. All are held together, so that none is given twice.

    Raises CliError that names the option.
    """
    with ExitStack() as held:
        for option, port in ports.items():
            if not port:
                continue
            try:
                family, kind, _, _, address = socket.getaddrinfo(
                    host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
                )[0]
                listener = held.enter_context(socket.socket(family, kind))
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(1)
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                raise CliError(f"{option} {port}: can't listen on {host}: {why}", "Choose another port") from error
