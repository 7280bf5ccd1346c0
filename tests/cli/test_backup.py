"""A backup is of one moment, encrypted, and restored as a whole or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyrage
import pytest

from controllers.kernel.refs import SECRET, Kind
from nodewright import __version__
from nodewright.apiserver.roles import Role
from nodewright.apiserver.store import SqliteJournal
from nodewright.cli.archives import backups, contents
from nodewright.cli.archives.backups import BUMP, check, restore, take
from nodewright.cli.archives.contents import BACKUP, MOVE, Contents, load, save
from nodewright.cli.archives.keys import Keys
from nodewright.cli.embedded import stamp
from nodewright.cli.embedded.folder import held
from nodewright.cli.embedded.people import add, people, remove, renew
from nodewright.cli.embedded.session import Session, SessionOptions, session
from nodewright.cli.embedded.stamp import STAMP, check_in
from nodewright.cli.exits import CliError
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig

IDENTITY = pyrage.x25519.Identity.generate()
KEYS = Keys(identities=(str(IDENTITY),))
MAP = Kind("", "v1", "ConfigMap", "configmaps")


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Session]:
    async with session(SessionOptions(folder, controllers=False), asyncio.Event()) as found:
        yield found


def body(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


async def state_of(plane: Session) -> dict[tuple[str, str, str], Any]:
    return {entry[:3]: entry.obj for entry in plane.plane.store.snapshot()}


async def backed_up(folder: Path, to: Path) -> Contents:
    """Of a plane that runs, or is stopped."""
    found = await asyncio.to_thread(take, folder)
    save(to, found, KEYS)
    return load(to, KEYS, BACKUP)


@pytest.mark.parametrize("runs", [True, False], ids=["running", "stopped"])
async def test_what_is_restored_is_what_was_there(tmp_path: Path, runs: bool) -> None:
    first, second, file = tmp_path / "a", tmp_path / "b", tmp_path / "backup"
    async with running(first) as plane, KubeClient(plane.connection, "t") as client:
        await client.create(SECRET, body("s", stringData={"a": "very secret indeed"}))
        add(first, "ann", Role.ADMIN, tmp_path / "ann")
        before = await state_of(plane)
        mark = before["namespaces", "", "kube-system"]["metadata"]["uid"]
        if runs:
            found = await backed_up(first, file)
    if not runs:
        found = await backed_up(first, file)
    assert b"very" not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    restore(found, second)
    assert not list_of(tmp_path, ".b.*")
    assert second.stat().st_mode & 0o777 == 0o700
    assert modes_of(second) == {0o600}
    async with running(second) as plane:
        after = await state_of(plane)
        assert {key: after[key] for key in before} == before
        assert after["namespaces", "", "kube-system"]["metadata"]["uid"] == mark, "hosts know it by that"
        for path in (first / "kubeconfig", tmp_path / "ann"):
            connection = await load_kubeconfig([path])
            async with KubeClient(connection, "t") as client:
                assert await client.version(), "kubeconfigs stay good"


async def test_it_is_of_one_moment_though_others_write(tmp_path: Path) -> None:
    """Two objects that are always written in one order: never the later one without the earlier."""
    async with running(tmp_path / "a") as plane, KubeClient(plane.connection, "t") as client:
        stop = asyncio.Event()

        async def write() -> None:
            number = 0
            while not stop.is_set():
                await client.create(MAP, body(f"first-{number}"))
                await client.create(MAP, body(f"then-{number}"))
                number += 1

        writing = asyncio.ensure_future(write())
        for _ in range(5):
            found = await asyncio.to_thread(take, tmp_path / "a")
            names = {entry.name for entry in found.entries}
            assert {f"first-{name.partition('-')[2]}" for name in names if name.startswith("then-")} <= names
            assert max(entry.revision for entry in found.entries) <= found.revision
        stop.set()
        await writing


async def test_no_resource_version_is_used_for_two_states(tmp_path: Path) -> None:
    """The plane went on after its backup: who knows its later versions must list again."""
    async with running(tmp_path / "a") as plane, KubeClient(plane.connection, "t") as client:
        found = await asyncio.to_thread(take, tmp_path / "a")
        made = await client.create(MAP, body("later"))
    restore(found, tmp_path / "b")
    async with running(tmp_path / "b") as plane, KubeClient(plane.connection, "t") as client:
        again = await client.create(MAP, body("other"))
        assert int(again["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"]) + BUMP // 2


async def test_a_folder_that_is_not_empty_is_refused_untouched(tmp_path: Path) -> None:
    async with running(tmp_path / "a"):
        pass
    found = take(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").write_text("x")
    with pytest.raises(CliError, match="is not empty"):
        restore(found, tmp_path / "b")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["mine"]
    with pytest.raises(CliError, match="is not empty"):
        restore(found, tmp_path / "a")


async def test_while_the_one_that_it_is_of_runs_here_it_is_not_restored(tmp_path: Path) -> None:
    async with running(tmp_path / "a"):
        found = await asyncio.to_thread(take, tmp_path / "a")
        with pytest.raises(CliError, match="both would act on the same hosts"):
            restore(found, tmp_path / "b")
    assert not (tmp_path / "b").exists()


class KilledError(BaseException):
    """No handler of errors is a way out of that."""


class Dying:
    """Ends the process at its call number ``at`` of a function of ``backups`` that writes."""

    def __init__(self, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = at
        for name in ("write_private", "sync_folder", "private_folder"):
            monkeypatch.setattr(backups, name, partial(self, getattr(backups, name)))
        monkeypatch.setattr(backups.shutil, "rmtree", lambda *_given, **_named: None)  # it removes nothing any more

    def __call__(self, real: Callable[..., Any], *given: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KilledError
        return real(*given)


def is_killed(found: Contents, folder: Path, at: int) -> bool:
    with pytest.MonkeyPatch.context() as monkeypatch:
        Dying(at, monkeypatch)
        try:
            restore(found, folder)
        except KilledError:
            return True
    return False


async def test_killed_at_any_write_there_is_all_of_it_or_nothing(tmp_path: Path) -> None:
    async with running(tmp_path / "a"):
        pass
    found, folder, at = take(tmp_path / "a"), tmp_path / "b", 0
    while is_killed(found, folder, at) and not folder.exists():
        at += 1
    assert at >= 8
    assert take(folder).revision >= found.revision + BUMP, "whole, though its name was not forced to the disk yet"
    folder.rename(tmp_path / "whole")
    restore(found, folder)
    assert not list_of(tmp_path, ".b.restoring-*"), "what was left is removed by the next one"


def list_of(folder: Path, pattern: str = "*") -> list[Path]:
    return list(folder.glob(pattern))


def content_of(folder: Path) -> dict[str, bytes]:
    """Without the number of the process that holds it."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}


