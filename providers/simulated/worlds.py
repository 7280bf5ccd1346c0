"""The simulated clouds of one program, by name. One scope is one cloud."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from providers.simulated.config import Cloud
from providers.simulated.journal import FileJournal, SharedFileJournal
from providers.simulated.world import Clock, World


def _wall_clock() -> datetime:
    return datetime.now(UTC)


class Worlds:
    """Opens a cloud when its name is first heard.

    With a ``directory`` the clouds outlive the program: one journal file each.
    """

    def __init__(self, clock: Clock = _wall_clock, directory: Path | None = None) -> None:
        self._clock = clock
        self._directory = directory
        self._worlds: dict[str, World] = {}
        self._journals: dict[str, FileJournal | SharedFileJournal] = {}
        self._lock: int | None = None
        self._shared = False

    def keep_in(self, directory: Path, *, shared: bool = False) -> None:
        """From now on keep hosts in ``directory``, and reopen the clouds whose journals lie there.

        Raises RuntimeError if a cloud is open already (its hosts would be lost) or another process keeps its hosts
        there (two would invent the same ones), ValueError for a damaged journal. ``shared``: other processes may keep
        theirs there too, all of them as ``shared``: one cloud for several management clusters.
        """
        if self._worlds:
            raise RuntimeError(f"clouds are open already: {', '.join(self._worlds)}")
        self._lock = _locked(directory, shared)
        self._shared = shared
        self._directory = directory
        for path in sorted(directory.glob("*.jsonl")) if directory.is_dir() else ():
            self.open(Cloud(name=path.stem))

    def open(self, settings: Cloud) -> World:
        """The cloud of that name; if it is open already, it takes over what ``settings`` says explicitly."""
        world = self._worlds.get(settings.name)
        if world is not None:
            world.adjust(settings)
            return world
        journal = None
        if self._directory is not None:
            journal = self._journals[settings.name] = self._journal_in(self._directory / f"{settings.name}.jsonl")
        world = self._worlds[settings.name] = World(settings, self._clock, journal)
        return world

    def _journal_in(self, path: Path) -> FileJournal | SharedFileJournal:
        return SharedFileJournal(path) if self._shared else FileJournal(path)

    @property
    def all(self) -> Mapping[str, World]:
        """The open clouds by name."""
        return dict(self._worlds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget every cloud; those with a journal can be opened again."""
        for journal in self._journals.values():
            journal.close()
        self._worlds.clear()
        self._journals.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(directory: Path, shared: bool) -> int:
    """Hold ``directory`` until the descriptor is closed or the process ends, however it ends."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise RuntimeError(f"another process keeps its simulated hosts in {directory}") from None
    return descriptor
