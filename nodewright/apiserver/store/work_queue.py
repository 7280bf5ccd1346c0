"""What is left to do in the background? A queue of tasks in which each task waits at most once."""

from __future__ import annotations

from typing import NamedTuple

from nodewright.apiserver.store.state import ObjectKey


class Task(NamedTuple):
    """Something to look at again. `kind` says which layer of the store looks."""

    kind: str
    key: ObjectKey


class WorkQueue:
    """First in, first out, without duplicates."""

    def __init__(self) -> None:
        self._tasks: dict[Task, None] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, kind: str, key: ObjectKey) -> None:
        """Ask for a look; nothing happens if it already waits."""
        self._tasks.setdefault(Task(kind, key))

    def pop(self) -> Task | None:
        """Take the task that waits longest, or None."""
        task = next(iter(self._tasks), None)
        if task is not None:
            del self._tasks[task]
        return task