def modes_of(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "moved/../../x", "state.db", "lock", "moved/x/y.kubeconfig"])
def test_a_backup_with_a_file_that_has_no_place_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no place in a data folder"):
        restore(Contents(BACKUP, 1, (), {name: b""}), tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


class TestABackupIsRefused:
    def test_that_is_an_archive_of_a_move(self, tmp_path: Path) -> None:
        save(tmp_path / "f", Contents(MOVE, 1, ()), KEYS)
        with pytest.raises(CliError, match="archive for `nodewright move --from-directory`"):
            load(tmp_path / "f", KEYS, BACKUP)

    def test_of_a_later_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(contents, "__version__", "9.0.0")
        save(tmp_path / "f", Contents(BACKUP, 1, ()), KEYS)
        monkeypatch.undo()
        with pytest.raises(CliError, match=r"written by Nodewright 9\.0\.0, and this is"):
            load(tmp_path / "f", KEYS, BACKUP)

    def test_of_objects_that_nobody_can_serve(self) -> None:
        obj = {"metadata": {"name": "x", "uid": "u", "resourceVersion": "9", "ownerReferences": [5]}}
        entry = contents.JournalEntry("customresourcedefinitions.apiextensions.k8s.io", "", "x", 9, obj)
        with pytest.raises(CliError, match="can't be served"):
            check(Contents(BACKUP, 9, (entry,)))

    def test_of_no_plane_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(CliError, match="holds no control plane"):
            take(tmp_path)


class TestTheVersionOfAFolder:
    async def test_a_later_versions_folder_is_refused_untouched(self, tmp_path: Path) -> None:
        async with running(tmp_path):
            pass
        (tmp_path / STAMP).write_text(json.dumps({"format": 1, "nodewright": "7.1.0"}))
        before = content_of(tmp_path)
        with pytest.raises(CliError, match=rf"was used by Nodewright 7\.1\.0, and this is {__version__}"):
            async with running(tmp_path):
                pass
        assert content_of(tmp_path) == before

    def test_a_later_format_is_refused_whatever_its_version(self, tmp_path: Path) -> None:
        (tmp_path / STAMP).write_text(json.dumps({"format": 2, "nodewright": __version__}))
        with pytest.raises(CliError, match="was used by"):
            check_in(tmp_path)

    async def test_of_an_earlier_versions_state_a_copy_is_kept_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running(tmp_path):
            pass
        state = (tmp_path / "state.db").read_bytes()
        monkeypatch.setattr(stamp, "__version__", "0.2.0")
        with held(tmp_path):
            check_in(tmp_path)
        kept = tmp_path / "before-0.2.0"
        assert (kept / "state.db").read_bytes() == state
        assert (kept / STAMP).exists()
        assert kept.stat().st_mode & 0o777 == 0o700
        assert json.loads((tmp_path / STAMP).read_bytes())["nodewright"] == "0.2.0"
        (kept / "mark").write_text("")
        check_in(tmp_path)
        assert (kept / "mark").exists()
        monkeypatch.undo()
        with pytest.raises(CliError, match=r"was used by Nodewright 0\.2\.0"):
            check_in(tmp_path)
        journal = SqliteJournal(kept / "state.db")
        assert journal.load()[1] > 0, "it can be gone back to"
        journal.close()

    async def test_a_folder_without_a_stamp_is_an_earlier_versions(self, tmp_path: Path) -> None:
        async with running(tmp_path):
            pass
        (tmp_path / STAMP).unlink()
        async with running(tmp_path):
            assert (tmp_path / f"before-{__version__}" / "state.db").exists()

    async def test_a_new_folder_has_no_copy(self, tmp_path: Path) -> None:
        async with running(tmp_path):
            assert not list_of(tmp_path, "before-*")

    @pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"format": "x", "nodewright": 1}'])
    def test_a_damaged_stamp_is_named(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / STAMP).write_bytes(content)
        with pytest.raises(CliError, match="says no version"):
            check_in(tmp_path)


