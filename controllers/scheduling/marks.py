"""Which classes a selector can match at all: found by marks, so that not every class is compared with every selector.

A mark of a class is one of its labels or one of its anti-affinity terms. A selector that wants ``app In (a, b)`` can
mean only classes with one of the marks ``app=a`` and ``app=b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from api.selectors import Operator, Selector

Mark = object
T = TypeVar("T")


def marks_of(selector: Selector) -> tuple[Mark, ...] | None:
    """Of which a class must have one to be selected; None: any class may be."""
    wanted = (each for each in selector.requirements if each.operator is Operator.IN)
    first = next(wanted, None)
    return None if first is None else tuple((first.key, value) for value in first.values)


class Index(Generic[T]):
    """Things by the marks that they look for."""

    def __init__(self) -> None:
        self._by_mark: dict[Mark, list[T]] = {}
        self._any: list[T] = []

    def add(self, thing: T, marks: tuple[Mark, ...] | None) -> None:
        if marks is None:
            self._any.append(thing)
        for mark in marks or ():
            self._by_mark.setdefault(mark, []).append(thing)

    def concerning(self, marks: Iterable[Mark]) -> Iterator[T]:
        """Each thing that looks for one of the marks or for none in particular."""
        yield from self._any
        for mark in marks:
            yield from self._by_mark.get(mark, ())
