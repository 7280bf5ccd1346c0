"""Answers without what no two servers have in common, and where two of them differ.

Left out are uids, times, the digits of resource versions and names that were generated. What is left of a resource
version is whether the object got a new one: a write that changes nothing must not make one. Of causes that are told
twice, one is enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.differential.speech import Answer

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FINE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
_VERSIONS = re.compile(
    r"(?<=\()\d+(?=\) does not match)|(?<=in record \()\d+(?=\))|(?<=old resource version: )\d+ \(\d+\)"
    r"|(?<=large resource version: )\d+, current: \d+"
)
_GENERATED = re.compile(r"(?<=[-_])[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_BEFORE_CAUSES = re.compile(r"( is invalid:) .*", re.DOTALL)
"""The rest of such a sentence lists the causes, in any order."""
_AGE = re.compile(r"\d+s")
ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """``part`` is the path into the answer, e.g. ``body.metadata.generation``; ``#`` is a list's length."""

    part: str
    ours: Any
    theirs: Any


class Plainer:
    """Of one server: it remembers each object's last resource version."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def answer(self, answer: Answer) -> dict[str, Any]:
        return {"status": answer.status, "headers": dict(answer.headers), "body": self._plain("", answer.body)}

    def _plain(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            plain = [self._plain("", entry) for entry in value]
            if key == "causes":
                plain = [cause for place, cause in enumerate(plain) if cause not in plain[:place]]
            return sorted(plain, key=_UNORDERED[key]) if key in _UNORDERED else plain
        if not isinstance(value, str):
            return value
        if key == "continue" and value:
            return "CONTINUE"
        if key == "resourceVersion" and value:
            return "VERSION"
        if key == "message":
            first, *others = value.split("\n")
            value = "\n".join([first, *sorted(others)])  # what is wrong, in the order of a map of Go
        return _text(value)

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        plain = {_text(key): self._plain(key, entry) for key, entry in value.items()}
        if isinstance(plain.get("message"), str) and (plain.get("details") or {}).get("causes"):
            plain["message"] = _BEFORE_CAUSES.sub(r"\1 …", plain["message"])
        uid, version = value.get("uid"), value.get("resourceVersion")
        if isinstance(uid, str) and isinstance(version, str) and version.isdigit():
            before, now = self._versions.get(uid), int(version)
            self._versions[uid] = now
            plain["resourceVersion"] = "first" if before is None else _relation(before, now)
        return plain


def _relation(before: int, now: int) -> str:
    return "same" if now == before else "newer" if now > before else "older"


def _manager(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("operation", "manager", "subresource", "apiVersion"))


_UNORDERED: dict[str, Callable[[Any], Any]] = {
    "managedFields": _manager,
    "resources": lambda entry: entry["name"] if isinstance(entry, dict) else entry,
    "verbs": str,
    "causes": lambda entry: (str(entry.get("field")), entry.get("message", "")),
}
"""Lists whose order depends on the second of a write, or on nothing at all, and how to sort them."""


def _text(text: str) -> str:
    if _AGE.fullmatch(text):
        return "AGE"
    text = _FINE_TIME.sub("FINE-TIME", _TIME.sub("TIME", _UID.sub("UID", text)))
    return _GENERATED.sub("SUFFIX", _VERSIONS.sub("N", text))


def differences(ours: Any, theirs: Any, part: str = "") -> Iterator[Difference]:
    """Every part in which they differ, leaves first; a field that one of them lacks is one difference."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            below = f"{part}.{key}" if part else key
            yield from differences(ours.get(key, ABSENT), theirs.get(key, ABSENT), below)
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield Difference(f"{part}.#", len(ours), len(theirs))
        for number, (mine, their) in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(mine, their, f"{part}.{number}")
    elif ours != theirs or type(ours) is not type(theirs):
        yield Difference(part, ours, theirs)
