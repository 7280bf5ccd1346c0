"""The embedded control planes of this machine: those that run, by the locks that they hold, and stopped ones here.

Nothing is written down about planes elsewhere: a list of them would outlive their folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nodewright.cli.embedded.folder import LOCK, remembered_port

PROC: Final = Path("/proc")
HOME: Final = Path(".nodewright")
"""Where planes are kept that were started without --data-dir."""


@dataclass(frozen=True, slots=True)
class Plane:
    """``process`` 0: it is stopped. ``since``: when it was started, or last used. ``kubeconfig``: in its folder."""

    folder: Path
    process: int
    port: int
    since: datetime | None
    kubeconfig: Path | None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}" if self.port else ""


def planes(here: Path, proc: Path = PROC) -> list[Plane]:
    """By folder. Processes of other users can't be seen into; planes without a data folder hold no lock."""
    running = {folder: _plane(folder, process) for folder, process in _holders(proc)}
    stopped = {folder: _plane(folder, 0) for folder in _kept(here / HOME) if folder not in running}
    return [each for _, each in sorted((running | stopped).items())]


def _holders(proc: Path) -> Iterator[tuple[Path, int]]:
    """Folders, and the process that has the lock open in which its number stands."""
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            for link in sorted((entry / "fd").iterdir()):
                lock = Path(os.readlink(link))
                if lock.name == LOCK and _number_in(lock) == int(entry.name) and remembered_port(lock.parent):
                    yield lock.parent, int(entry.name)
                    break


def _number_in(lock: Path) -> int:
    with suppress(OSError, ValueError), lock.open("rb") as file:
        return int(file.read(32))
    return 0


def _kept(home: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (folder.resolve() for folder in home.iterdir() if folder.is_dir() and remembered_port(folder))


def _plane(folder: Path, process: int) -> Plane:
    since = None
    with suppress(OSError):
        since = datetime.fromtimestamp((folder / LOCK).stat().st_mtime, UTC)
    kubeconfig = folder / "kubeconfig"
    return Plane(folder, process, remembered_port(folder), since, kubeconfig if kubeconfig.is_file() else None)
