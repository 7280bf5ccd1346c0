"""What a printer is: the columns of a kind, and how the cells of one of its objects come about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nodewright.controlplane.values import Obj

Cells = Callable[[Obj, datetime], list[Any]]
"""Makes an object's cells, as seen at a time. Must stand objects with nothing but metadata: bookmarks are such."""

NONE = "<none>"
UNSET = "<unset>"

_KNOWN = {
    "Name": "Name of the object, unique within its namespace.",
    "Age": "Time since the object was created.",
    "Created At": "When the object was created.",
}


@dataclass(frozen=True, slots=True)
class Printer:
    """`columns` are the Table's columnDefinitions; `conditions` are those of a row, if a kind has any."""

    columns: Sequence[Obj]
    cells: Cells
    conditions: Callable[[Obj], list[Obj] | None] | None = None


def columns(text: str) -> list[Obj]:
    """Read columns: `Name | Desired:integer | +IP` — the type is string if none is given, `+` is for wide only."""
    return [_column(part.strip()) for part in text.split("|")]


def _column(text: str) -> Obj:
    name, _, type_ = text.lstrip("+").partition(":")
    priority = 1 if text.startswith("+") else 0
    return column(name, type_ or "string", "name" if name == "Name" else "", _KNOWN.get(name, ""), priority)


def column(name: str, type_: str, format_: str, description: str, priority: int) -> Obj:
    """Make one entry of columnDefinitions."""
    return {"name": name, "type": type_, "format": format_, "description": description, "priority": priority}


def part(obj: Obj, *path: str) -> Obj:
    """Give the mapping at a path, an empty one if there is none."""
    for name in path:
        found = obj.get(name)
        if not isinstance(found, dict):
            return {}
        obj = found
    return obj


def name_of(obj: Obj) -> str:
    """Give metadata.name."""
    name: str = part(obj, "metadata").get("name", "")
    return name
