"""Digests of plain data, and what pure functions remember of objects, by UID.

Stable digests of plain data, for names and for "has it changed?".

What pure functions remember of objects, by UID: each memory lets go of an object that is gone.

A memory saves time and decides nothing: with an empty one every answer is the same. The cache calls ``forget`` when an
object was deleted and all have heard of it; ``most`` is for processes without a cache.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Generic, TypeVar

from controllers.kernel.refs import Obj, uid_of

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, so that no digest spells a word (the alphabet Kubernetes uses for the same reason)."""


def digest(value: Any, length: int = 8) -> str:
    """A DNS-safe digest of JSON-like data; equal data gives equal text whatever the order of keys."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    number = int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:16], "big")
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


T = TypeVar("T")

_ALL: list[Memory[object]] = []


class Memory(Generic[T]):
    """One value per UID, at most ``most``; a full memory begins anew."""

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._values: dict[str, T] = {}
        _ALL.append(self)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._values)

    def of(self, uid: str) -> T | None:
        return self._values.get(uid)

    def keep(self, uid: str, value: T) -> None:
        """Objects without a UID are not remembered: nobody would ever say that they are gone."""
        if not uid:
            return
        if len(self._values) >= self._most and uid not in self._values:
            self._values.clear()
        self._values[uid] = value

    def forget(self, uid: str) -> None:
        self._values.pop(uid, None)


def forget(obj: Obj) -> None:
    """``obj`` is gone for good."""
    uid = uid_of(obj)
    for memory in _ALL:
        memory.forget(uid)
