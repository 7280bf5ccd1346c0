"""A data folder of `nodewright up` as one encrypted file, and back (docs/adr/0063)."""

from __future__ import annotations

import platform
import re
import shutil
import ssl
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from nodewright.apiserver.app.private_files import private_folder, write_private
from nodewright.apiserver.app.snapshots import PATH, decode
from nodewright.apiserver.store import JournalEntry, JournalError, SqliteJournal, Store
from nodewright.apiserver.store.forcing import sync_folder
from nodewright.cli.archives.contents import BACKUP, Contents
from nodewright.cli.archives.kept_journal import KeptJournal
from nodewright.cli.embedded.detached import holder_of
from nodewright.cli.embedded.folder import LOCK, held, remembered_port
from nodewright.cli.embedded.stamp import STAMP, check_in
from nodewright.cli.exits import CliError

STATE = "state.db"
_FILES = (
    "ca.crt", "ca.key", "server.pem", "admin.crt", "admin.key", "certificates.json",
    "token", "service-account.key", "users.json", "port", STAMP,
)  # fmt: skip
"""What lies in a folder beside the objects and is needed to go on: keys, tokens, the port."""
_MOVED = re.compile(r"moved/[a-z0-9.-]{1,500}\.kubeconfig").fullmatch
"""Clusters that hold their own objects since `nodewright create cluster`."""
BUMP = 1_000_000
"""So much greater is the first resourceVersion after a restore: none is ever used for two states."""
_SECONDS = 60.0


def take(folder: Path) -> Contents:
    """All of a folder at one moment; of a plane that runs it is asked for. Raises CliError."""
    if not (folder / STATE).exists():
        raise CliError(f"{folder} holds no control plane", "Name the folder of `nodewright up` with --data-dir")
    if holder_of(folder):
        revision, entries = _from_running(folder)
    else:
        with held(folder):
            check_in(folder)
            revision, entries = _from_files(folder)
    about = {"folder": str(folder), "machine": platform.node()}
    return Contents(BACKUP, revision, tuple(entries), dict(_files_of(folder)), about)


def restore(contents: Contents, folder: Path) -> None:
    """Make ``folder``, which must be empty or not there: all of it appears at once. Raises CliError."""
    refuse_used(folder)
    origin = Path(contents.about.get("folder", ""))
    if contents.about.get("machine") == platform.node() and _runs_in(origin):
        text = f"the control plane of this backup runs in {origin}: both would act on the same hosts"
        raise CliError(text, "Stop it first: `nodewright down`")
    check(contents)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _draft(folder) as draft:
            _fill(draft, contents)
            _compare(draft, contents)
            (draft / LOCK).unlink(missing_ok=True)
            draft.rename(folder)
            sync_folder(folder.parent)
    except OSError as error:
        raise CliError(f"{folder} can't be made: {error.strerror or error}", "Nothing was restored") from error


def check(contents: Contents) -> None:
    """Whether a control plane can serve what is in it. Raises CliError."""
    unknown = sorted(name for name in contents.files if name not in _FILES and not _MOVED(name))
    if unknown:
        raise CliError(f"the backup holds a file that has no place in a data folder: {unknown[0]!r}")
    try:
        journal = KeptJournal(contents.entries, contents.revision)
        Store(clock=lambda: datetime.now(UTC), new_uid=lambda: str(uuid.uuid4()), journal=journal)
    except Exception as error:  # whatever objects there may be
        raise CliError(f"the objects in the backup can't be served: {type(error).__name__}: {error}") from error
    if any(entry.revision > contents.revision for entry in contents.entries):
        raise CliError("the backup holds an object that is newer than the backup itself")


def refuse_used(folder: Path) -> None:
    """Raises CliError if something is in ``folder``."""
    try:
        if folder.exists() and any(folder.iterdir()):
            raise CliError(f"{folder} is not empty", "A backup is restored into a new folder: name one with --data-dir")
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}") from error


def _runs_in(folder: Path) -> bool:
    """Whether it can be seen that a control plane does: a folder of another user can't be looked into."""
    with suppress(CliError):
        return folder.is_absolute() and bool(holder_of(folder))
    return False


def _from_running(folder: Path) -> tuple[int, list[JournalEntry]]:
    port = remembered_port(folder)
    try:
        context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        token = (folder / "token").read_text().strip()
        request = urllib.request.Request(
            f"https://127.0.0.1:{port}{PATH}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:  # noqa: S310
            return decode(answer.read())
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "reason", error)
        text = f"the control plane that runs in {folder} gives no snapshot: {reason}"
        raise CliError(text, "If it was just started, run it again; an older version gives none") from error


def _from_files(folder: Path) -> tuple[int, list[JournalEntry]]:
    try:
        journal = SqliteJournal(folder / STATE)
    except JournalError as error:
        raise CliError(str(error)) from error
    try:
        entries, revision = journal.load()
        return revision, list(entries)
    finally:
        journal.close()


def _files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    moved = [f"moved/{path.name}" for path in (folder / "moved").glob("*.kubeconfig")]
    for name in (*_FILES, *sorted(moved)):
        with suppress(FileNotFoundError):
            yield name, (folder / name).read_bytes()


def _fill(draft: Path, contents: Contents) -> None:
    for name, content in contents.files.items():
        private_folder((draft / name).parent)
        write_private(draft / name, content)
    journal = SqliteJournal(draft / STATE)
    try:
        journal.fill(contents.entries, contents.revision + BUMP)
    finally:
        journal.close()


def _compare(draft: Path, contents: Contents) -> None:
    """What was written is read again: its sums are right, and it is what is in the backup."""
    revision, entries = _from_files(draft)
    places = {entry[:4]: entry.obj for entry in entries}
    if revision != contents.revision + BUMP or places != {entry[:4]: entry.obj for entry in contents.entries}:
        raise CliError("what was written is not what is in the backup", "Look at the disk")


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A folder beside it, gone again unless it was renamed; what a killed process has left is removed."""
    prefix = f".{folder.name}.restoring-"
    for old in folder.parent.glob(f"{prefix}*"):
        with suppress(CliError), held(old):
            shutil.rmtree(old, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        with held(draft):
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
