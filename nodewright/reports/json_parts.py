"""Read JSON of others: what has another type than it should have counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 1024
"""Characters of a text that is passed on."""


def part(value: Any, *path: str) -> Mapping[str, Any]:
    """The object below ``path``; {} where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict | Mapping) else None  # a dict is asked for first: it is fast
    return value if isinstance(value, dict | Mapping) else {}


def text(value: Any, *path: str) -> str:
    """The text below ``path``, at most ``LONGEST`` characters; "" where there is none."""
    found = part(value, *path[:-1]).get(path[-1])
    return found[:LONGEST] if isinstance(found, str) else ""


def number(value: Any, *path: str, default: int = 0) -> int:
    """The whole number below ``path``; ``default`` where there is none."""
    found = part(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def objects(value: Any, *path: str) -> list[Mapping[str, Any]]:
    """The objects of the list below ``path``; [] where there is none."""
    found = part(value, *path[:-1]).get(path[-1])
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
