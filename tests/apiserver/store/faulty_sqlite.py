"""`faulty_disk` below SQLite: as its default VFS, by callbacks from the library that Python's own module has loaded.

The structures are sqlite3_vfs, sqlite3_file and sqlite3_io_methods of sqlite3.h, version 1 (https://www.sqlite.org/vfs.html).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodewright.apiserver.store import forcing, sqlite_journal, watermark
from tests.apiserver.store.faulty_disk import SECTOR, Disk, Inode, PowerLoss, Process

OK, FULL, CANTOPEN, NOTFOUND = 0, 13, 14, 12
IOERR, IOERR_READ, IOERR_SHORT_READ, IOERR_WRITE, IOERR_FSYNC = 10, 266, 522, 778, 1034
IOERR_TRUNCATE = 1546
_CREATE, _WAL, _JOURNAL, _DELETE_ON_CLOSE = 0x4, 0x80000, 0x800, 0x8

_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_IP, _LP = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int64)
_METHODS: dict[str, tuple[Any, ...]] = {
    "xClose": (_P,), "xRead": (_P, _P, _I, _L), "xWrite": (_P, _P, _I, _L), "xTruncate": (_P, _L), "xSync": (_P, _I),
    "xFileSize": (_P, _LP), "xLock": (_P, _I), "xUnlock": (_P, _I), "xCheckReservedLock": (_P, _IP),
    "xFileControl": (_P, _I, _P), "xSectorSize": (_P,), "xDeviceCharacteristics": (_P,),
}  # fmt: skip
_CALLS: dict[str, tuple[Any, ...]] = {
    "xOpen": (_P, ctypes.c_char_p, _P, _I, _IP), "xDelete": (_P, ctypes.c_char_p, _I),
    "xAccess": (_P, ctypes.c_char_p, _I, _IP), "xFullPathname": (_P, ctypes.c_char_p, _I, _P),
}  # fmt: skip


class _File(ctypes.Structure):
    _fields_ = (("methods", _P), ("number", _I))


class _Methods(ctypes.Structure):
    _fields_ = (("iVersion", _I), *((name, _P) for name in _METHODS))


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("iVersion", _I), ("szOsFile", _I), ("mxPathname", _I), ("pNext", _P), ("zName", ctypes.c_char_p),
        ("pAppData", _P), *((name, _P) for name in _CALLS),
        *((name, _P) for name in ("xDlOpen", "xDlError", "xDlSym", "xDlClose", "xRandomness", "xSleep",
                                  "xCurrentTime", "xGetLastError")),
    )  # fmt: skip


@dataclass
class _Opened:
    """``first``: its name is to be forced down with the first sync, as SQLite's own VFS does for a new WAL."""

    name: str
    inode: Inode
    descriptor: int
    first: bool
    delete: bool


_KEPT: list[Layer] = []
"""For ever: a connection that nobody closed is closed when Python gets to it, by the callbacks of its layer."""


