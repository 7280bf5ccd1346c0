"""A fault in one field, and safe ways down into objects that may be anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

LONGEST: Final = 512
"""Characters of a path or of a message; longer ones are cut."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """``path`` as Kubernetes writes it (``spec.taints[0].key``); ``message`` for people, without the path."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def shortened(self) -> FieldError:
        """The same where it is short: a path holds keys of others, a message what they wrote."""
        if len(self.path) <= LONGEST and len(self.message) <= LONGEST:
            return self
        return FieldError(_cut(self.path), _cut(self.message))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


_NOTHING: Mapping[str, Any] = {}


def child(obj: Any, name: str) -> Mapping[str, Any]:
    """The object under ``name``; an empty one where there is none (the schema says what type was expected)."""
    found = obj.get(name) if isinstance(obj, Mapping) else None
    return found if isinstance(found, Mapping) else _NOTHING


def items(obj: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects in the list under ``name``, with their places."""
    found = obj.get(name)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def text_of(obj: Any, name: str) -> str:
    """The string under ``name``, or ""."""
    found = obj.get(name) if isinstance(obj, Mapping) else None
    return found if isinstance(found, str) else ""
