"""How does the state outlive the process? The contract of a journal; `sqlite_journal` keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from nodewright.apiserver.values import Obj


class JournalEntry(NamedTuple):
    """The state of one object after a commit; `obj` is None if the object was removed.

    `body` is the object as JSON, b"" if it was not serialised yet.
    """

    collection: str
    namespace: str
    name: str
    revision: int
    obj: Obj | None
    body: bytes = b""


class Journal(Protocol):
    """Keeps the last state of every object. Not a history: replaying gives objects, not watch events."""

    def load(self) -> tuple[Iterable[JournalEntry], int]:
        """Give all objects and the last resourceVersion that was written (0 for a new journal)."""
        ...

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Write these changes as one transaction; when it returns they survive a crash.

        Raises an exception if they may not have been written; they are then appended again, with later ones.
        """
        ...

    def probe(self) -> None:
        """Write something that changes nothing. Raises an exception if `append` would."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...
