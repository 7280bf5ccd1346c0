"""The state of the embedded control plane and its rules: pure, synchronous, no HTTP."""

from __future__ import annotations

from nodewright.controlplane.store.journal import Journal, JournalEntry
from nodewright.controlplane.store.kernel import StoreOptions
from nodewright.controlplane.store.registry import ResourceRegistry
from nodewright.controlplane.store.sqlite_journal import JournalError, SqliteJournal
from nodewright.controlplane.store.store import Store
from nodewright.controlplane.store.watching import Watch

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
