"""Tables of custom resources: the columns that a CustomResourceDefinition asks for, by JSONPath."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from nodewright.controlplane import jsonpath
from nodewright.controlplane.table.layout import NAME, Cells, Layout
from nodewright.controlplane.table.wording import human_duration, name, parse_time
from nodewright.controlplane.validation.gotext import compact_json, value_text
from nodewright.controlplane.values import Column, Obj


def layout(columns: tuple[Column, ...]) -> Layout:
    """Give the layout for printer columns; the name always comes first. Raises JSONPathError."""
    fillers = [_filler(column) for column in columns]

    def cells(obj: Obj, now: datetime) -> Cells:
        return [name(obj), *(fill(obj, now) for fill in fillers)]

    return Layout((NAME, *columns), cells)


def _filler(column: Column) -> Callable[[Obj, datetime], Any]:
    path = jsonpath.compile_path(column.json_path)

    def fill(obj: Obj, now: datetime) -> Any:
        found = path.find(obj)
        return _cell(column.type, found[0], now) if found else None

    return fill


def _cell(kind: str, value: Any, now: datetime) -> Any:
    """Give a value as a cell of a type, None if it does not fit."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    match kind:
        case "string":
            return _printed(value)
        case "integer":
            return None if number is None else int(number)
        case "number":
            return None if number is None else float(number)
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            moment = parse_time(value)
            return "<invalid>" if moment is None else human_duration((now - moment).total_seconds())
        case _:
            return None


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    return compact_json(value) if isinstance(value, (dict, list)) else value_text(value)
