"""Power that fails between any two operations of the disk, a disk that is full or broken: nothing acknowledged is lost.

The disk is that of `faulty_disk`: writes that were not forced down are there, gone, or cut at a sector's end.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from nodewright.apiserver.store import JournalEntry, JournalError, SqliteJournal
from nodewright.apiserver.store.sqlite_journal import DamagedStateError
from tests.apiserver.store.faulty_disk import Disk, PowerLoss
from tests.apiserver.store.faulty_sqlite import library, on

pytestmark = pytest.mark.skipif(
    library() is None,
    reason="SQLite is built into this Python: run the tests with one that loads the libsqlite3 of the system",
)

State = dict[str, int]
COMMITS = 14


class Run:
    """What one process has had acknowledged (``sure``), and what may be there besides: refused, or not answered."""

    def __init__(self, sure: State | None = None, revision: int = 0) -> None:
        self.sure: State = dict(sure or {})
        self.maybe: list[State] = []
        self.revision = revision

    def go(self, folder: Path, seed: int) -> None:
        """Start, write, close. Raises PowerLoss, and what a start raises."""
        random = Random(seed)
        journal = SqliteJournal(folder / "state.db")
        self.see(journal)
        journal._database.execute("PRAGMA wal_autocheckpoint=6")
        for _ in range(COMMITS):
            wanted, entries = dict(self.sure), []
            for _ in range(random.randint(1, 4)):
                name, self.revision = f"o-{random.randrange(8)}", self.revision + 1
                if name in wanted and random.random() < 0.3:
                    del wanted[name]
                    entries.append(JournalEntry("c", "", name, self.revision, None))
                else:
                    wanted[name] = self.revision
                    obj = {"at": self.revision, "pad": "x" * random.choice((10, 700, 6000))}
                    entries.append(JournalEntry("c", "", name, self.revision, obj))
            self.maybe.append(wanted)
            with suppress(Exception):
                journal.append(entries)
                self.sure, self.maybe = wanted, []
        with suppress(Exception):
            journal.close()

    def see(self, journal: SqliteJournal) -> None:
        """What is read is what was acknowledged, or that with one whole transaction that was not."""
        entries, revision = journal.load()
        found = {entry.name: entry.obj["at"] for entry in entries if entry.obj is not None}
        assert found in [self.sure, *self.maybe], (found, self.sure, self.maybe)
        assert revision >= max(self.sure.values(), default=0)
        self.sure, self.maybe = found, []
        self.revision = max(self.revision, revision)


def lived(folder: Path, disk: Disk, run: Run, seed: int) -> None:
    """Until it ends, the power fails, or the disk lets it not start; what is there is never called damaged."""
    folder.mkdir(exist_ok=True)
    with on(disk, folder), suppress(PowerLoss):
        try:
            run.go(folder, seed)
        except DamagedStateError as error:
            raise AssertionError(f"nothing is damaged: {error}") from error
        except (JournalError, OSError):
            pass


def operations(tmp_path: Path, seed: int) -> int:
    disk = Disk(seed)
    lived(tmp_path / f"whole-{seed}", disk, Run(), seed)
    return disk.count


def restarted(tmp_path: Path, disk: Disk, run: Run, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    disk.after_power_loss(folder)
    before = json.dumps({path.name: path.stat().st_size for path in sorted(folder.iterdir())})
    try:
        journal = SqliteJournal(folder / "state.db")
    except Exception as error:
        raise AssertionError(f"it does not start from {before}: {error}") from error
    run.see(journal)
    journal.append([JournalEntry("c", "", "after", run.revision + 1, {"at": run.revision + 1})])
    journal.close()


def test_power_that_fails_at_any_operation_of_a_new_folder_loses_nothing(tmp_path: Path) -> None:
    count = operations(tmp_path, 0)
    assert count > 100
    for at in range(0, count, 4):
        disk, run = Disk(at, at), Run()
        lived(tmp_path / f"first-{at}", disk, run, 0)
        restarted(tmp_path, disk, run, f"then-{at}")


def lives(tmp_path: Path, seed: int, fault: str) -> None:
    """Three processes one after the other, each ended by the power, after faults of another kind or at once."""
    random, run, folder = Random(seed), Run(), tmp_path / f"{seed}-0"
    for life in range(3):
        kind = fault if random.random() < 0.8 else "power"
        disk = Disk(seed + life, random.randrange(0, 150), kind, random.choice((1, 2, 9)))
        lived(folder, disk, run, seed + 1000 * life)
        folder = tmp_path / f"{seed}-{life + 1}"
        folder.mkdir()
        disk.after_power_loss(folder)
    restarted(tmp_path, disk, run, f"{seed}-last")


FAULTS = ("power", "full", "short", "broken")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_is_full_or_broken_and_then_without_power_loses_nothing(tmp_path: Path, fault: str) -> None:
    for seed in range(4):
        lives(tmp_path, seed, fault)


@pytest.mark.slow
def test_the_same_at_every_operation(tmp_path: Path) -> None:
    for at in range(operations(tmp_path, 1)):
        disk, run = Disk(at, at), Run()
        lived(tmp_path / f"first-{at}", disk, run, 1)
        restarted(tmp_path, disk, run, f"then-{at}")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_a_thousand_times(tmp_path: Path, fault: str) -> None:
    for seed in range(100, 350):
        lives(tmp_path, seed, fault)
