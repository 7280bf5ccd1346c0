"""Stable digests of plain data, for names and for "has it changed?"."""

from __future__ import annotations

import hashlib
import json
from typing import Any

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
