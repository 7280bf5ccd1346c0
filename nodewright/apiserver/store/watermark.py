"""What was written last? One line in a file beside the database, so that a database that lost something is noticed.

The line is written after the commit that it speaks of, never before: it may lag behind after a crash, but what it says
is on the disk. It is overwritten in place, which needs no space on a full disk. A power cut may leave an earlier line.
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from nodewright.apiserver.store.forcing import sync_folder

_LOG = logging.getLogger("nodewright.apiserver")
_SIZE = 64
_SYNC_SECONDS = 1.0
"""How often the file is forced to the disk. Without a crash of the machine, what is in the page cache is enough."""


class Mark(NamedTuple):
    """The last revision, and the sum of the checksums of all objects at it."""

    revision: int
    total: int


class Watermark:
    """The file. Reading gives None if there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._synced = 0.0

    def read(self) -> Mark | Literal["damaged"] | None:
        """Give what was written last."""
        try:
            words = self.path.read_bytes().split()
        except FileNotFoundError:
            return None
        except OSError:
            return "damaged"
        try:
            revision, total, check = words
            good = int(check, 16) == zlib.crc32(revision + b" " + total)
            return Mark(int(revision), int(total, 16)) if good else "damaged"
        except ValueError:
            return "damaged"

    def begin(self, mark: Mark) -> None:
        """Open the file and overwrite the line; make the file if there is none, before anything is committed.

        A new one appears under its name as a whole, and the name is forced to the disk: a state whose mark is missing
        or empty is taken for a damaged one. Raises OSError.
        """
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            self._file = self._made(_line(mark))
        self.write(mark)

    def _made(self, line: bytes) -> int:
        draft = self.path.with_name(f".{self.path.name}")
        file = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, line, 0)
            os.fsync(file)
            os.replace(draft, self.path)
            sync_folder(self.path.parent)
        except BaseException:
            os.close(file)
            raise
        return file

    def write(self, mark: Mark) -> None:
        """Overwrite the line. A disk that doesn't take it is logged: the commit itself is done."""
        try:
            if self._file is None:
                self._file = self._made(_line(mark))
            os.pwrite(self._file, _line(mark), 0)
            now = time.monotonic()
            if now - self._synced >= _SYNC_SECONDS:
                os.fdatasync(self._file)
                self._synced = now
        except OSError as error:
            _LOG.warning("%s can't be written: %s", self.path, error)

    def close(self) -> None:
        """Force the line to the disk and close the file."""
        if self._file is not None:
            with suppress(OSError):
                os.fdatasync(self._file)
            os.close(self._file)
            self._file = None


def _line(mark: Mark) -> bytes:
    text = f"{mark.revision} {mark.total:016x}".encode()
    return (text + f" {zlib.crc32(text):08x}".encode()).ljust(_SIZE - 1) + b"\n"
