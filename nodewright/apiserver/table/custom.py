"""Tables of custom resources: the columns that a CustomResourceDefinition asks for, by JSONPath.

Follows apiextensions-apiserver's tableconvertor: of several values the first counts, and a value that is not of its
column's type leaves the cell empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from nodewright.apiserver import jsonpath
from nodewright.apiserver.jsonpath import Finder, JSONPathError
from nodewright.apiserver.table.layout import NAME, Cells, Layout
from nodewright.apiserver.table.wording import UNKNOWN, human_duration, name, parse_time
from nodewright.apiserver.validation.gotext import compact_json, number
from nodewright.apiserver.values import Column, Obj

_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp", "Time since the object was created.")
_INT64: Final = 1 << 63

_Convert = Callable[[Any, datetime], Any]


def layout(columns: tuple[Column, ...]) -> Layout:
    """Give the layout for printer columns, the age if there are none; the name always comes first.

    The columns end before the first whose path is no JSONPath: the real server checks only that it begins with a dot.
    """
    shown, finders = [], []
    for column in columns or (_AGE,):
        try:
            finders.append(jsonpath.compile_path(column.json_path))
        except JSONPathError:
            break
        shown.append(replace(column, description=column.description or _description(column)))
    fillers = [_filler(column.type, finder) for column, finder in zip(shown, finders, strict=True)]

    def cells(obj: Obj, now: datetime) -> Cells:
        return [name(obj), *[fill(obj, now) for fill in fillers]]

    return Layout((NAME, *shown), cells)


def _description(column: Column) -> str:
    return f"Custom resource definition column (in JSONPath format): {column.json_path}"


def _filler(kind: str, finder: Finder) -> _Convert:
    convert = _CONVERTERS.get(kind, _nothing)

    def fill(obj: Obj, now: datetime) -> Any:
        found = finder(obj)
        return convert(found[0], now) if found else None

    return fill


def _text(value: Any, now: datetime) -> Any:
    if type(value) is str:
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return compact_json(_whole_numbers(value)).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return number(value)


def _whole_numbers(value: Any) -> Any:
    """Write 1.0 as 1, as Go does."""
    if isinstance(value, dict):
        return {key: _whole_numbers(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _INT64 else value


def _integer(value: Any, now: datetime) -> Any:
    if not _is_number(value):
        return None
    # What int64 can't hold becomes its smallest value, as in Go on amd64.
    return int(value) if -_INT64 <= value < _INT64 else -_INT64


def _number(value: Any, now: datetime) -> Any:
    return _whole_numbers(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _boolean(value: Any, now: datetime) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> Any:
    if not isinstance(value, str):
        return None
    moment = parse_time(value)
    if moment is None:
        return "<invalid>" if value else UNKNOWN
    return human_duration((now - moment).total_seconds())


def _nothing(value: Any, now: datetime) -> Any:
    return None


_CONVERTERS: Final[Mapping[str, _Convert]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
