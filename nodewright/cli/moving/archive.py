"""An encrypted file as one of the two sides of a move: a management cluster that nobody runs (docs/adr/0063).

It has a mark and UIDs of its own, so that hosts are handed over to it as to any other: whoever had them before can't
act on them any more, and of several that are to have the archive the first one gets them.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from controllers.kernel.refs import CLUSTER, Key
from nodewright.apiserver.app.kinds import install_kinds
from nodewright.apiserver.app.private_files import private_folder
from nodewright.apiserver.store import Store
from nodewright.apiserver.store.forcing import sync_folder
from nodewright.cli.archives.contents import MOVE, Contents, load, save
from nodewright.cli.archives.kept_journal import KeptJournal
from nodewright.cli.archives.keys import Keys
from nodewright.cli.archives.store_client import StoreClient
from nodewright.cli.exits import CliError
from nodewright.cli.moving.journal import Journal
from nodewright.cli.moving.sides import Side
from nodewright.crds import load_crds

SUFFIX = ".nodewright-move.age"


class ArchiveSide(Side):
    """One file, with one Cluster. What is written is in the file after ``save``, ``remember`` and ``forget``."""

    def __init__(self, path: Path, cluster: Key, keys: Keys, contents: Contents | None) -> None:
        self._path, self._cluster, self._keys = path, cluster, keys
        self._journal = KeptJournal(*((contents.entries, contents.revision) if contents is not None else ()))
        self._store = Store(clock=lambda: datetime.now(UTC), new_uid=lambda: str(uuid.uuid4()), journal=self._journal)
        install_kinds(self._store, load_crds())
        super().__init__(StoreClient(self._store), f"the archive {path}")

    async def save(self) -> None:
        self._store.flush()
        if not self._journal.changed and self._path.exists():
            return
        about = {"cluster": str(self._cluster)}
        save(self._path, Contents(MOVE, self._journal.revision, self._journal.entries, about=about), self._keys)
        self._journal.saved()

    async def remember(self, now: Journal) -> None:
        await super().remember(now)
        await self.save()

    async def forget(self, cluster: Key) -> None:
        await super().forget(cluster)
        await self.save()

    async def discard_if_empty(self) -> bool:
        """Remove the file once nothing of the Cluster, and no move of it, is in it; whether it is gone."""
        used = await self.find(CLUSTER, self._cluster) is not None or await self.journal(self._cluster) is not None
        if used or not self._path.exists():
            return False
        self._path.unlink(missing_ok=True)
        sync_folder(self._path.parent)
        return True


def file_name(cluster: Key) -> str:
    """Names of Kubernetes have no underscore."""
    return f"{cluster.namespace}_{cluster.name}{SUFFIX}"


def clusters_in(folder: Path, namespace: str) -> list[Key]:
    """Those of which an archive lies in ``folder``. Raises CliError if it can't be read."""
    try:
        names = sorted(each.name for each in folder.iterdir() if each.name.endswith(SUFFIX))
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}") from error
    found = [name.removesuffix(SUFFIX).partition("_") for name in names if not name.startswith(".")]
    return [Key(before, name) for before, _, name in found if before == namespace and name]


@contextmanager
def archive(folder: Path, cluster: Key, keys: Keys, *, new: bool, look: bool = False) -> Iterator[ArchiveSide]:
    """The archive of ``cluster`` in ``folder``, for this process alone. ``new``: there need not be one yet.
    ``look``: nothing is to be written, so that no folder is made for it.

    Raises CliError for a folder in use, a file that is missing, damaged, foreign, or sealed with another key.
    """
    path = folder / file_name(cluster)
    if look and not folder.exists():
        yield ArchiveSide(path, cluster, keys, None)
        return
    with _locked(folder, new=new):
        for draft in folder.glob(f".{path.name}.*"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        if path.exists():
            contents = load(path, keys, MOVE)
            if contents.about.get("cluster") != str(cluster):
                raise CliError(f"{path} holds Cluster {contents.about.get('cluster')}", "Give it its own name back")
            yield _opened(path, cluster, keys, contents)
        elif new:
            yield ArchiveSide(path, cluster, keys, None)
        else:
            raise CliError(f"there is no {path.name} in {folder}", "Name the folder in which it lies")


def _opened(path: Path, cluster: Key, keys: Keys, contents: Contents) -> ArchiveSide:
    try:
        return ArchiveSide(path, cluster, keys, contents)
    except Exception as error:  # whatever objects there may be: who knows a public key can write an archive
        raise CliError(f"the objects in {path} can't be served: {type(error).__name__}: {error}") from error


@contextmanager
def _locked(folder: Path, *, new: bool) -> Iterator[None]:
    try:
        if new:
            private_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CliError(f"{folder}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise CliError(f"{folder} is in use by another move", "Wait until it has ended") from None
    finally:
        os.close(descriptor)
