"""How is the state kept in a file? A SQLite database in WAL mode, one row per object, one transaction per flush."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from nodewright.controlplane.store.journal import JournalEntry

FORMAT = 1
"""The version of the tables, kept in SQLite's user_version."""

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (collection, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS last (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL);
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?"


class JournalError(Exception):
    """The file can't be used: another process has it, or it is of a later format. The message says which."""


class SqliteJournal:
    """A journal in one file, readable by its owner only, used by one process at a time.

    `synchronous=FULL` makes SQLite wait for the disk at each commit, so that neither a crash of the process nor of
    the machine loses what was flushed.
    """

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        os.chmod(path, 0o600)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=1.0, check_same_thread=False)
        try:
            self._open(path)
        except BaseException:
            self._database.close()
            raise

    def _open(self, path: Path) -> None:
        try:
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise JournalError(f"{path} is in use by another process: {error}") from error
        except sqlite3.DatabaseError as error:
            raise JournalError(f"{path} is no journal: {error}") from error
        (found,) = self._database.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise JournalError(f"{path} has format {found}, and only formats up to {FORMAT} can be read")
        for statement in _TABLES.split(";"):
            self._database.execute(statement)
        self._database.execute(f"PRAGMA user_version={FORMAT}")
        self._database.execute("COMMIT")

    def load(self) -> tuple[Iterator[JournalEntry], int]:
        """Give all objects by collection, namespace and name, and the last resourceVersion."""
        row = self._database.execute("SELECT revision FROM last").fetchone()
        return self._entries(), row[0] if row is not None else 0

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Write these changes in one transaction. Raises sqlite3.Error; then none of them is written."""
        if not entries:
            return
        run = self._database.execute
        run("BEGIN IMMEDIATE")
        try:
            for entry in _last_of_each(entries):
                if entry.obj is None:
                    run(_REMOVE, entry[:3])
                else:
                    run(_PUT, (*entry[:4], entry.body or orjson.dumps(entry.obj)))
            run("INSERT OR REPLACE INTO last VALUES (1, ?)", (entries[-1].revision,))
            run("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _entries(self) -> Iterator[JournalEntry]:
        rows = self._database.execute("SELECT collection, namespace, name, revision, body FROM objects")
        for collection, namespace, name, revision, body in rows:
            yield JournalEntry(collection, namespace, name, revision, orjson.loads(body))


def _last_of_each(entries: Sequence[JournalEntry]) -> Iterator[JournalEntry]:
    """Drop what a later entry of the same object overwrites anyway."""
    return iter({entry[:3]: entry for entry in entries}.values())
