"""Child processes on loopback that end with whoever started them, even if that one is killed."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_SECONDS = 60

GUARD = 'trap "" TERM INT HUP; read -r _; kill -KILL 0'
"""Waits for the end of its standard input (the death of whoever holds the other end), then ends its whole group."""


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens now, each another one."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def held_ports(count: int, address: str = "127.0.0.1") -> Iterator[list[int]]:
    """Ports of ``address`` on which nobody listens, each another one; until the end the kernel gives them to nobody.

    Only a socket of the same user with SO_REUSEPORT gets one of them, at first and after a restart.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.bind((address, 0))
        yield [each.getsockname()[1] for each in sockets]


class Children:
    """``with Children(folder) as children: children.start("name", [...])``; each writes to ``folder/name.log``."""

    def __init__(self, folder: Path, nice: int = 0) -> None:
        self.folder = folder
        self._nice = ["nice", "-n", str(nice)] if nice else []
        self._guard: subprocess.Popen[bytes] | None = None
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._guard = subprocess.Popen(["/bin/sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        for name in list(self._running):
            self.stop(name)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        assert self._guard is not None, "only inside of `with`"
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*self._nice, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment,
                process_group=self._guard.pid,
            )

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def stop(self, name: str) -> None:
        process = self._running.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def finish(self, name: str, seconds: float) -> None:
        """Wait for a child that does one thing and ends. Raises RuntimeError if it fails or takes too long."""
        process = self._running.pop(name)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"{name} did not end within {seconds:.0f} s:\n{self.log_tail(name)}") from None
        if code:
            raise RuntimeError(f"{name} ended with {code}:\n{self.log_tail(name)}")

    def until_it_answers(self, name: str, url: str, seconds: float) -> None:
        """Any HTTP answer will do. Raises RuntimeError if the child ends or takes too long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.check(name)
            try:
                urllib.request.urlopen(url, timeout=20).close()
                return
            except urllib.error.HTTPError as refused:
                refused.close()  # its answer holds the socket
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"{name} does not answer after {seconds:.0f} s:\n{self.log_tail(name)}")

    def check(self, name: str) -> None:
        """Raises RuntimeError if the child has ended."""
        code = self._running[name].poll()
        if code is not None:
            raise RuntimeError(f"{name} ended with {code}:\n{self.log_tail(name)}")

    def log_tail(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
