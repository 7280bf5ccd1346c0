"""Keep a simulated cloud's hosts over a restart of the program, as a real cloud would.

One JSON line per change, appended before the call that made it answers; the file is rewritten when it is opened. It
outlives a SIGKILL (the kernel has the line); nothing is promised for a power cut, since the cloud is not real.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError

from providers.simulated.hosts import SimulatedHost

_HOST = TypeAdapter(SimulatedHost)


class FileJournal:
    """The hosts of one cloud in one file (mode 0600)."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError for a damaged file."""
        self._hosts = _read(path)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_suffix(".new")
        with _open(fresh, os.O_TRUNC) as file:
            file.writelines(_put_line(host) for host in self._hosts.values())
        fresh.replace(path)
        self._file = _open(path, os.O_APPEND)

    def remembered(self) -> tuple[SimulatedHost, ...]:
        return tuple(self._hosts.values())

    def put(self, host: SimulatedHost) -> None:
        self._write(_put_line(host))

    def forget(self, host: SimulatedHost) -> None:
        self._write(json.dumps({"gone": host.id}).encode() + b"\n")

    def close(self) -> None:
        self._file.close()

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()


class SharedFileJournal:
    """The same for several processes at a time: none rewrites the file, and each reads what the others append."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError for a damaged file."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = path
        self._file = _open(path, os.O_APPEND)
        self._hosts: dict[str, SimulatedHost] = {}
        self._read_to = 0
        for change in self.news():
            if isinstance(change, str):
                self._hosts.pop(change, None)
            else:
                self._hosts[change.id] = change

    def remembered(self) -> tuple[SimulatedHost, ...]:
        return tuple(self._hosts.values())

    @contextmanager
    def alone(self) -> Iterator[None]:
        fcntl.flock(self._file.fileno(), fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)

    def news(self) -> Iterator[SimulatedHost | str]:
        if os.fstat(self._file.fileno()).st_size == self._read_to:
            return
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            self._read_to += len(line)
            yield _change_in(line, self._path, f"byte {self._read_to - len(line)}")

    def put(self, host: SimulatedHost) -> None:
        self._write(_put_line(host))

    def forget(self, host: SimulatedHost) -> None:
        self._write(json.dumps({"gone": host.id}).encode() + b"\n")

    def close(self) -> None:
        self._file.close()

    def _write(self, line: bytes) -> None:
        """One write(2): appends of several processes don't mix."""
        self._file.write(line)
        self._file.flush()


def _open(path: Path, flag: int) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o600), "wb")


def _put_line(host: SimulatedHost) -> bytes:
    return b'{"put":' + _HOST.dump_json(host, by_alias=True, exclude_unset=True) + b"}\n"


def _read(path: Path) -> dict[str, SimulatedHost]:
    """The hosts that a journal ends with. A last line that was cut off did not happen.

    Raises ValueError for any other line that can't be read: a cloud must not forget hosts in silence.
    """
    hosts: dict[str, SimulatedHost] = {}
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n") and number == len(lines):
            break
        change = _change_in(line, path, f"line {number}")
        if isinstance(change, str):
            hosts.pop(change, None)
        else:
            hosts[change.id] = change
    return hosts


def _change_in(line: bytes, path: Path, where: str) -> SimulatedHost | str:
    try:
        change = json.loads(line)
        return str(change["gone"]) if "gone" in change else _HOST.validate_python(change["put"])
    except (json.JSONDecodeError, ValidationError, KeyError, TypeError) as error:
        raise ValueError(f"{path}, {where}: not a change of a simulated host ({error})") from error
