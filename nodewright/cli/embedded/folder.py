"""The data folder of an embedded control plane: who holds it, and what is remembered in it beside the state."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nodewright.cli.exits import CliError

LOCK = "lock"
_PORT = "port"
DETACHED = "NODEWRIGHT_DETACHED"
"""In the environment of the process that `nodewright up --detach` starts in the background."""


def _lock_file(folder: Path) -> int:
    """Open it, and make the folder if need be. Raises CliError."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}", "Choose another folder with --data-dir") from error


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder (made with mode 0700) for this process. Raises CliError if another one holds it.

    The kernel lets the lock go with the process, however it ends: a SIGKILL leaves nothing to clean up.
    """
    descriptor = _lock_file(folder)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(folder, descriptor) from None
        with suppress(OSError):  # the number only helps people; what needs the space reports a full disk
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _taken(folder: Path, descriptor: int) -> CliError:
    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    hint = f"Stop it (kill {holder}) or choose another folder with --data-dir" if holder else "Stop the other one"
    return CliError(f"{folder} is in use by another control plane{f' (process {holder})' if holder else ''}", hint)


def remembered_port(folder: Path) -> int:
    """The port of the last start, so that kubeconfigs that were copied stay good; 0 if there was none."""
    with suppress(OSError, ValueError):
        port = int((folder / _PORT).read_text())
        return port if 0 < port < 65536 else 0
    return 0


def remember_port(folder: Path, port: int) -> None:
    """Keep the port for the next start; nothing is written if it is kept already, since the disk may be full."""
    if remembered_port(folder) == port:
        return
    with os.fdopen(os.open(folder / _PORT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)  # earlier versions left it open to others
        file.write(f"{port}\n")
