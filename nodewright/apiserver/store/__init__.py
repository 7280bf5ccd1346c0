"""The state of the embedded control plane and its rules: pure, synchronous, no HTTP."""

from __future__ import annotations

from nodewright.apiserver.store.journal import Journal, JournalEntry
from nodewright.apiserver.store.kernel import StoreOptions
from nodewright.apiserver.store.registry import ResourceRegistry
from nodewright.apiserver.store.sqlite_journal import JournalError, SqliteJournal
from nodewright.apiserver.store.store import Store
from nodewright.apiserver.store.watching import Watch

__all__ = [
    "Journal",
    "JournalEntry",
    "JournalError",
    "ResourceRegistry",
    "SqliteJournal",
    "Store",
    "StoreOptions",
    "Watch",
]
