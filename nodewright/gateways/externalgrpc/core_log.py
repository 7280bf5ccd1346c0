"""Lines that gRPC's own library writes to stderr become log lines and a metric of ours.

The library knows no log but file descriptor 2. So that becomes a pipe which a thread reads, and ``sys.stderr`` becomes
a copy of the former one. Lines of others who write there (programs that a kubeconfig runs) are handed on as they are.
If the process dies of a fault in C code, the last lines in the pipe are lost with it: to look for such a fault, set
GRPC_TRACE or GRPC_VERBOSITY, and nothing is redirected.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import structlog

from nodewright.gateways.externalgrpc.core_lines import CALLER_LEFT, REASONS, CoreLines, Foreign, Found, Logged, Refused
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.externalgrpc")
_SETTINGS = ("GRPC_TRACE", "GRPC_VERBOSITY")
STDERR = 2
_IDLE = 0.2
"""Seconds without a line after which what was read is reported as far as it goes."""
SAME_AGAIN = 60.0
"""Seconds in which a host that is refused for the same reason is counted, and not logged again."""
_MOST_HOSTS = 1000
_LONGEST_LINE = 1 << 16


class Teller:
    """Counts each refused handshake, and logs the first of a host and a reason in a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        for reason in REASONS:  # a series that begins with its first event shows no increase
            metrics.of(metrics.GRPC_HANDSHAKES_REFUSED, reason)
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    def __call__(self, found: Found) -> None:
        match found:
            case Refused():
                self._refused(found)
            case Logged(level, text):
                getattr(_log, level)("gRPC library", text=text)

    def _refused(self, found: Refused) -> None:
        metrics.of(metrics.GRPC_HANDSHAKES_REFUSED, found.reason).inc()
        key = (found.peer.rpartition(":")[0], found.reason)
        now = self._now()
        since, unlogged = self._last.get(key, (now - SAME_AGAIN, 0))
        if now - since < SAME_AGAIN:
            self._last[key] = (since, unlogged + 1)
            return
        if len(self._last) >= _MOST_HOSTS:
            self._last.clear()
        self._last[key] = (now, 0)
        log = _log.info if found.reason == CALLER_LEFT else _log.warning
        log(
            "TLS handshake refused", peer=found.peer or "unknown", reason=found.reason, detail=found.detail,
            more_since_last_line=unlogged,
        )  # fmt: skip


@contextmanager
def redirected(tell: Callable[[Found], None] | None = None) -> Iterator[None]:
    """Has to begin before gRPC is loaded, and before logs are set up: ``sys.stderr`` is another one inside."""
    if any(os.environ.get(name) for name in _SETTINGS):
        yield
        return
    os.environ["GRPC_TRACE"] = "handshaker"
    former, before = os.dup(STDERR), sys.stderr
    source, sink = os.pipe()
    os.dup2(sink, STDERR, inheritable=True)
    os.close(sink)
    if _is_stderr(before):
        sys.stderr = os.fdopen(os.dup(former), "w", buffering=1, errors="backslashreplace")
    reader = threading.Thread(target=_read, args=(source, former, tell or Teller()), name="grpc-log", daemon=True)
    reader.start()
    try:
        yield
    finally:
        sys.stderr = before
        os.dup2(former, STDERR)
        reader.join(1.0)
        if not reader.is_alive():  # else a child process still has the pipe
            os.close(former)
        os.environ.pop("GRPC_TRACE", None)


def _is_stderr(stream: object) -> bool:
    try:
        return bool(stream.fileno() == STDERR)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def _read(source: int, former: int, tell: Callable[[Found], None]) -> None:
    lines, rest = CoreLines(), b""
    while True:
        if not select.select([source], [], [], _IDLE)[0]:
            _tell_all(lines.flush(), former, tell)
            continue
        content = os.read(source, _LONGEST_LINE)
        *whole, rest = (rest + content).split(b"\n")
        if len(rest) > _LONGEST_LINE or (rest and not content):
            whole, rest = [*whole, rest], b""
        for line in whole:
            _tell_all(lines.feed(line.decode("utf-8", "replace")), former, tell)
        if not content:
            _tell_all(lines.flush(), former, tell)
            os.close(source)
            return


def _tell_all(found: list[Found], former: int, tell: Callable[[Found], None]) -> None:
    for each in found:
        with suppress(OSError):  # nobody listens any more: the pipe must be read all the same
            if isinstance(each, Foreign):
                os.write(former, each.text.encode("utf-8", "replace") + b"\n")
            else:
                tell(each)
