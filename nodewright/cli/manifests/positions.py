"""Where in a file a field stands, and how field paths are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and list indexes from the root of a document."""

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")
_TOKEN = re.compile(r"""\.?([A-Za-z_$][^.\[\]]*)|\[([0-9]{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\['([^']*)'\]|\[([^\]]*)\]""")


@dataclass(frozen=True, slots=True)
class Position:
    """One place in a text, both counted from 1."""

    line: int
    column: int


def write_path(path: Sequence[str | int]) -> str:
    """``("spec", "taints", 0, "key")`` as ``spec.taints[0].key``; keys that hold dots are quoted in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.match(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]' if text else part
    return text


def read_path(text: str) -> Path:
    """The reverse of ``write_path``; also reads the API server's ``spec.labels[a.b/c]``.

    What can't be read ends the path: the caller then has the place of the part that could be.
    """
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            break
        key, index, quoted, single, bare = found.groups()
        parts.append(int(index) if index is not None else next(p for p in (key, quoted, single, bare) if p is not None))
        at = found.end()
    return tuple(parts)


def nearest(positions: Mapping[Path, Position], path: Path) -> Position | None:
    """The place of ``path``, or of its closest parent that is there (for a field that is missing)."""
    for length in range(len(path), -1, -1):
        found = positions.get(path[:length])
        if found:
            return found
    return None
