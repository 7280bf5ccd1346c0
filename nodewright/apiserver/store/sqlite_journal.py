"""How is the state kept in a file? A SQLite database in WAL mode, one row per object, one transaction per flush.

SQLite notices neither a WAL that is cut or lost (it goes on from the last page that it can read) nor flipped bits
within a row. So each row has a checksum, the database the sum of them, and a small file beside it (`watermark`) the
last revision with that sum. A state that is not the one that was written last is refused.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import orjson

from nodewright.apiserver.store.forcing import sync_file, sync_folder
from nodewright.apiserver.store.journal import JournalEntry
from nodewright.apiserver.store.watermark import Mark, Watermark

FORMAT = 2
"""The version of the tables, kept in SQLite's user_version. Format 1 had no checksums."""

_LOG = logging.getLogger("nodewright.apiserver")
_MASK = (1 << 64) - 1
_SPARE = 128 * 1024
_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, body BLOB NOT NULL, sum BLOB,
    PRIMARY KEY (collection, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS last (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, sum BLOB)
"""
_UPGRADE = "ALTER TABLE objects ADD COLUMN sum BLOB; ALTER TABLE last ADD COLUMN sum BLOB"
_ALL = "SELECT collection, namespace, name, revision, body, sum FROM objects"
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?"
_SUM = "SELECT sum FROM objects WHERE collection = ? AND namespace = ? AND name = ?"
_LAST = "INSERT OR REPLACE INTO last VALUES (1, ?, ?)"
_NO_DATABASE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TAKEN = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class JournalError(Exception):
    """The file can't be used: another process has it, it is of a later format, or damaged. The text says which."""


class DamagedStateError(JournalError):
    """The files don't hold the state that was written last."""


class SqliteJournal:
    """A journal in one file, readable by its owner only, used by one process at a time.

    `synchronous=FULL` makes SQLite wait for the disk at each commit, so that neither a crash of the process nor of
    the machine loses what was flushed. With `accept_loss` a damaged state is no error: the journal goes on with what
    can be read of it, and the files as they were are kept in a folder `damaged-<n>` beside them. `expected`: there was
    a state in this folder before, so that there being none is a damage.
    """

    def __init__(self, path: Path, *, accept_loss: bool = False, expected: bool = False) -> None:
        self._path = path
        self._expected = expected
        self._mark = Watermark(path.with_suffix(".mark"))
        self._total = 0
        self._loaded: list[JournalEntry] = []
        self._revision = 0
        self._refused = 0
        """Bytes that must be free before a write is tried again."""
        self._upgraded = False
        """Whether the database was of format 1, which had no mark."""
        try:
            self._start()
        except DamagedStateError as damage:
            if not accept_loss:
                raise
            self._salvage(damage)

    def load(self) -> tuple[Iterator[JournalEntry], int]:
        """Give all objects by collection, namespace and name, and the last resourceVersion. To be called once."""
        entries, self._loaded = self._loaded, []
        return iter(entries), self._revision

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Write these changes in one transaction. Raises sqlite3.Error; then none of them is written."""
        if not entries:
            return
        try:
            self._write(entries, entries[-1].revision)
        except sqlite3.Error:
            self._refused = _SPARE + 2 * sum(len(entry.body) for entry in entries)
            raise

    def fill(self, entries: Sequence[JournalEntry], revision: int) -> None:
        """Write a whole state into a new journal, ``revision`` being its last. Raises sqlite3.Error."""
        self._write(entries, revision)

    def probe(self) -> None:
        """Write the last revision again. Raises sqlite3.Error or OSError if the disk would not take what it refused."""
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < self._refused:
            raise OSError(errno.ENOSPC, "database or disk is full")
        self._write((), self._revision)
        self._refused = 0

    def close(self) -> None:
        """Close the files."""
        self._database.close()
        self._mark.close()

    def _start(self) -> None:
        mark = self._mark.read()
        if mark == "damaged":
            raise self._damage(f"{self._mark.path.name} is damaged")
        missing = not self._path.exists() or not self._path.stat().st_size
        if missing and (mark is not None or self._wal.exists() or self._expected):
            raise self._damage(f"{self._path.name} is missing or empty")
        wal = self._wal.read_bytes() if self._wal.exists() else None
        self._connect()
        try:
            self._prepare(mark)
        except sqlite3.DatabaseError as error:
            if _code(error) in _TAKEN:  # the files are another's: not a byte of them is touched
                self._database.close()
            else:
                self._close_untouched(wal)
            raise self._translated(error) from error
        except BaseException:
            self._close_untouched(wal)
            raise
        try:
            self._mark.begin(Mark(self._revision, self._total))
        except OSError as error:
            self._database.close()
            raise JournalError(
                f"{self._mark.path} can't be made: {error}. Make room on the disk, and check it"
            ) from error

    def _close_untouched(self, wal: bytes | None) -> None:
        """Close a database that was refused, and leave its files as they were: closing merges the WAL into it."""
        content = self._path.read_bytes()
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        self._database.close()
        for file, kept in ((self._path, content), (self._wal, wal)):
            if kept is not None and (not file.exists() or file.read_bytes() != kept):
                file.write_bytes(kept)
                file.chmod(0o600)

    @property
    def _wal(self) -> Path:
        return self._path.with_name(f"{self._path.name}-wal")

    def _connect(self) -> None:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        os.chmod(self._path, 0o600)
        self._database = sqlite3.connect(self._path, isolation_level=None, timeout=1.0, check_same_thread=False)

    def _prepare(self, mark: Mark | None) -> None:
        """Lock the database, check what is in it and only then bring its tables to this format.

        Raises JournalError, sqlite3.DatabaseError.
        """
        run = self._database.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":  # on a disk that fails SQLite stays as it was, says so, and forces less to the disk
            raise JournalError(f"{self._path} can't be written: SQLite keeps no WAL there. Look at the disk")
        run("PRAGMA synchronous=FULL")
        run("BEGIN EXCLUSIVE")
        (found,) = run("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise JournalError(f"{self._path} has format {found}, and only formats up to {FORMAT} can be read")
        problems = [row[0] for row in run("PRAGMA quick_check(3)")]
        if problems != ["ok"]:
            raise self._damage(f"{self._path.name}: {'; '.join(problems)}")
        if found != FORMAT and mark is not None and mark.revision:
            raise self._damage(f"the last change in it is 0, and {mark.revision} was written")
        if found != FORMAT:
            for statement in (_UPGRADE if found == 1 else _TABLES).split(";"):
                run(statement)
            if found == 1:
                self._upgraded = True
                self._add_sums()
            run(f"PRAGMA user_version={FORMAT}")
        self._check(mark)
        run("COMMIT")

    def _add_sums(self) -> None:
        total = 0
        for *key, revision, body, _ in self._database.execute(_ALL).fetchall():
            row = _sum((*key, revision, body))
            total += int.from_bytes(row)
            self._database.execute(_PUT, (*key, revision, body, row))
        self._database.execute("UPDATE last SET sum = ?", (_packed(total),))

    def _check(self, mark: Mark | None) -> None:
        """Read everything, and compare it with the sums and the mark. Raises DamagedStateError."""
        row = self._database.execute("SELECT revision, sum FROM last").fetchone()
        revision, total = (row[0], int.from_bytes(row[1] or b"")) if row is not None else (0, 0)
        found = 0
        for entry, good in self._rows():
            if not good:
                raise self._damage(f"the object {'/'.join(entry[:3])} is not as it was written")
            found += int.from_bytes(_sum((*entry[:4], entry.body)))
            self._loaded.append(entry._replace(body=b""))
        if found & _MASK != total:
            raise self._damage("some objects are missing, or are not those that were written last")
        if mark is None and revision and not self._upgraded:
            raise self._damage(f"{self._mark.path.name} is missing, so that nobody knows what was written last")
        if mark is not None and mark.revision > revision:
            raise self._damage(f"the last change in it is {revision}, and {mark.revision} was written")
        if mark is not None and mark.revision == revision and mark.total != total:
            raise self._damage(f"the objects at {revision} are not those that were written")
        self._revision, self._total = revision, total

    def _rows(self) -> Iterator[tuple[JournalEntry, bool]]:
        """Give each row, and whether it is as it was written. Raises sqlite3.DatabaseError."""
        for collection, namespace, name, revision, body, checksum in self._database.execute(_ALL):
            good = isinstance(body, bytes) and checksum == _sum((collection, namespace, name, revision, body))
            obj = orjson.loads(body) if good else None
            yield JournalEntry(collection, namespace, name, revision, obj, body if good else b""), good

    def _write_entry(self, entry: JournalEntry) -> int:
        """Write or remove one row; gives by how much the sum of all rows changes."""
        run = self._database.execute
        before = run(_SUM, entry[:3]).fetchone()
        change = -int.from_bytes(before[0]) if before is not None else 0
        if entry.obj is None:
            run(_REMOVE, entry[:3])
            return change
        body = entry.body or orjson.dumps(entry.obj)
        row = _sum((*entry[:4], body))
        run(_PUT, (*entry[:4], body, row))
        return change + int.from_bytes(row)

    def _write(self, entries: Sequence[JournalEntry], revision: int) -> None:
        run = self._database.execute
        total = self._total
        run("BEGIN IMMEDIATE")
        try:
            for entry in _last_of_each(entries):
                total += self._write_entry(entry)
            run(_LAST, (revision, _packed(total)))
            run("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise
        self._revision, self._total = revision, total & _MASK
        self._mark.write(Mark(self._revision, self._total))

    def _salvage(self, damage: DamagedStateError) -> None:
        """Put what can be read into a new database; raises JournalError if not even that can be written."""
        kept = _copy_aside(self._path)
        mark = self._mark.read()
        entries = self._readable()
        revision = max([e.revision for e in entries], default=0)
        revision = max(revision, mark.revision if isinstance(mark, Mark) else 0)
        for file in _files(self._path):
            file.unlink()
        self._loaded, self._total = [], 0
        self._connect()
        self._prepare(None)
        if revision:
            self._write(entries, revision)
        self._loaded = [entry._replace(body=b"") for entry in entries]
        self._revision = revision
        _LOG.warning(
            "%s Going on with the %d objects that can be read; the files are kept in %s", damage, len(entries), kept
        )

    def _readable(self) -> list[JournalEntry]:
        entries: dict[tuple[str, str, str], JournalEntry] = {}
        try:
            self._connect()
            try:
                for entry, good in self._rows():
                    if good:
                        entries[entry[:3]] = entry
            finally:
                self._database.close()
        except (sqlite3.Error, OSError):
            pass  # what came before is all that can be read
        return list(entries.values())

    def _translated(self, error: sqlite3.DatabaseError) -> JournalError:
        code = _code(error)
        if code in _TAKEN:
            return JournalError(f"{self._path} is in use by another process: {error}")
        if code in _NO_DATABASE or not isinstance(error, sqlite3.OperationalError):
            return self._damage(f"{self._path.name} is no journal: {error}")
        return JournalError(f"{self._path} can't be read or written: {error}. Make room on the disk, and check it")

    def _damage(self, what: str) -> DamagedStateError:
        return DamagedStateError(
            f"the state in {self._path.parent} is damaged: {what}. Restore the folder from a backup, or go on with "
            "what can be read of it (--accept-loss)."
        )


def _code(error: sqlite3.DatabaseError) -> int:
    """Give SQLite's primary result code."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _sum(row: tuple[str, str, str, int, bytes]) -> bytes:
    collection, namespace, name, revision, body = row
    head = f"{collection}\0{namespace}\0{name}\0{revision}\0".encode("utf-8", "surrogatepass")
    return blake2b(head + body, digest_size=8).digest()


def _packed(total: int) -> bytes:
    return (total & _MASK).to_bytes(8)


def _files(path: Path) -> list[Path]:
    names = (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal", path.with_suffix(".mark").name)
    return [file for name in names if (file := path.with_name(name)).exists()]


def _copy_aside(path: Path) -> Path:
    number = 1
    while (folder := path.with_name(f"damaged-{number}")).exists():
        number += 1
    folder.mkdir(mode=0o700)
    for file in _files(path):
        shutil.copy2(file, folder / file.name)
        sync_file(folder / file.name)
    for each in (folder, folder.parent):
        sync_folder(each)
    return folder


def _last_of_each(entries: Sequence[JournalEntry]) -> Iterator[JournalEntry]:
    """Drop what a later entry of the same object overwrites anyway."""
    return iter({entry[:3]: entry for entry in entries}.values())
