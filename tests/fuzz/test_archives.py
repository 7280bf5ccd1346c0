"""Archives, backups and the file of people: what was read, or a refusal, for every input that somebody could seal."""

from __future__ import annotations

import contextlib
import random
import zlib
from pathlib import Path

import orjson

from nodewright.apiserver.app import snapshots, users
from nodewright.apiserver.roles import Role
from nodewright.apiserver.store import JournalEntry
from nodewright.cli.archives.backups import check
from nodewright.cli.archives.contents import BACKUP, Contents, read
from nodewright.cli.exits import CliError
from tests.fuzz.driving import drive, sizes
from tests.fuzz.inputs import as_json, damaged, mutant

META = {"name": "s", "namespace": "default", "uid": "u", "resourceVersion": "7"}
ENTRY = JournalEntry("secrets", "default", "s", 7, {"apiVersion": "v1", "kind": "Secret", "metadata": META})
SEALED = Contents(BACKUP, 9, (ENTRY,), {"token": b"x"}, {"folder": "/x"}).written()
VALID = orjson.loads(zlib.decompress(SEALED))


@sizes(80, 6_000)
async def test_a_backup_is_read_or_refused(count: int) -> None:
    async def act(rng: random.Random) -> None:
        if rng.random() < 0.2:
            text = damaged(rng, SEALED)
        else:
            found = mutant(rng, VALID)
            if isinstance(found, dict) and rng.random() < 0.5:
                body = as_json(mutant(rng, ENTRY.obj)).decode()
                found["objects"] = [["secrets", "default", "s", 7, body]]
            text = zlib.compress(as_json(found))
        with contextlib.suppress(CliError):
            check(read(text, BACKUP, "it"))

    await drive(count, act)


@sizes(150, 10_000)
async def test_a_snapshot_is_read_or_refused(count: int) -> None:
    valid = b'{"revision":9,"objects":1}\n["secrets","default","s",7,{"metadata":{"name":"s"}}]'

    async def act(rng: random.Random) -> None:
        with contextlib.suppress(ValueError):
            snapshots.decode(damaged(rng, valid))

    await drive(count, act)


@sizes(150, 10_000)
async def test_the_file_of_people_is_read_or_refused(count: int, tmp_path: Path) -> None:
    person, _ = users.new_person("ann", Role.ADMIN, "2026-01-01T00:00:00Z")
    path = tmp_path / users.USERS_FILE
    users.write(path, (person,))
    valid = orjson.loads(path.read_bytes())

    async def act(rng: random.Random) -> None:
        path.write_bytes(as_json(mutant(rng, valid)))
        with contextlib.suppress(users.UsersError):
            assert all(each.role in Role for each in users.read(path))

    await drive(count, act)
