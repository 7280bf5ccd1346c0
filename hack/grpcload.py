"""Calls of a gRPC method by the clock, from a client that disturbs the server little: ``hack/tools/grpcload``, in Go.

A client in Python costs more than the server that it measures, and its own pauses look like the server's. Callers of
the gateway are written in Go as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hack import golang
from hack.binaries import BinaryMissing, cache_folder

SOURCES = Path(__file__).parent / "tools" / "grpcload"


@dataclass(frozen=True)
class Load:
    """``seconds`` for each server; they take turns of a second. ``certificates``: ca.crt, client.crt, client.key."""

    method: str
    requests: Sequence[bytes]
    per_second: int
    seconds: int
    certificates: Path | None = None


@dataclass(frozen=True)
class Latencies:
    """Milliseconds, by ``p50``, ``p90``, ``p99``, ``p999`` and ``max``.

    ``answered`` counts from when a call was sent, ``due`` from when it should have been: the client's own lateness is
    in it. ``buckets`` is a histogram of the former, by upper bound. ``failed`` calls got no answer and count as 5 s;
    ``why`` is the last of their errors.
    """

    answered: Mapping[str, float]
    due: Mapping[str, float]
    buckets: Mapping[str, int]
    failed: int = 0
    why: str = ""


def program() -> Path:
    """Built where it is missing, a matter of seconds. Raises BinaryMissing."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.glob("*")):
        digest.update(path.name.encode() + path.read_bytes())
    target = cache_folder().parent / f"grpcload-{digest.hexdigest()[:12]}"
    if not os.access(target, os.X_OK):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        golang.build(SOURCES, partial)
        partial.replace(target)
    return target


def measure(servers: Mapping[str, str], load: Load) -> dict[str, Latencies]:
    """Of servers by name; addresses, with ``tls://`` before them where they want certificates.

    Raises BinaryMissing, and RuntimeError if a server answered nothing.
    """
    command = [str(program()), "-method", load.method, "-rate", str(load.per_second), "-seconds", str(load.seconds)]
    if load.certificates is not None:
        command += ["-tls", str(load.certificates)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "requests"
        file.write_bytes(b"".join(len(each).to_bytes(4, "big") + each for each in load.requests))
        command += ["-requests", str(file), *(f"{name}={address}" for name, address in servers.items())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BinaryMissing(f"{command[0]} failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    for name, each in found.items():
        if each["failed"] == each["calls"]:
            raise RuntimeError(f"{name}: {each.get('error')}")
    return {
        name: Latencies(each["answer_ms"], each["due_ms"], each["buckets"], each["failed"], each.get("error", ""))
        for name, each in found.items()
    }
