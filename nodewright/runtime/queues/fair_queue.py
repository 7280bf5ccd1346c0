"""A queue in which namespaces take turns: the one that wants much waits for itself, not the others for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


def _any(_group: str) -> bool:
    return True


class FairQueue(Generic[T]):
    """First in, first out within a group; one of each group in turn. A group is a namespace ("": of none).

    ``append``, ``pop`` and ``remove`` cost the same however many items wait; groups that may not have a turn are
    passed over one by one. The dicts are OrderedDicts: to take the first of a plain dict again and again passes over
    all entries that were taken before.
    """

    def __init__(self) -> None:
        self._groups: OrderedDict[str, OrderedDict[Hashable, T]] = OrderedDict()
        """Whose turn is next comes first; items by key."""
        self._length = 0
        self._appended = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for items in self._groups.values():
            yield from items.values()

    def of(self, group: str) -> int:
        """How many of ``group`` wait."""
        return len(self._groups.get(group, ()))

    def append(self, group: str, item: T, key: Hashable = None) -> None:
        """``key`` is what ``remove`` finds the item by; an item of the same key that waits is replaced, and its place
        is kept. None: the item is not to be removed.
        """
        self._appended += 1
        key = (self._appended,) if key is None else key
        items = self._groups.setdefault(group, OrderedDict())
        self._length += key not in items
        items[key] = item

    def next_group(self, may: Callable[[str], bool] = _any) -> str | None:
        """The first group that ``may`` have a turn: ``pop`` takes from it."""
        return next((group for group in self._groups if may(group)), None)

    def pop(self, may: Callable[[str], bool] = _any) -> T | None:
        """The next item of the first group that ``may`` have a turn; None if there is none. Items are not None."""
        group = self.next_group(may)
        if group is None:
            return None
        items = self._groups[group]
        _, item = items.popitem(last=False)
        self._length -= 1
        if items:
            self._groups.move_to_end(group)
        else:
            del self._groups[group]
        return item

    def remove(self, group: str, key: Hashable) -> None:
        """Raises KeyError if no item with this key waits."""
        items = self._groups[group]
        del items[key]
        self._length -= 1
        if not items:
            del self._groups[group]