class Layer:
    """The callbacks. A power loss can't be raised through C: everything fails from then on."""

    def __init__(self, process: Process, library: Any) -> None:
        self._process, self._disk = process, process.disk
        self._files: dict[int, _Opened] = {}
        self._kept: list[Any] = []
        _KEPT.append(self)
        self._methods = _Methods(1, *(self._c(getattr(self, name), types) for name, types in _METHODS.items()))
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        real = library.sqlite3_vfs_find(None).contents
        self.vfs = _Vfs.from_buffer_copy(real)
        self.vfs.iVersion, self.vfs.szOsFile, self.vfs.pNext = 1, ctypes.sizeof(_File), None
        self.vfs.zName = b"faulty"
        for name, types in _CALLS.items():
            setattr(self.vfs, name, self._c(getattr(self, name), types))

    def _c(self, function: Callable[..., int], types: tuple[Any, ...]) -> int | None:
        def safe(*given: Any) -> int:
            try:
                return function(*given)
            except PowerLoss:
                return IOERR
            except OSError as error:
                return FULL if error.errno == errno.ENOSPC else IOERR

        callback = ctypes.CFUNCTYPE(_I, *types)(safe)
        self._kept.append(callback)
        return ctypes.cast(callback, _P).value

    def _of(self, file: int) -> _Opened:
        return self._files[_File.from_address(file).number]

    def xOpen(self, _vfs: int, path: bytes | None, file: int, flags: int, out: Any) -> int:
        opened = _File.from_address(file)
        opened.methods = None
        if path is None:
            return CANTOPEN
        name = Path(os.fsdecode(path)).name
        new = name not in self._disk.names
        if new and not flags & _CREATE:
            return CANTOPEN
        if new:
            self._disk.failing()
        inode = self._disk.inode(name, create=True)
        assert inode is not None
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        opened.number = len(self._files)
        first = new and bool(flags & (_WAL | _JOURNAL))
        self._files[opened.number] = _Opened(name, inode, descriptor, first, bool(flags & _DELETE_ON_CLOSE))
        opened.methods = ctypes.addressof(self._methods)
        if out:
            out[0] = flags
        return OK

    def xClose(self, file: int) -> int:
        os.close(self._of(file).descriptor)
        return OK

    def xRead(self, file: int, buffer: int, count: int, at: int) -> int:
        data = bytes(self._of(file).inode.content[at : at + count])
        ctypes.memmove(buffer, data.ljust(count, b"\0"), count)
        return OK if len(data) == count else IOERR_SHORT_READ

    def xWrite(self, file: int, buffer: int, count: int, at: int) -> int:
        found, data = self._of(file), ctypes.string_at(buffer, count)
        fault = self._disk.failing()
        if fault == "short":
            data = data[: count // 2]
        if fault not in {"full", "broken"}:
            self._disk.write(found.inode, at, data)
            os.pwrite(found.descriptor, data, at)
        return {"full": FULL, "short": FULL, "broken": IOERR_WRITE}.get(fault, OK)

    def xTruncate(self, file: int, size: int) -> int:
        if self._disk.failing() == "broken":
            return IOERR_TRUNCATE
        self._disk.write(self._of(file).inode, size, None)
        os.ftruncate(self._of(file).descriptor, size)
        return OK

    def xSync(self, file: int, _flags: int) -> int:
        found = self._of(file)
        if self._disk.failing() == "broken":
            self._disk.lose_some(found.inode)
            return IOERR_FSYNC
        self._disk.sync(found.inode)
        if found.first:
            self._disk.sync_names()
            found.first = False
        return OK

    def xFileSize(self, file: int, out: Any) -> int:
        out[0] = len(self._of(file).inode.content)
        return OK

    def xLock(self, *_given: Any) -> int:
        return OK

    xUnlock = xLock

    def xCheckReservedLock(self, _file: int, out: Any) -> int:
        out[0] = 0
        return OK

    def xFileControl(self, *_given: Any) -> int:
        return NOTFOUND

    def xSectorSize(self, _file: int) -> int:
        return SECTOR

    def xDeviceCharacteristics(self, _file: int) -> int:
        return 0

    def xDelete(self, _vfs: int, path: bytes, sync: int) -> int:
        name = Path(os.fsdecode(path)).name
        if name not in self._disk.names:
            return IOERR | (23 << 8)  # SQLITE_IOERR_DELETE_NOENT
        if self._disk.failing() == "broken":
            return IOERR | (10 << 8)
        self._disk.remove(name)
        os.unlink(path)
        if sync:
            self._disk.sync_names()
        return OK

    def xAccess(self, _vfs: int, path: bytes, _flags: int, out: Any) -> int:
        inode = self._disk.names.get(Path(os.fsdecode(path)).name)
        out[0] = int(inode is not None)
        return OK

    def xFullPathname(self, _vfs: int, path: bytes, size: int, out: int) -> int:
        full = os.path.abspath(path)
        if len(full) >= size:
            return CANTOPEN
        ctypes.memmove(out, full + b"\0", len(full) + 1)
        return OK


def library() -> Any:
    """SQLite as Python has loaded it; None where it is built into the interpreter."""
    import _sqlite3  # noqa: PLC0415

    name = ctypes.util.find_library("sqlite3")
    maps = Path("/proc/self/maps")
    if name is None or not hasattr(_sqlite3, "__file__") or not maps.exists():
        return None
    return ctypes.CDLL(name) if "libsqlite3" in maps.read_text() else None


@contextmanager
def on(disk: Disk, folder: Path) -> Iterator[Process]:
    """A process whose journal reaches ``folder`` by ``disk`` alone."""
    process, sqlite = Process(disk, folder), library()
    layer = Layer(process, sqlite)
    with pytest.MonkeyPatch.context() as patch:
        for module in (forcing, sqlite_journal, watermark):
            patch.setattr(module, "os", process.module())
        assert sqlite.sqlite3_vfs_register(ctypes.byref(layer.vfs), 1) == OK
        try:
            yield process
        finally:
            sqlite.sqlite3_vfs_unregister(ctypes.byref(layer.vfs))
