"""The one normal form of a request target. A target that two servers could read in two ways is refused.

What is passed on is the normal form, never the client's spelling: the backend sees the path that was decided on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

_PLAIN = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,=:@%/]*\Z")
"""RFC 3986, 3.3, without ``;``: servers disagree on whether parameters belong to a segment."""
_QUERY = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*\Z")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMBIGUOUS = frozenset("/\\;#?%")
_LONGEST = 4096
_INTERCEPTED = (("pool", "size"), ("pool", "terminate"))
_ENDINGS = frozenset({("pool", "size"), ("pool", "terminate")})


class TargetError(ValueError):
    """A target that has no normal form; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """``segments`` are decoded and not empty. ``query`` is without its question mark."""

    segments: tuple[str, ...]
    query: str = ""

    @property
    def path(self) -> str:
        return "/" + "/".join(self.segments)

    @property
    def encoded(self) -> str:
        """For a request line."""
        path = "/" + "/".join(quote(segment, safe="-._~!$&'()*+,=:@") for segment in self.segments)
        return f"{path}?{self.query}" if self.query else path


def normal_form(raw: str) -> Target:
    """``raw``: the target as it stood in the request line. Raises TargetError."""
    if len(raw) > _LONGEST:
        raise TargetError(f"it is longer than {_LONGEST} characters")
    if not raw.startswith("/"):
        raise TargetError("it has to begin with '/'")
    path, _, query = raw.partition("?")
    if not _PLAIN.match(path) or not _QUERY.match(query):
        raise TargetError("it has a character that is not allowed there, such as '#', ';', '\\' or a space")
    if _BROKEN_ESCAPE.search(raw):
        raise TargetError("'%' without two hexadecimal digits")
    return Target(tuple(_segment(part) for part in path.split("/") if part not in ("", ".")), query)


def bypasses(method: str, target: Target) -> str:
    """Why passing a changing request on would go round what the proxy takes over; "" if it would not.

    A cloudpool server of several pools has ``/cloudpools/NAME/…``, some with and some without ``/pool``; a backend
    whose own path is ``/cloudpools/NAME`` has these below its root.
    """
    if method in {"GET", "HEAD", "OPTIONS"}:
        return ""
    folded = tuple(segment.casefold() for segment in target.segments)
    if target.segments in _INTERCEPTED:
        return "" if method != "POST" else "it is taken over by the proxy"
    if folded[:1] == ("cloudpools",):
        return "this proxy stands in front of one pool"
    if folded[-1:] == ("terminate",) or folded[-2:] in _ENDINGS:
        return "it is another name of a request that the proxy takes over"
    return ""


def _segment(text: str) -> str:
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise TargetError("it is not UTF-8 once decoded") from None
    if decoded in (".", ".."):
        raise TargetError("'..' and an encoded '.' are not allowed in it")
    if not decoded.isprintable() or decoded != decoded.strip() or _AMBIGUOUS & set(decoded):
        raise TargetError("an encoded delimiter, space or control character is not allowed in it")
    return decoded
