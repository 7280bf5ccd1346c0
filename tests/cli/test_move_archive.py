"""A Cluster goes into an encrypted archive and out of it again as it goes anywhere: nothing lost, nothing twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyrage
import pytest

from controllers.kernel.refs import MACHINE, Kind, key_of, ref_of, uid_of
from nodewright.cli.archives import contents
from nodewright.cli.archives.contents import BACKUP, MOVE, Contents, load, save
from nodewright.cli.archives.keys import Keys
from nodewright.cli.exits import CliError
from nodewright.cli.moving.archive import ArchiveSide, archive, clusters_in, file_name
from nodewright.cli.moving.moving import Move
from nodewright.cli.moving.sides import Side
from tests.cli.test_move_killed import PROD, Fragile, KilledError, Scene, ends, holds_after, scene

IDENTITY = pyrage.x25519.Identity.generate()
KEYS = Keys(identities=(str(IDENTITY),))
FILE = file_name(PROD)


class Saves:
    """Ends the process at its save number ``at``: before the file is there, or after."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.count = at, after, 0

    def __call__(self, *call: Any) -> None:
        dies = self.count == self.at
        self.count += 1
        if dies and not self.after:
            raise KilledError
        save(*call)
        if dies:
            raise KilledError


@contextmanager
def in_archive(folder: Path, *, new: bool = True) -> Iterator[ArchiveSide]:
    with archive(folder, PROD, KEYS, new=new) as side:
        yield side


async def export(there: Scene, folder: Path, at: int = -1, *, after: bool = False) -> bool:
    """False: it was killed at that write of the source."""
    async with Fragile(there.connections[0], "s") as client:
        client.writes, client.at, client.after = [], at, after
        with in_archive(folder) as side:
            return await ends(Move(Side(client, "the source"), side, PROD, there.registry, lambda _text: None))


async def take_up(there: Scene, folder: Path, at: int = -1, *, after: bool = False) -> bool:
    """At the target. False: it was killed at that write of the target."""
    async with Fragile(there.connections[1], "t") as client:
        client.writes, client.at, client.after = [], at, after
        with in_archive(folder, new=False) as side:
            return await ends(Move(side, Side(client, "the target"), PROD, there.registry, lambda _text: None))


async def left(client: Any) -> list[str]:
    world = await Side(client, "it").world("default")
    return [f"{kind.name} {key_of(obj).name}" for kind, objects in world.items() for obj in objects]


async def archived(folder: Path) -> list[tuple[Kind, dict[str, Any]]]:
    with in_archive(folder, new=False) as side:
        world = await side.world("default")
        return [(kind, obj) for kind, objects in world.items() for obj in objects]


