"""String formats that CustomResourceDefinitions may ask for, as the real server checks them.

Formats that are not in the table are accepted without a check; so does the real server with formats unknown to it.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

INTEGER_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

_DATE_TIME = r"(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d{2}:?\d{2})"
_DURATION = r"[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)"
_WORDY_DURATION = (
    r"\s*\d+\s*(nanoseconds?|nanos?|ns|microseconds?|micros?|us|µs|milliseconds?|millis?|ms|seconds?|secs?|s|"
    r"minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w)\s*"
)
_HEX4 = "[0-9a-fA-F]{4}"
_HOST_LABEL = r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"

_compiled = cache(re.compile)
"""Each when it is first asked for: all of them are a twentieth of the server's start."""


def _date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _date_time(text: str) -> bool:
    return _compiled(_DATE_TIME).fullmatch(text) is not None and _date(text[:10])


def _duration(text: str) -> bool:
    return (
        _compiled(_DURATION).fullmatch(text) is not None
        or _compiled(_WORDY_DURATION).fullmatch(text.lower()) is not None
    )


def _address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


def _cidr(text: str) -> bool:
    return "/" in text and _address(lambda t: ipaddress.ip_network(t, strict=False))(text)


def _uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text.startswith("/") or (bool(parts.scheme) and text[: len(parts.scheme)].isascii())


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _hostname(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return len(text) <= 255 and all(len(part) <= 63 and _compiled(_HOST_LABEL).fullmatch(part) for part in labels)


def _matching(pattern: str) -> Callable[[str], bool]:
    return lambda text: _compiled(pattern).fullmatch(text) is not None


def _uuid(version: str, variant: str = "[0-9a-fA-F]") -> Callable[[str], bool]:
    return _matching(
        f"[0-9a-fA-F]{{8}}-?{_HEX4}-?{version}[0-9a-fA-F]{{3}}-?{variant}[0-9a-fA-F]{{3}}-?[0-9a-fA-F]{{12}}"
    )


_ANY_HEX = "[0-9a-fA-F]"
_RFC_VARIANT = "[89abAB]"

CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "datetime": _date_time,
    "date": _date,
    "duration": _duration,
    "ipv4": _address(ipaddress.IPv4Address),
    "ipv6": _address(ipaddress.IPv6Address),
    "cidr": _cidr,
    "mac": _matching("([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5,7}|[0-9a-fA-F]{4}([.][0-9a-fA-F]{4}){2,3})"),
    "uuid": _uuid(_ANY_HEX),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", _RFC_VARIANT),
    "uuid5": _uuid("5", _RFC_VARIANT),
    "byte": _byte,
    "email": _matching(r"[^@\s]+@[^@\s]+"),
    "hostname": _hostname,
    "uri": _uri,
    "hexcolor": _matching("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "k8sshortname": _matching("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"),
    "k8slongname": _matching(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*"),
}


def normal_name(schema: Mapping[str, Any], types: tuple[str, ...]) -> str:
    """Give the name under which a schema's string format stands in CHECKS ("date-time" is "datetime"), or ""."""
    wanted = schema.get("format")
    if not isinstance(wanted, str) or (types and "string" not in types):
        return ""
    name = wanted.replace("-", "")
    return name if name in CHECKS else ""
