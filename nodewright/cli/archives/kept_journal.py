"""The journal of a store that lives in memory, until somebody saves what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodewright.apiserver.store import JournalEntry


class KeptJournal:
    """As ``nodewright.apiserver.store.Journal``. ``changed``: something was written since ``saved``."""

    def __init__(self, entries: Iterable[JournalEntry] = (), revision: int = 0) -> None:
        self._entries = {entry[:3]: entry for entry in entries}
        self.revision = revision
        self.changed = False

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """By collection, namespace and name."""
        return tuple(self._entries[key] for key in sorted(self._entries))

    def load(self) -> tuple[Iterable[JournalEntry], int]:
        return self.entries, self.revision

    def append(self, entries: Sequence[JournalEntry]) -> None:
        for entry in entries:
            self.changed = True
            self.revision = max(self.revision, entry.revision)
            if entry.obj is None:
                self._entries.pop(entry[:3], None)
            else:
                self._entries[entry[:3]] = entry

    def saved(self) -> None:
        self.changed = False

    def probe(self) -> None:
        """Memory takes what it is given."""

    def close(self) -> None:
        """There are no files."""