async def test_out_of_it_comes_what_went_in_and_each_host_has_one_owner_all_the_time(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        folder = tmp_path / "archives"
        assert await export(there, folder)
        assert await left(there.source) == ["MachineClass small"]
        assert await left(there.target) == []
        machines = [obj for kind, obj in await archived(folder) if kind == MACHINE]
        assert set(there.hosts()) == {uid_of(each) for each in machines}, "they are the archive's alone"
        assert clusters_in(folder, "default") == [PROD]
        assert [oct(path.stat().st_mode & 0o777) for path in (folder, folder / FILE)] == ["0o700", "0o600"]
        assert await take_up(there, folder)
        await holds_after(there, before, hosts)
        with in_archive(folder, new=False) as side:
            assert await side.discard_if_empty()
        assert list(folder.iterdir()) == []


async def test_no_secret_is_on_the_disk_in_plain_text(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        folder = tmp_path / "archives"
        assert await export(there, folder)
        secret = next(obj for _, obj in await archived(folder) if obj["kind"] == "Secret")
        content = b"".join(path.read_bytes() for path in folder.iterdir())
        assert secret["data"]["value"].encode()[:60] not in content
        assert b"prod" not in content


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True], ids=["before", "after"])
async def test_killed_at_each_write_of_a_cluster_both_halves_go_on(tmp_path: Path, after: bool) -> None:
    """Each process is killed at one of its first four writes; what the file had not got is made anew."""
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        folder, kills = tmp_path / "archives", 0
        for step in (export, take_up):
            for at in range(3000):
                if await step(there, folder, at % 4, after=after):
                    break
                kills += 1
        assert kills >= 15
        await holds_after(there, before, hosts)


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True], ids=["before", "after"])
async def test_killed_at_each_save_of_the_file_both_halves_go_on(
    tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        folder, kills = tmp_path / "archives", 0
        for step in (export, take_up):
            at = 0
            while True:
                monkeypatch.setattr("nodewright.cli.moving.archive.save", Saves(at, after=after))
                if await step(there, folder):
                    break
                kills += 1
                at += 1
        assert kills >= 4
        await holds_after(there, before, hosts)


async def test_it_is_taken_back_until_it_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The save before the commit of the source is the last thing that can be undone."""
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        folder = tmp_path / "archives"
        monkeypatch.setattr("nodewright.cli.moving.archive.save", Saves(1, after=True))
        assert not await export(there, folder)
        monkeypatch.setattr("nodewright.cli.moving.archive.save", save)
        with in_archive(folder) as side:
            move = Move(Side(there.source, "the source"), side, PROD, there.registry, lambda _text: None)
            assert await move.abort()
            assert await side.discard_if_empty()
        assert await there.objects(there.source) != []
        assert [uid_of(obj) for _, obj in await there.objects(there.source)] == [uid_of(obj) for _, obj in before]
        assert there.hosts() == hosts
        assert await export(there, folder), "another one may begin"


async def test_taking_it_up_is_taken_back_until_it_is_committed(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        before, hosts = await there.objects(there.source), there.hosts()
        folder = tmp_path / "archives"
        assert await export(there, folder)
        assert not await take_up(there, folder, at=3, after=True)
        assert await left(there.target) != []
        with in_archive(folder, new=False) as side:
            move = Move(side, Side(there.target, "the target"), PROD, there.registry, lambda _text: None)
            assert await move.abort()
            assert not await side.discard_if_empty(), "it holds the Cluster still"
        assert await left(there.target) == []
        assert await take_up(there, folder)
        await holds_after(there, before, hosts)


async def test_to_look_whether_it_can_be_done_writes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        with archive(tmp_path / "archives", PROD, KEYS, new=True, look=True) as side:
            move = Move(Side(there.source, "the source"), side, PROD, there.registry, lambda _text: None)
            assert len(await move.check()) == 7
        assert "archives" not in [path.name for path in list_of(tmp_path)]


def list_of(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_of_two_copies_the_first_that_is_taken_up_gets_the_hosts(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        folder, copy = tmp_path / "archives", tmp_path / "copy"
        assert await export(there, folder)
        copy.mkdir()
        (copy / FILE).write_bytes((folder / FILE).read_bytes())
        assert await take_up(there, folder)
        hosts = there.hosts()
        there.turn_round()
        with pytest.raises(CliError, match="its provider shows no host of it"):
            await take_up(there, copy)
        assert there.hosts() == hosts
        assert await left(there.target) == ["MachineClass small"], "nothing was written"


async def test_what_is_under_way_forbids_it_and_makes_no_file(tmp_path: Path) -> None:
    async with scene(tmp_path) as there:
        (machine, *_) = [obj for kind, obj in await there.objects(there.source) if kind == MACHINE]
        await there.source.patch_status(ref_of(MACHINE, machine), {"nodeRef": None})
        with pytest.raises(CliError, match="its host is in the making"):
            await export(there, tmp_path / "archives")
        assert list((tmp_path / "archives").iterdir()) == []


def test_a_folder_is_used_by_one_move_at_a_time(tmp_path: Path) -> None:
    with in_archive(tmp_path), pytest.raises(CliError, match="in use by another move"), in_archive(tmp_path):
        pass


def test_no_archive_of_that_name_is_said(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=re.escape(f"there is no {FILE}")), in_archive(tmp_path, new=False):
        pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(tmp_path / FILE, Contents(MOVE, 7, (), about={"cluster": str(PROD)}), KEYS)
    return tmp_path / FILE


def refused(path: Path, keys: Keys = KEYS) -> str:
    with pytest.raises(CliError) as found, archive(path.parent, PROD, keys, new=False):
        pass
    return found.value.line()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.99])
def test_a_file_that_was_changed_is_refused(path: Path, share: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * share)] ^= 0x04
    path.write_bytes(content)
    assert re.search("can't be decrypted: .* cut or was changed|is no archive", refused(path))


class TestAFileIsRefused:
    @pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9, 0.999])
    def test_cut(self, path: Path, share: float) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        assert re.search("can't be decrypted: .* cut or was changed|is no archive", refused(path))

    def test_with_something_behind_it(self, path: Path) -> None:
        path.write_bytes(path.read_bytes() + b"x")
        assert "can't be decrypted" in refused(path)

    def test_with_another_key(self, path: Path) -> None:
        assert "the key is another one" in refused(path, Keys(identities=(str(pyrage.x25519.Identity.generate()),)))

    def test_with_a_passphrase_for_keys(self, path: Path) -> None:
        assert "the key is another one" in refused(path, Keys(passphrase="not that one at all"))

    def test_with_public_keys_alone(self, path: Path) -> None:
        assert "--identity-file" in refused(path, Keys(recipients=(str(IDENTITY.to_public()),)))

    @pytest.mark.parametrize("inside", [b"", b"{}", b"junk", b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
    def test_of_something_else_that_is_sealed(self, path: Path, inside: bytes) -> None:
        path.write_bytes(pyrage.encrypt(inside, [IDENTITY.to_public()]))
        assert "is encrypted, but no archive of Nodewright" in refused(path)

    def test_of_a_backup(self, path: Path) -> None:
        save(path, Contents(BACKUP, 7, ()), KEYS)
        assert "is an archive for `nodewright restore`" in refused(path)

    def test_of_another_cluster(self, path: Path) -> None:
        save(path, Contents(MOVE, 7, (), about={"cluster": "default/other"}), KEYS)
        assert "holds Cluster default/other" in refused(path)

    def test_of_a_later_version(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(contents, "__version__", "7.3.0")
        save(path, Contents(MOVE, 7, (), about={"cluster": str(PROD)}), KEYS)
        monkeypatch.undo()
        assert "was written by Nodewright 7.3.0" in refused(path)


@pytest.mark.slow  # scrypt is; whole programs use one, too
def test_a_passphrase_does_it_too(tmp_path: Path) -> None:
    keys = Keys(passphrase="correct horse battery")
    save(tmp_path / "a", Contents(MOVE, 7, ()), keys)
    assert load(tmp_path / "a", keys, MOVE).revision == 7


def test_nothing_of_a_key_is_in_a_text_of_it() -> None:
    assert "battery" not in repr(Keys(passphrase="correct horse battery"))
