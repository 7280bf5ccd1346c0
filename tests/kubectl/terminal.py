"""The stock kubectl as tests type it, with its own cache and never the user's configuration."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The words of each line of a table, with the headings first."""
        return [line.split() for line in self.lines]

    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Terminal:
    """Runs kubectl in one namespace."""

    binary: str
    kubeconfig: Path
    cache: Path
    namespace: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, stdin: Any = None) -> Said:
        """Run a command that must succeed. `stdin` other than text is sent as JSON."""
        said = self.tries(*words, stdin=stdin)
        assert said.code == 0, f"kubectl {' '.join(words)} ended with {said.code}:\n{said.err}\n{said.out}"
        return said

    def fails(self, *words: str, stdin: Any = None) -> str:
        """Run a command that must fail; give what it complained about."""
        said = self.tries(*words, stdin=stdin)
        assert said.code != 0, f"kubectl {' '.join(words)} succeeded:\n{said.out}"
        return said.err

    def tries(self, *words: str, stdin: Any = None) -> Said:
        """Run a command, however it ends."""
        done = subprocess.run(
            self._command(words),
            input=_text(stdin),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=self._environment(),
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def apply(self, *objects: Mapping[str, Any]) -> Said:
        """`kubectl apply -f -` these objects."""
        return self("apply", "-f", "-", stdin=several(*objects))

    def create(self, *objects: Mapping[str, Any]) -> None:
        """`kubectl create -f -` these objects."""
        self("create", "-f", "-", stdin=several(*objects))

    def read(self, *words: str) -> Any:
        """`kubectl get … -o json`."""
        return self("get", *words, "-o", "json").json()

    @staticmethod
    def until(holds: Callable[[], bool]) -> None:
        """Ask again, for what a server does a moment after it has answered. Raises AssertionError."""
        deadline = time.monotonic() + _SECONDS
        while not holds():
            assert time.monotonic() < deadline, "it did not come to that"
            time.sleep(0.1)

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command in the background; it is ended with the block."""
        process = subprocess.Popen(
            self._command(words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def _command(self, words: tuple[str, ...]) -> list[str]:
        base = [self.binary, f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}"]
        return [*base, f"--namespace={self.namespace}", *words]

    def _environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH",) if key in os.environ}
        return {**kept, "HOME": str(self.cache), **self.environment}


def several(*objects: Mapping[str, Any]) -> Any:
    """Give one object, or a List of several."""
    return objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def _text(stdin: Any) -> str | None:
    return stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