async def test_people_are_added_and_removed_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    with pytest.raises(CliError, match="ever started"):
        add(folder, "bob", Role.READ_ONLY, tmp_path / "bob")
    async with running(folder) as plane:
        add(folder, "bob", Role.READ_ONLY, tmp_path / "bob")
        assert [(each.name, each.role) for each in people(folder)] == [("bob", Role.READ_ONLY)]
        with pytest.raises(CliError, match="has access already"):
            add(folder, "bob", Role.ADMIN, tmp_path / "bob-2")
        with pytest.raises(CliError, match="exists: it would be overwritten"):
            add(folder, "ann", Role.ADMIN, tmp_path / "bob")
        assert (tmp_path / "bob").stat().st_mode & 0o777 == 0o600
        async with KubeClient(await load_kubeconfig([tmp_path / "bob"]), "t") as bob:
            await bob.list_page(MAP)
            with pytest.raises(Exception, match="may not read Secrets"):
                await bob.list_page(SECRET)
            remove(folder, "bob")
            with pytest.raises(Exception, match="Unauthorized"):
                await bob.list_page(MAP)
        assert plane.url
    with pytest.raises(CliError, match="bob has no access"):
        remove(folder, "bob")
    with pytest.raises(CliError, match="bob has no access"):
        renew(folder, "bob", timedelta(hours=1))


async def test_a_token_ends_and_is_renewed_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    async with running(folder):
        add(folder, "bob", Role.READ_ONLY, tmp_path / "bob", timedelta(milliseconds=1))
        add(folder, "ann", Role.READ_ONLY, tmp_path / "ann", timedelta(days=1))
        assert [bool(each.until) for each in people(folder)] == [True, True]
        async with KubeClient(await load_kubeconfig([tmp_path / "bob"]), "t") as bob:
            with pytest.raises(Exception, match="Unauthorized"):
                await bob.list_page(MAP)
            assert renew(folder, "bob", timedelta(days=1)).until > people(folder)[1].since
            await bob.list_page(MAP)
            assert renew(folder, "bob", timedelta()).until == ""
            await bob.list_page(MAP)
