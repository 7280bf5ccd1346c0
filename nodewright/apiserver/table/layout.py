"""What a kind's table looks like: its columns, and the function that fills them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from nodewright.apiserver.values import Column, Obj

Cells = list[Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind's table and how to fill a row. `conditions` gives the row conditions of an object."""

    columns: tuple[Column, ...]
    cells: Callable[[Obj, datetime], Cells]
    conditions: Callable[[Obj], list[Obj]] | None = None


NAME: Final = Column("Name", "string", ".metadata.name", "Name must be unique within a namespace.", "name")
AGE: Final = Column("Age", "string", ".metadata.creationTimestamp", "Time since the object was created.")
CREATED: Final = Column("Created At", "date", ".metadata.creationTimestamp", "When the object was created.")


def text(name: str, description: str = "") -> Column:
    """Describe a column of text."""
    return Column(name, "string", "", description or f"{name} of the object.")


def number(name: str, description: str = "") -> Column:
    """Describe a column of whole numbers."""
    return Column(name, "integer", "", description or f"{name} of the object.")


def boolean(name: str, description: str = "") -> Column:
    """Describe a column of true and false."""
    return Column(name, "boolean", "", description or f"{name} of the object.")


def date(name: str, description: str = "") -> Column:
    """Describe a column of times."""
    return Column(name, "date", "", description or f"{name} of the object.")


def wide(column: Column) -> Column:
    """Show a column only in wide output (`kubectl get -o wide`)."""
    return Column(column.name, column.type, column.json_path, column.description, column.format, 1)
