"""Keep a simulated cloud's hosts over a restart of the program, as a real cloud would.

One JSON line per change, appended before the call that made it answers; the file is rewritten when it is opened. It
outlives a SIGKILL (the kernel has the line); nothing is promised for a power cut, since the cloud is not real.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError

from providers.simulated.hosts import SimulatedHost

_HOST = TypeAdapter(SimulatedHost)


class FileJournal:
    """The hosts of one cloud in one file (mode 0600)."""

    def __init__(self, path: Path) -> None:
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
        try:
            change = json.loads(line)
            if "gone" in change:
                hosts.pop(change["gone"], None)
            else:
                host = _HOST.validate_python(change["put"])
                hosts[host.id] = host
        except (json.JSONDecodeError, ValidationError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not a change of a simulated host ({error})") from error
    return hosts
