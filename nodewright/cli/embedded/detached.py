"""``nodewright up --detach`` and ``nodewright down``: a control plane that outlives the terminal it was started from.

What it prints goes into ``up.log`` of the data folder. The folder's lock says whether one runs, and by whom it is held.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodewright.cli.embedded.folder import DETACHED, LOCK
from nodewright.cli.exits import CliError

LOG: Final = "up.log"
_POLL_SECONDS: Final = 0.1
_LOG_LINES: Final = 5


def start(folder: Path, seconds: float) -> list[str]:
    """Start this command line anew in the background; gives its greeting once it is ready.

    Raises CliError if it ends before, or is not ready within ``seconds``: then it is stopped again.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / LOG
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as log:
        begins = log.tell()
        process = subprocess.Popen(  # noqa: S603  (our own command line)
            [sys.executable, "-m", "nodewright", *sys.argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, DETACHED: "1"},
            start_new_session=True,
        )
    ends = time.monotonic() + seconds
    while True:
        printed = _since(path, begins)
        if any(line.startswith(("ready", "waiting")) for line in printed):
            return printed
        if process.poll() is not None:
            last = " ".join(printed[-_LOG_LINES:]).removeprefix("nodewright: ")
            raise CliError(f"it did not start: {last or f'exit code {process.returncode}'}", f"See {path}")
        if time.monotonic() > ends:
            process.terminate()
            raise CliError(f"it was not ready after {seconds:.0f} s and is stopped again", f"See {path}")
        time.sleep(_POLL_SECONDS)


def stop(folder: Path, seconds: float) -> int:
    """End the control plane of ``folder`` and wait for it; gives its process, 0 if none runs.

    Raises CliError if it does not end within ``seconds``.
    """
    holder = holder_of(folder)
    if not holder:
        return 0
    with suppress(ProcessLookupError):
        try:
            os.kill(holder, signal.SIGTERM)
        except PermissionError as error:
            raise CliError(f"process {holder} belongs to another user", "Stop it as that user") from error
    ends = time.monotonic() + seconds
    while holder_of(folder) == holder:
        if time.monotonic() > ends:
            raise CliError(f"process {holder} did not end within {seconds:.0f} s", f"End it with `kill -9 {holder}`")
        time.sleep(_POLL_SECONDS)
    return holder


def holder_of(folder: Path) -> int:
    """The process that holds the folder, 0 if none does. Raises CliError if that can't be told."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}", "Name another folder with --data-dir") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        if not text.isdigit():
            raise CliError(f"{folder} is held by a process that has not said which one it is", "Try again") from None
        return int(text)
    finally:
        os.close(descriptor)
    return 0


def _since(path: Path, begins: int) -> list[str]:
    with path.open("rb") as log:
        log.seek(begins)
        return log.read().decode("utf-8", "replace").splitlines()
