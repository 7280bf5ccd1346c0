"""The program as a person runs it: `nodewright up` or `run` in a process of its own, and kubectl."""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

READY_SECONDS = 300
STOP_SECONDS = 120
_DESCRIBED = 8000
"""Characters of `kubectl describe` that a failure shows: the end, where conditions and events are."""
_PAUSE = 0.1
"""Seconds between two questions."""
_ABSENT = ("(NotFound)", "no matching resources found")
"""How kubectl says that what it shall wait for does not exist."""
_UNHEARD = "net/http: TLS handshake timeout"
"""What kubectl says after 10 s of a server that did not get a processor meanwhile: nothing was asked of it yet."""
PATIENT = ("--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=90s")
"""For whom the election is not the matter: with the usual 10 s a leader ends where a machine is busy for as long."""


class CommandFailed(AssertionError):
    """A command ended with another code than the test wants."""


@dataclass(frozen=True, slots=True)
class Output:
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The stock kubectl against one kubeconfig, with a cache folder of its own."""

    binary: Path
    kubeconfig: Path
    cache: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(
        self, *arguments: str, stdin: str | None = None, timeout: float = 180, env: dict[str, str] | None = None
    ) -> Output:
        """However it ends; again where the server was not heard of."""
        deadline = time.monotonic() + timeout
        while _UNHEARD in (done := self._once(arguments, stdin, timeout, env)).err and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return done

    def _once(
        self, arguments: tuple[str, ...], stdin: str | None, timeout: float, env: dict[str, str] | None
    ) -> Output:
        command = [str(self.binary), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}", *arguments]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**os.environ, **self.environment, **(env or {})},
        )
        return Output(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 180) -> str:
        """Its standard output. Raises CommandFailed unless it ends with 0."""
        done = self.run(*arguments, stdin=stdin, timeout=timeout)
        if done.code:
            raise CommandFailed(f"kubectl {' '.join(arguments)} ended with {done.code}:\n{done.out}\n{done.err}")
        return done.out

    def fails(self, *arguments: str, stdin: str | None = None) -> str:
        """What it says on standard error when it is refused."""
        done = self.run(*arguments, stdin=stdin)
        if not done.code:
            raise CommandFailed(f"kubectl {' '.join(arguments)} was expected to fail:\n{done.out}")
        return done.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("get", *arguments)["items"]
        return found

    def wait(self, condition: str, *what: str, timeout: int = 180) -> str:
        """Waits also for an object that does not exist yet, for which kubectl itself ends at once.

        Raises CommandFailed with what `kubectl describe` says of the objects.
        """
        deadline = time.monotonic() + timeout
        while True:
            left = max(1, math.ceil(deadline - time.monotonic()))
            try:
                return self("wait", f"--for={condition}", *what, f"--timeout={left}s", timeout=left + 10)
            except CommandFailed as failure:
                absent = any(words in str(failure) for words in _ABSENT)
                if absent and time.monotonic() < deadline:
                    time.sleep(_PAUSE)
                    continue
                described = self.run("describe", *(word for word in what if word != "--all"))
                raise CommandFailed(f"{failure}\n{described.out[-_DESCRIBED:]}{described.err}") from None

    def until(self, words: str, *arguments: str, timeout: float = 180) -> str:
        """Ask again until ``words`` are in the answer, for what `kubectl wait` can't wait for. Raises CommandFailed."""
        deadline = time.monotonic() + timeout
        while words not in (said := self(*arguments)):
            if time.monotonic() > deadline:
                raise CommandFailed(f"kubectl {' '.join(arguments)} did not say {words!r} in {timeout:.0f} s:\n{said}")
            time.sleep(_PAUSE)
        return said


class Program:
    """A command of ours in the foreground of its own process, with the kubectl of the cluster that it works on.

    ``log`` is what it wrote to standard error. Everything it keeps lies in ``folder``.
    """

    opening = "ready"

    def __init__(self, folder: Path, kubectl: Kubectl, *command: str) -> None:
        self.folder = folder
        self.kubectl = kubectl
        self.kubeconfig = kubectl.kubeconfig
        self.lines: queue.Queue[str] = queue.Queue()
        self.spoken = ""
        """What it has said so far, as far as anybody has waited for it."""
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    @property
    def name(self) -> str:
        return self._command[0]

    @property
    def pid(self) -> int:
        assert self._process is not None, "it is not running"
        return self._process.pid

    def start(self) -> str:
        """Start and wait for the line that begins with ``opening``, which is returned."""
        command = [sys.executable, "-m", "nodewright.cli", *self._command]
        log = self._log_path.open("a")
        with log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.folder)
        threading.Thread(target=self._pump, args=(self._process,), daemon=True).start()
        return self.says(self.opening)

    def says(self, words: str) -> str:
        """Wait for a line of its output that begins so. Raises AssertionError when it ends or takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            try:
                line = self.lines.get(timeout=0.2)
            except queue.Empty:
                if self._process is None or self._process.poll() is not None:
                    break
                continue
            self.spoken += f"{line}\n"
            if line.startswith(words):
                return line
        raise AssertionError(f"`{self.name}` did not say {words!r} within {READY_SECONDS} s:\n{self.log()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and wait; the exit status."""
        process = self._process
        if process is None:
            return 0
        self._process = None
        process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            what = f"`{self.name}` did not end within {STOP_SECONDS} s of {number.name}"
            raise AssertionError(f"{what}:\n{self.log()}") from None

    def log(self) -> str:
        return self._log_path.read_text()[-4000:]

    @property
    def _log_path(self) -> Path:
        return self.folder / f"{self.name}.log"

    def _pump(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.lines.put(line.rstrip("\n"))


class Up(Program):
    """`nodewright up`: ``with Up(folder, binary) as up: up.kubectl("get", "nodes")``."""

    def __init__(self, folder: Path, binary: Path, *flags: str) -> None:
        kubeconfig = folder / "kubeconfig"
        kubectl = Kubectl(binary, kubeconfig, folder / "kubectl-cache")
        super().__init__(folder, kubectl, "up", f"--kubeconfig={kubeconfig}", *flags)


class Run(Program):
    """`nodewright run` beside an API server that has our CRDs. ``terms``: of its Lease, unless flags say others."""

    terms = PATIENT

    def __init__(self, folder: Path, kubectl: Kubectl, *flags: str) -> None:
        super().__init__(folder, kubectl, "run", f"--kubeconfig={kubectl.kubeconfig}", *self.terms, *flags)


class Replica(Run):
    """One of several `nodewright run --leader-elect` beside one API server and one simulated cloud.

    It has started when it has joined the election; the leader says "ready" later on. What it leaves ends with the
    test, so it is killed on exit.
    """

    opening = "at work while it holds the lease"
    terms = ()

    def __init__(self, folder: Path, kubectl: Kubectl, *flags: str) -> None:
        folder.mkdir()
        super().__init__(folder, kubectl, "--leader-elect", f"--simulated-cloud={folder.parent / 'cloud'}", *flags)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Its exit status, once it has ended by itself."""
        assert self._process is not None, "it is not running"
        return self._process.wait(STOP_SECONDS)

    def holds(self, holder: str) -> bool:
        """Whether the identity in a Lease is this process."""
        return f"_{self.pid}_" in holder
