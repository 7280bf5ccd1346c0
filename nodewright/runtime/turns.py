"""A queue in which namespaces take turns: the one that wants much waits for itself, not the others for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


def _any(_group: str) -> bool:
    return True


class Turns(Generic[T]):
    """First in, first out within a group; one of each group in turn. A group is a namespace ("": of none)."""

    def __init__(self) -> None:
        self._groups: dict[str, deque[T]] = {}
        """Whose turn is next comes first."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for items in self._groups.values():
            yield from items

    def of(self, group: str) -> int:
        """How many of ``group`` wait."""
        return len(self._groups.get(group, ()))

    def append(self, group: str, item: T) -> None:
        self._groups.setdefault(group, deque()).append(item)
        self._length += 1

    def next_group(self, may: Callable[[str], bool] = _any) -> str | None:
        """The first group that ``may`` have a turn: ``pop`` takes from it."""
        return next((group for group in self._groups if may(group)), None)

    def pop(self, may: Callable[[str], bool] = _any) -> T | None:
        """The next item of the first group that ``may`` have a turn; None if there is none. Items are not None."""
        group = self.next_group(may)
        if group is None:
            return None
        items = self._groups.pop(group)
        item = items.popleft()
        self._length -= 1
        if items:
            self._groups[group] = items  # behind all others
        return item

    def remove(self, group: str, item: T) -> None:
        """Raises ValueError or KeyError if it does not wait."""
        items = self._groups[group]
        items.remove(item)
        self._length -= 1
        if not items:
            del self._groups[group]
