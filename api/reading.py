"""Read one object that may be anything, field by field: a value of a wrong type gives the default and a fault.

The views in ``api/views.py`` are made of it. Nothing here raises, and null means the same as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from api.durations import parse_duration, parse_time
from api.faults import FieldError
from api.machinerules import failure_domains_fault

T = TypeVar("T")
_EMPTY: Mapping[str, Any] = {}


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is an object, else an empty one: for fields that no schema has checked."""
    return value if isinstance(value, dict) else _EMPTY


def spec_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """``spec`` of an object, or of a template; an empty one if it is absent, null or not an object."""
    return mapping(obj.get("spec"))


class Reading:
    """An object at ``path``, like ``spec.strategy``. ``faults``: of it and its children, in the order of reading."""

    __slots__ = ("_obj", "_path", "faults")

    def __init__(self, obj: object, path: str, faults: list[FieldError] | None = None) -> None:
        self.faults: list[FieldError] = [] if faults is None else faults
        self._path = path
        self._obj: Mapping[str, Any] = obj if isinstance(obj, Mapping) else _EMPTY
        if self._obj is not obj:
            self.faults.append(FieldError(path, "must be an object"))

    @classmethod
    def of_spec(cls, obj: Mapping[str, Any]) -> Reading:
        """The ``spec`` of an object; one that is absent is a fault."""
        return cls(obj.get("spec"), "spec")

    @property
    def problem(self) -> str:
        """The first fault as text for people, "" without one."""
        return str(self.faults[0]) if self.faults else ""

    def is_wrong(self, name: str) -> bool:
        """Whether this field has a fault."""
        path = f"{self._path}.{name}"
        return any(fault.path == path for fault in self.faults)

    def raw(self, name: str) -> Any:
        """The value as it is, None if it is absent: for what has a reader of its own (selectors, templates)."""
        return self._obj.get(name)

    def flag(self, name: str, default: bool) -> bool:
        """A value of another type counts as absent."""
        value = self._obj.get(name)
        return value if isinstance(value, bool) else default

    def count(self, name: str, default: T, low: int, high: int) -> int | T:
        """An integer from ``low`` to ``high``; in Python True is one too, here it is not."""
        value = self._obj.get(name)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        return self._wrong(name, default, f"{value!r} is not a number from {low} to {high}")

    def share(self, name: str, default: T) -> int | str | T:
        """A count or a percentage, unresolved: ``api.intorstring.resolve`` says what is wrong with its value."""
        value = self._obj.get(name)
        if value is None:
            return default
        if isinstance(value, int | str):
            return value
        return self._wrong(name, default, f"{value!r} is neither a number nor a percentage")

    def text(self, name: str, default: T) -> str | T:
        value = self._obj.get(name)
        if value is None or isinstance(value, str):
            return default if value is None else value
        return self._wrong(name, default, f"{value!r} is not a string")

    def choice(self, name: str, default: T, known: Sequence[str]) -> str | T:
        """One of the texts in ``known``. An empty one counts as absent."""
        value = self._obj.get(name)
        if not value:
            return default
        if isinstance(value, str) and value in known:
            return value
        return self._wrong(name, default, f"{value!r} is none of {', '.join(known)}")

    def duration(self, name: str, default: T) -> timedelta | T:
        value = self._obj.get(name)
        if value is None:
            return default
        try:
            return parse_duration(value)
        except (TypeError, ValueError, OverflowError):
            return self._wrong(name, default, f"{value!r} is not a duration like 90s, 10m or 1h30m")

    def time(self, name: str, default: T) -> datetime | T:
        value = self._obj.get(name)
        if value is None:
            return default
        try:
            return parse_time(value)
        except (TypeError, ValueError, OverflowError, AttributeError):
            return self._wrong(name, default, f"{value!r} is not a time like 2026-01-31T20:00:00Z")

    def domains(self, name: str, default: T) -> tuple[str, ...] | T:
        """Names of failure domains, each once. An empty list is not the same as none."""
        value = self._obj.get(name)
        if value is None:
            return default
        fault = failure_domains_fault(value)
        return self._wrong(name, default, fault) if fault else tuple(value)

    def child(self, name: str) -> Reading:
        """The object under ``name``; an empty one where there is none."""
        return Reading(self._obj.get(name) or _EMPTY, f"{self._path}.{name}", self.faults)

    def optional(self, name: str, read: Callable[[Reading], T]) -> T | None:
        """The object under ``name`` as ``read`` reads it, None where there is none."""
        value = self._obj.get(name)
        return None if value is None else read(Reading(value, f"{self._path}.{name}", self.faults))

    def _wrong(self, name: str, default: T, message: str) -> T:
        self.faults.append(FieldError(f"{self._path}.{name}", message))
        return default
