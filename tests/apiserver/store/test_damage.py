"""A state that is not the one written last is refused; with `accept_loss` the rest of it is gone on with."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nodewright.apiserver.store import SqliteJournal
from nodewright.apiserver.store.sqlite_journal import DamagedStateError
from tests.apiserver.store.cluster import Cluster

ROOT = Path(__file__).parents[3]
COUNT = 40

WRITER = """
import sys, time
from pathlib import Path
from nodewright.apiserver.store import SqliteJournal
from tests.apiserver.store.cluster import Cluster

cluster = Cluster(SqliteJournal(Path(sys.argv[1])))
for index in range(int(sys.argv[2])):
    cluster.create("configmaps", {"metadata": {"name": f"c-{index:03}"}, "data": {"pad": "x" * 600}})
    cluster.store.flush()
if sys.argv[3] == "close":
    cluster.store.close()
print("written", flush=True)
time.sleep(600)
"""


def written(folder: Path, end: str) -> Path:
    """Fill a folder in a process that is then killed: its WAL stays (`end` "kill") or is gone ("close")."""
    folder.mkdir()
    path = folder / "state.db"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(COUNT), end], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    process.wait()
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("killed") / "state", "kill")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("closed") / "state", "close")


def copy_of(path: Path, folder: Path) -> Path:
    return Path(shutil.copytree(path.parent, folder / "copy")) / path.name


def flip(path: Path, at: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * at)] ^= 0x10
    path.write_bytes(content)


def cut(path: Path, to: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * to)])


def wal(path: Path) -> Path:
    return path.with_name("state.db-wal")


def mark(path: Path) -> Path:
    return path.with_name("state.mark")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "WAL removed": lambda path: wal(path).unlink(),
    "WAL empty": lambda path: wal(path).write_bytes(b""),
    "WAL cut in the middle": lambda path: cut(wal(path), 0.5),
    "WAL cut at its end": lambda path: cut(wal(path), 0.98),
    "WAL with a flipped bit at its beginning": lambda path: flip(wal(path), 0.001),
    "WAL with a flipped bit in the middle": lambda path: flip(wal(path), 0.5),
    "WAL with a flipped bit at its end": lambda path: flip(wal(path), 0.99),
    "WAL of garbage": lambda path: wal(path).write_bytes(b"garbage" * 10_000),
    "database removed": lambda path: path.unlink(),
    "database and WAL removed": lambda path: [file.unlink() for file in (path, wal(path))] and None,
    "database empty": lambda path: path.write_bytes(b""),
    "mark removed": lambda path: mark(path).unlink(),
    "mark of garbage": lambda path: mark(path).write_bytes(b"garbage"),
    "mark empty": lambda path: mark(path).write_bytes(b""),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused_and_then_gone_on_with_if_asked(killed: Path, tmp_path: Path, name: str) -> None:
    path = copy_of(killed, tmp_path)
    DAMAGES[name](path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for _ in range(2):
        with pytest.raises(DamagedStateError, match=r"is damaged: .*Restore the folder from a backup.*--accept-loss"):
            SqliteJournal(path)
    assert {file: (path.parent / file).read_bytes() for file in before} == before
    cluster = Cluster(SqliteJournal(path, accept_loss=True))
    assert set(cluster.names("configmaps")) <= {f"c-{index:03}" for index in range(COUNT)}
    cluster.create("configmaps", {"metadata": {"name": "after"}})
    cluster.store.close()
    assert (path.parent / "damaged-1").is_dir()
    again = Cluster(SqliteJournal(path))
    assert "after" in again.names("configmaps")
    again.store.close()


def test_a_mark_that_is_lost_alone_loses_nothing_else(killed: Path, tmp_path: Path) -> None:
    path = copy_of(killed, tmp_path)
    mark(path).unlink()
    cluster = Cluster(SqliteJournal(path, accept_loss=True))
    assert len(cluster.names("configmaps")) == COUNT
    cluster.store.close()


@pytest.mark.parametrize("at", [0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
def test_a_flipped_bit_in_the_database_changes_nothing_or_is_refused(closed: Path, tmp_path: Path, at: float) -> None:
    path = copy_of(closed, tmp_path)
    whole = Cluster(SqliteJournal(copy_of(closed, tmp_path / "whole")))
    flip(path, at)
    try:
        cluster = Cluster(SqliteJournal(path))
    except DamagedStateError:
        cluster = Cluster(SqliteJournal(path, accept_loss=True))
        assert set(cluster.names("configmaps")) <= set(whole.names("configmaps"))
    else:
        assert cluster.store.list(cluster.res("configmaps"), "").items == (
            whole.store.list(whole.res("configmaps"), "").items
        )
    cluster.store.close()
    whole.store.close()


def test_a_flipped_bit_in_an_object_is_refused_by_its_name(closed: Path, tmp_path: Path) -> None:
    path = copy_of(closed, tmp_path)
    content = path.read_bytes()
    at = content.index(b'"name":"c-007"')
    path.write_bytes(content[:at] + b'"name":"c-777"' + content[at + 14 :])
    with pytest.raises(DamagedStateError, match="the object configmaps/default/c-007 is not as it was written"):
        SqliteJournal(path)
    cluster = Cluster(SqliteJournal(path, accept_loss=True))
    assert cluster.names("configmaps") == [f"c-{index:03}" for index in range(COUNT) if index != 7]
    cluster.store.close()


def test_a_file_that_is_no_database_is_refused(closed: Path, tmp_path: Path) -> None:
    path = copy_of(closed, tmp_path)
    path.write_bytes(b"garbage" * 10_000)
    with pytest.raises(DamagedStateError, match="is no journal"):
        SqliteJournal(path)
    assert path.read_bytes() == b"garbage" * 10_000
    Cluster(SqliteJournal(path, accept_loss=True)).store.close()


@pytest.mark.parametrize("to", [0.1, 0.5, 0.9])
def test_a_database_that_is_cut_is_refused(closed: Path, tmp_path: Path, to: float) -> None:
    path = copy_of(closed, tmp_path)
    cut(path, to)
    with pytest.raises(DamagedStateError):
        SqliteJournal(path)
    Cluster(SqliteJournal(path, accept_loss=True)).store.close()


def test_an_older_copy_of_the_database_is_refused(closed: Path, tmp_path: Path) -> None:
    path = copy_of(closed, tmp_path)
    older = path.read_bytes()
    cluster = Cluster(SqliteJournal(path))
    cluster.create("configmaps", {"metadata": {"name": "later"}})
    cluster.store.close()
    path.write_bytes(older)
    with pytest.raises(DamagedStateError, match="the last change in it is"):
        SqliteJournal(path)


def test_a_row_that_is_missing_is_refused(closed: Path, tmp_path: Path) -> None:
    path = copy_of(closed, tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM objects WHERE name = 'c-003'")
    database.close()
    with pytest.raises(DamagedStateError, match="some objects are missing"):
        SqliteJournal(path)


def test_no_state_where_there_was_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedStateError, match="missing or empty"):
        SqliteJournal(tmp_path / "state.db", expected=True)
    SqliteJournal(tmp_path / "state.db", expected=True, accept_loss=True).close()


def test_versions_are_not_used_twice_after_a_loss(killed: Path, tmp_path: Path) -> None:
    path = copy_of(killed, tmp_path)
    said = int(mark(path).read_bytes().split()[0])
    wal(path).unlink()
    cluster = Cluster(SqliteJournal(path, accept_loss=True))
    assert int(cluster.store.resource_version) > said
    cluster.store.close()


def test_a_database_of_the_first_format_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first = Cluster(SqliteJournal(path))
    kept = first.create("configmaps", {"metadata": {"name": "kept"}})
    first.store.close()
    with sqlite3.connect(path) as database:
        database.executescript(
            "ALTER TABLE objects DROP COLUMN sum; ALTER TABLE last DROP COLUMN sum; PRAGMA user_version=1;"
        )
    database.close()
    mark(path).unlink()
    second = Cluster(SqliteJournal(path))
    assert second.get("configmaps", "kept") == kept
    second.create("configmaps", {"metadata": {"name": "new"}})
    second.store.close()
    third = Cluster(SqliteJournal(path))
    assert third.names("configmaps") == ["kept", "new"]
    third.store.close()
