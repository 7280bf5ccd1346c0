"""A disk that fails on purpose, below SQLite and below `os`: full, broken, or without power between two operations.

Files lie in a real folder, as the running process sees them. Beside them `Disk` knows what of it has been forced down:
`after_power_loss` writes what a machine would find when it comes up again. SQLite reaches it by `faulty_sqlite`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

SECTOR = 512


class PowerLoss(Exception):
    """The machine is off."""


@dataclass
class Inode:
    """``content``: as the process sees it. ``durable`` and ``pending``: what is on the disk, and what may be."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """(offset, bytes) of a write, (length, None) of a truncation."""


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        content.extend(bytes(at - len(content)))
        return
    if len(content) < at + len(data):
        content.extend(bytes(at + len(data) - len(content)))
    content[at : at + len(data)] = data


class Disk:
    """Fails at its operation number ``at`` (of those that change something) with ``fault``, for ``times`` operations.

    ``fault``: "power", "full", "short" (a part of a write, then full), "broken" (a write or fsync gives EIO).
    """

    def __init__(self, seed: int, at: int = -1, fault: str = "power", times: int = 1) -> None:
        self._random = Random(seed)
        self._at, self._fault, self._times = at, fault, times
        self.count = 0
        self.off = False
        self.names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._pending_names: list[dict[str, Inode]] = []

    def inode(self, name: str, *, create: bool) -> Inode | None:
        if name not in self.names and create:
            self.names[name] = Inode()
            self._named()
        return self.names.get(name)

    def remove(self, name: str) -> None:
        del self.names[name]
        self._named()

    def rename(self, old: str, new: str) -> None:
        self.names[new] = self.names.pop(old)
        self._named()

    def _named(self) -> None:
        self._pending_names.append(dict(self.names))

    def sync_names(self) -> None:
        self._durable_names, self._pending_names = dict(self.names), []

    def write(self, inode: Inode, at: int, data: bytes | None) -> None:
        _apply(inode.content, at, data)
        inode.pending.append((at, data))

    def sync(self, inode: Inode) -> None:
        inode.durable, inode.pending = bytearray(inode.content), []

    def lose_some(self, inode: Inode) -> None:
        """A failed fsync: some pages are down, the others never will be, and the process still sees all of them."""
        for at, data in self._some(inode.pending):
            _apply(inode.durable, at, data)
        inode.pending = []

    def failing(self) -> str:
        """What this operation fails with, "" if it doesn't. Raises PowerLoss."""
        if self.off:
            raise PowerLoss
        number, self.count = self.count, self.count + 1
        if not self._at <= number < self._at + self._times:
            return ""
        if self._fault == "power":
            self.off = True
            raise PowerLoss
        return self._fault

    def after_power_loss(self, folder: Path) -> None:
        """Of what was not forced down a part is there: names in their order, writes in any, cut at a sector's end."""
        names = self._durable_names
        for later in self._pending_names[: self._random.randint(0, len(self._pending_names))]:
            names = later
        for name, inode in names.items():
            content = bytearray(inode.durable)
            for at, data in self._some(inode.pending):
                _apply(content, at, data)
            (folder / name).write_bytes(content)

    def _some(self, pending: list[tuple[int, bytes | None]]) -> Iterator[tuple[int, bytes | None]]:
        share = self._random.choice((0.0, 0.5, 0.9, 1.0))
        for at, data in pending:
            if self._random.random() >= share:
                continue
            if data is not None and len(data) > SECTOR and self._random.random() < 0.3:
                yield at, data[: self._random.randrange(0, len(data), SECTOR)]
            else:
                yield at, data


class Process:
    """One process on the disk: its files lie in ``folder``, which is empty at first or as a power loss has left it."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self.disk, self.folder = disk, folder
        for path in folder.iterdir():
            inode = disk.inode(path.name, create=True)
            assert inode is not None
            disk.write(inode, 0, path.read_bytes())
            disk.sync(inode)
        disk.sync_names()
        self._open: dict[int, tuple[str, bool]] = {}

    def _ours(self, path: object) -> str | None:
        found = Path(os.fsdecode(path))  # type: ignore[arg-type]
        return found.name if found.parent == self.folder else None

    # What `os` is to the journal and its mark

    def module(self) -> SimpleNamespace:
        """`os` with the calls replaced that reach the disk."""
        calls = {name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
        ours = ("open", "pwrite", "write", "fdatasync", "fsync", "close", "replace", "rename")
        return SimpleNamespace(**{**calls, **{name: getattr(self, f"os_{name}") for name in ours}})

    def os_open(self, path: Any, flags: int, *mode: int) -> int:
        name = self._ours(path)
        if name is not None and flags & os.O_CREAT and name not in self.disk.names:
            self._fails(writing=True)
            self.disk.inode(name, create=True)
        descriptor = os.open(path, flags, *mode)
        if name is not None:
            self._open[descriptor] = (name, False)
        elif Path(path) == self.folder:
            self._open[descriptor] = ("", True)
        return descriptor

    def os_pwrite(self, descriptor: int, data: bytes, at: int) -> int:
        inode = self._inode(descriptor)
        if inode is not None:
            self._fails(writing=True)
            self.disk.write(inode, at, bytes(data))
        return os.pwrite(descriptor, data, at)

    def os_write(self, descriptor: int, data: bytes) -> int:
        return self.os_pwrite(descriptor, data, os.lseek(descriptor, 0, os.SEEK_CUR))

    def os_fdatasync(self, descriptor: int) -> None:
        self.os_fsync(descriptor)

    def os_fsync(self, descriptor: int) -> None:
        known = self._open.get(descriptor)
        if known is None:
            return
        inode = self._inode(descriptor)
        try:
            self._fails(writing=False)
        except OSError:
            if inode is not None:
                self.disk.lose_some(inode)
            raise
        if known[1]:
            self.disk.sync_names()
        elif inode is not None:
            self.disk.sync(inode)

    def os_close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        os.close(descriptor)

    def os_replace(self, old: Any, new: Any) -> None:
        self._fails(writing=True)
        self.disk.rename(Path(old).name, Path(new).name)
        os.replace(old, new)

    os_rename = os_replace

    def _inode(self, descriptor: int) -> Inode | None:
        known = self._open.get(descriptor)
        return self.disk.names.get(known[0]) if known is not None and not known[1] else None

    def _fails(self, *, writing: bool) -> None:
        fault = self.disk.failing()
        if fault in {"full", "short"} and writing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if fault == "broken":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
