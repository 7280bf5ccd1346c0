"""etcd's snapshot as a stream: checked against its checksum, encrypted, and never whole in memory."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pyrage
import pytest

from nodewright.runtime.etcd.gateway import GatewayError
from nodewright.runtime.etcd.sealing import SealingError, recipients_of, sealed
from nodewright.runtime.etcd.snapshot_stream import MOST_OF_A_LINE, SnapshotReader

DEADLINE = 180.0


def database(pages: int = 5) -> bytes:
    """With its checksum, as etcd sends it."""
    content = b"".join(bytes([number % 251]) * 512 for number in range(pages))
    return content + hashlib.sha256(content).digest()


def lines(content: bytes, size: int = 700) -> bytes:
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    return b"".join(
        json.dumps({"result": {"remaining_bytes": "1", "blob": base64.b64encode(part).decode()}}).encode() + b"\n"
        for part in parts
    )


async def stream(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


async def read(pieces: Iterable[bytes]) -> bytes:
    return b"".join([part async for part in SnapshotReader(stream(pieces)).parts()])


@pytest.mark.parametrize("size", [1, 7, 699, 1 << 20])
async def test_the_database_and_its_checksum_are_read_however_the_stream_is_cut(size: int) -> None:
    reader = SnapshotReader(stream(cut(lines(database()), size)))
    assert b"".join([part async for part in reader.parts()]) == database()
    assert reader.size == len(database())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lines(database())[:-100], "no JSON"),
        (lines(database()[:-32]), "cut off"),
        (lines(database()[:-544] + database()[-32:]), "damaged"),
        (lines(b"x" + database()[1:]), "damaged"),
        (b"", "cut off"),
        (b'{"error": {"message": "etcdserver: no space"}}\n', "no space"),
        (b'{"result": {"blob": "!"}}\n', "base64"),
        (b"[]\n", "broke its snapshot off"),
        (b"{" * 10_000 + b"\n", "no JSON"),
        (b'{"result": {"blob": 7}}\n', "base64"),
    ],
)
async def test_what_is_no_whole_snapshot_is_refused_and_why(content: bytes, why: str) -> None:
    with pytest.raises(GatewayError, match=why):
        await read([content])


async def test_a_line_without_an_end_is_not_kept() -> None:
    with pytest.raises(GatewayError, match="too long"):
        await read(b"x" * (1 << 20) for _ in range(2 * MOST_OF_A_LINE >> 20))


async def test_what_was_encrypted_can_be_read_with_the_key_and_does_not_hold_the_text() -> None:
    identity = pyrage.x25519.Identity.generate()
    content = b"a secret of the cluster" * 20_000
    written = [part async for part in sealed(stream(cut(content, 5000)), recipients_of([str(identity.to_public())]))]
    assert b"a secret" not in b"".join(written)
    assert max(map(len, written)) < 1 << 18
    opened = io.BytesIO()
    pyrage.decrypt_io(io.BytesIO(b"".join(written)), opened, [identity])
    assert opened.getvalue() == content


async def test_a_snapshot_that_is_cut_off_ends_the_encryption_with_the_reason() -> None:
    keys = recipients_of([str(pyrage.x25519.Identity.generate().to_public())])
    reader = SnapshotReader(stream([lines(database(2000)[:-32])]))
    with pytest.raises(GatewayError, match="cut off"):
        [part async for part in sealed(reader.parts(), keys)]


async def test_a_reader_that_stops_early_leaves_no_thread_behind() -> None:
    """The only thread of the pool is free again: it waits for nothing that comes no more."""
    keys = recipients_of([str(pyrage.x25519.Identity.generate().to_public())])
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))

    async def without_end() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    parts = without_end()
    async with asyncio.timeout(DEADLINE):
        async with aclosing(sealed(parts, keys)) as written:  # type: ignore[type-var]
            assert await anext(written)
        assert await asyncio.to_thread(int) == 0
    await parts.aclose()  # type: ignore[attr-defined]  (raises if the thread still reads)


def test_what_is_no_key_of_age_is_named() -> None:
    with pytest.raises(SealingError, match="age1nonsense"):
        recipients_of(["age1nonsense"])
