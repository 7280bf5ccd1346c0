"""What gRPC's own library (C-core) says on stderr, read line by line: refused TLS handshakes, with the peer. Pure.

gRPC for Python reports no handshake that failed. Its library writes the reason to file descriptor 2, and with
``GRPC_TRACE=handshaker`` the peer as well. That text is no API: a line that is not understood is handed on, and a
reason whose peer does not follow is reported without one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

NO_CERTIFICATE, UNTRUSTED, TLS_VERSION, NO_TLS = "no-certificate", "untrusted-certificate", "tls-version", "no-tls"
CALLER_REFUSED, CALLER_LEFT, TIMEOUT, OTHER = "caller-refused", "caller-left", "timeout", "other"
REASONS = (NO_CERTIFICATE, UNTRUSTED, TLS_VERSION, NO_TLS, CALLER_REFUSED, CALLER_LEFT, TIMEOUT, OTHER)
_WORDS = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", NO_CERTIFICATE),
    ("CERTIFICATE_VERIFY_FAILED", UNTRUSTED),
    ("NO_SHARED_CIPHER", TLS_VERSION),
    ("UNSUPPORTED_PROTOCOL", TLS_VERSION),
    ("WRONG_VERSION_NUMBER", NO_TLS),
    ("HTTP_REQUEST", NO_TLS),
    ("_ALERT_", CALLER_REFUSED),
    ("imed out", TIMEOUT),
    ("imeout", TIMEOUT),
    ("Socket closed", CALLER_LEFT),
    ("onnection reset", CALLER_LEFT),
)
LONGEST_DETAIL = 200
_LINE = re.compile(r"([IWEF])\d{4} [\d:.]+ +(\d+) ([\w./-]+):\d+\] (.*)")
_PEER = re.compile(r"grpc\.internal\.endpoint_peer_address=(?:ipv[46]:)?([^,}\s]+)")
_FAILED = re.compile(r"CallNextHandshakerLocked: error=(?!OK\b)(.*)")
_REASON_ONLY = "Handshake failed with error "
_TRACES = ("handshaker.cc", "channel_trace.h", "trace.cc")
_CONTINUES = ("=== Source Location Trace", "src/core/", " shutdown=")
_STOPPING = "erver shutdown"


@dataclass(frozen=True, slots=True)
class Refused:
    """A handshake that came to nothing. ``peer``: ``host:port``, or "" if it is unknown."""

    reason: str
    detail: str
    peer: str = ""


@dataclass(frozen=True, slots=True)
class Logged:
    """Another line of the library. ``level``: debug, warning or error."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """A line of somebody else."""

    text: str


Found = Refused | Logged | Foreign
_LEVELS = {"I": "debug", "W": "warning", "E": "error", "F": "error"}


@dataclass(slots=True)
class CoreLines:
    """``feed`` each line without its end, ``flush`` when none has come for a while."""

    _reasons: dict[str, str] = field(default_factory=dict)
    """By thread: reasons whose trace is yet to come."""
    _failure: str = ""
    """Error of the trace that is being read; its peer comes in a later line."""
    _in_trace: bool = False

    def feed(self, line: str) -> list[Found]:
        match = _LINE.match(line)
        if match is None:
            return self._continued(line)
        level, thread, file, text = match.groups()
        before = self._end_trace()
        self._in_trace = file.rpartition("/")[2] in _TRACES
        if text.startswith(_REASON_ONLY):
            earlier = self._reasons.pop(thread, "")
            self._reasons[thread] = text.removeprefix(_REASON_ONLY)
            return [*before, *([refused(earlier)] if earlier else [])]
        if failed := _FAILED.match(text):
            self._reasons.pop(thread, None)
            self._failure = failed[1]
            return [*before, *self._with_peer(text)]
        return before if self._in_trace else [*before, Logged(_LEVELS[level], f"{file}: {text}")]

    def flush(self) -> list[Found]:
        found = [*self._end_trace(), *map(refused, self._reasons.values())]
        self._reasons.clear()
        self._in_trace = False
        return found

    def _continued(self, line: str) -> list[Found]:
        if self._in_trace and (not line.strip() or line.startswith(_CONTINUES)):
            return self._with_peer(line)
        return [Foreign(line)]

    def _with_peer(self, text: str) -> list[Found]:
        peer = _PEER.search(text)
        if not self._failure or peer is None:
            return []
        failure, self._failure = self._failure, ""
        return [] if _STOPPING in failure else [refused(failure, unquote(peer[1]))]

    def _end_trace(self) -> list[Found]:
        failure, self._failure = self._failure, ""
        return [refused(failure)] if failure and _STOPPING not in failure else []


def refused(text: str, peer: str = "") -> Refused:
    reason = next((reason for word, reason in _WORDS if word in text), OTHER)
    return Refused(reason, text[:LONGEST_DETAIL], peer)
