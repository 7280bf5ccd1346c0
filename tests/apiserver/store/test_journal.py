"""What survives: restarts, kills in the middle of the work, and disks that refuse."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodewright.apiserver.store import JournalEntry, JournalError, SqliteJournal
from nodewright.apiserver.values import ApiError
from tests.apiserver.store.cluster import Cluster, crd, owned_by

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def opened(path: Path) -> Cluster:
    return Cluster(SqliteJournal(path))


def test_everything_flushed_is_there_after_a_restart(path: Path) -> None:
    first = opened(path).with_machines()
    kept = first.machine("kept", meta={"annotations": {"a": "ü"}})
    first.machine("gone")
    first.delete("machines", "gone")
    first.store.close()
    second = opened(path)
    assert second.names("machines") == ["kept"]
    assert second.get("machines", "kept") == kept
    assert second.names("namespaces") == ["default", "kube-node-lease", "kube-public", "kube-system"]
    second.machine("new")
    assert second.names("machines") == ["kept", "new"]
    second.store.close()


def test_no_resource_version_is_used_twice_even_if_it_was_shown_before_it_was_flushed(path: Path) -> None:
    journal = SqliteJournal(path)
    first = Cluster(journal).with_machines()
    first.store.flush()
    lost = first.machine("lost")["metadata"]["resourceVersion"]
    journal.close()  # as if the process had died before the flush
    second = opened(path)
    assert not second.has("machines", "lost")
    new = second.machine("new")["metadata"]["resourceVersion"]
    assert int(new) > int(lost)
    with pytest.raises(ApiError) as caught:
        second.watch("machines", resource_version=lost)
    assert caught.value.code == 410
    second.store.close()


def test_clients_that_know_the_last_run_must_list_again(path: Path) -> None:
    first = opened(path).with_machines()
    known = first.machine("m")["metadata"]["resourceVersion"]
    first.store.close()
    second = opened(path)
    with pytest.raises(ApiError) as caught:
        second.watch("machines", resource_version=known)
    assert caught.value.code == 410
    assert second.watch("machines").poll() == []
    second.store.close()


def test_work_left_undone_is_taken_up_again(path: Path) -> None:
    first = opened(path).with_machines()
    first.namespace("shop")
    first.machine("in-shop", ns="shop")
    owner = first.machine("owner")
    first.machine("child", meta={"ownerReferences": owned_by(owner)})
    front = first.machine("front")
    first.machine("blocker", meta={"ownerReferences": owned_by(front, block=True)})
    first.delete("namespaces", "shop")
    first.delete("machines", "owner")
    first.delete("machines", "front", propagation="Foreground")
    first.store.close()
    second = opened(path)
    second.settle()
    assert second.names("machines", ns="") == []
    assert not second.has("namespaces", "shop")
    second.store.close()


def test_a_kind_whose_deletion_was_cut_short_goes(path: Path) -> None:
    first = opened(path).with_machines()
    first.machine("m")
    first.delete("customresourcedefinitions", "machines.cluster.example.com")
    first.store.close()
    second = opened(path)
    second.settle()
    assert second.names("customresourcedefinitions") == []
    second.store.close()


def test_the_file_is_for_its_owner_only(path: Path) -> None:
    path.touch(mode=0o644)
    cluster = opened(path)
    cluster.namespace("a")
    cluster.store.flush()
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    cluster.store.close()


def test_a_second_process_is_kept_out(path: Path) -> None:
    first = opened(path)
    with pytest.raises(JournalError, match="in use by another process"):
        SqliteJournal(path)
    first.store.close()
    opened(path).store.close()


def test_a_file_that_is_no_journal_is_refused(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(JournalError, match="is no journal"):
        SqliteJournal(path)


def test_a_journal_of_a_later_format_is_refused_untouched(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(JournalError, match="format 99"):
        SqliteJournal(path)


class FullDisk:
    """A journal whose disk is full until told otherwise."""

    def __init__(self) -> None:
        self.full = True
        self.written: list[JournalEntry] = []

    def load(self) -> tuple[list[JournalEntry], int]:
        return [], 0

    def append(self, entries: Sequence[JournalEntry]) -> None:
        if self.full:
            raise OSError("no space left on device")
        self.written.extend(entries)

    def probe(self) -> None:
        if self.full:
            raise OSError("no space left on device")

    def close(self) -> None:
        pass


def test_what_cannot_be_written_has_not_happened() -> None:
    journal = FullDisk()
    journal.full = False
    cluster = Cluster(journal).with_machines()
    owner = cluster.machine("owner")
    child = cluster.machine("child", meta={"ownerReferences": owned_by(owner)})
    cluster.namespace("shop")
    cluster.store.flush()
    before, revision = cluster.store.list(cluster.res("machines"), "").items, cluster.store.resource_version
    journal.full = True
    undone: list[set[str]] = []
    cluster.store.on_undo(undone.append)
    cluster.machine("new")
    cluster.delete("machines", "owner")
    cluster.delete("namespaces", "shop")
    cluster.create("customresourcedefinitions", crd("gadgets", "Gadget"))
    cluster.settle()
    with pytest.raises(ApiError) as caught:
        cluster.store.flush()
    assert (caught.value.code, caught.value.reason) == (507, "InsufficientStorage")
    assert "no space left on device" in caught.value.message
    assert cluster.store.list(cluster.res("machines"), "").items == before
    assert cluster.store.resource_version == revision
    assert cluster.get("machines", "child") == child
    assert cluster.get("namespaces", "shop")["status"]["phase"] == "Active"
    assert cluster.store.resources.by_kind("cluster.example.com", "v1", "Gadget") is None
    assert undone == [{"machines.cluster.example.com", "namespaces", "customresourcedefinitions.apiextensions.k8s.io"}]
    with pytest.raises(ApiError, match="no space left"):
        cluster.store.recover()
    journal.full = False
    cluster.store.recover()
    cluster.settle()
    assert cluster.get("namespaces", "shop")["status"]["phase"] == "Active"
    cluster.delete("machines", "owner")
    cluster.settle()
    cluster.store.flush()
    assert cluster.names("machines") == []


def test_collection_that_was_begun_before_the_disk_was_full_is_taken_up_again() -> None:
    journal = FullDisk()
    journal.full = False
    cluster = Cluster(journal).with_machines()
    owner = cluster.machine("owner")
    cluster.machine("child", meta={"ownerReferences": owned_by(owner)})
    cluster.delete("machines", "owner")
    cluster.store.flush()
    journal.full = True
    cluster.settle()
    with pytest.raises(ApiError):
        cluster.store.flush()
    assert cluster.names("machines") == ["child"]
    journal.full = False
    cluster.store.recover()
    cluster.settle()
    assert cluster.names("machines") == []


def test_a_transaction_that_fails_leaves_nothing_behind(path: Path) -> None:
    journal = SqliteJournal(path)
    good = JournalEntry("configmaps", "default", "a", 1, {"kind": "ConfigMap"})
    bad = JournalEntry("configmaps", "default", "b", 2, {"kind": object()})
    with pytest.raises(TypeError):
        journal.append([good, bad])
    entries, last = journal.load()
    assert (list(entries), last) == ([], 0)
    journal.append([good])
    assert journal.load()[1] == 1
    journal.close()


WRITER = """
import sys
from pathlib import Path
from nodewright.apiserver.store import SqliteJournal
from tests.apiserver.store.cluster import Cluster

cluster = Cluster(SqliteJournal(Path(sys.argv[1])))
if not cluster.has("customresourcedefinitions", "machines.cluster.example.com"):
    cluster.with_machines()
first = len(cluster.names("machines"))
for index in range(first, 1_000_000):
    for part in "ab":
        cluster.create("configmaps", {"metadata": {"name": f"{part}-{index}"}})
    cluster.machine(f"m-{index:07}")
    cluster.store.flush()
    print(index, flush=True)
"""


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(path: Path) -> None:
    acknowledged = -1
    for round_ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert process.stdout is not None
        for _ in range(15 + 10 * round_):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        process.stdout.close()
        process.wait(timeout=180)
        survivor = opened(path)
        machines = survivor.names("machines")
        assert machines == [f"m-{index:07}" for index in range(len(machines))]
        assert acknowledged + 1 <= len(machines) <= acknowledged + 2
        # A flush is one transaction: what was committed together is there together.
        assert len(survivor.names("configmaps")) == 2 * len(machines)
        survivor.store.close()
