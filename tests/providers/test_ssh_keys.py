"""Keys with a passphrase: opened once for a pool, refused by name, and never long at work for a user's text."""

from __future__ import annotations

import asyncio
import base64
import struct
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio

from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import keys
from providers.ssh.provider import SSHProvider
from tests.providers.sshfixtures import provider as provider  # noqa: PLC0414 - a fixture
from tests.providers.sshworld import SECRET, World

PHRASE = b"correct horse"


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path, 2, {})
    await made.up()
    yield made
    await made.down()


async def keygen(folder: Path, *options: str) -> bytes:
    """A key of ssh-keygen with PHRASE; its public half lies beside it."""
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", PHRASE.decode(), "-f", str(folder / "key"), *options]
    await asyncio.to_thread(subprocess.run, make, check=True)
    return (folder / "key").read_bytes()


async def authorize(world: World, public: str) -> None:
    for host in world.hosts.values():
        await host.down()
        await host.up(public)


def states(world: World) -> set[str]:
    return {each["state"] for each in world.objects.pool["status"]["hosts"].values()}


async def test_a_key_of_ssh_keygen_logs_in_with_the_passphrase_beside_it_and_is_opened_once(
    world: World, provider: SSHProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = keys.key_of
    monkeypatch.setattr(keys, "key_of", lambda secret, data: (opened.append(secret), real(secret, data))[1])
    text = await keygen(tmp_path)
    await authorize(world, (tmp_path / "key.pub").read_text())
    world.secrets.secrets[SECRET] = {"ssh-privatekey": text, "ssh-passphrase": PHRASE + b"\n"}
    await provider.list()
    assert states(world) == {"Free"}
    assert opened == [SECRET]


async def test_a_passphrase_that_was_wrong_is_tried_once_and_the_corrected_one_is_taken(
    world: World, provider: SSHProvider, tmp_path: Path
) -> None:
    text = await keygen(tmp_path)
    await authorize(world, (tmp_path / "key.pub").read_text())
    world.secrets.secrets[SECRET] = {"ssh-privatekey": text, "ssh-passphrase": b"wrong horse"}
    for _ in range(2):
        with pytest.raises(ProviderError, match=f"ssh-privatekey of Secret {SECRET} is not opened by ssh-passphrase"):
            await provider.list()
    world.secrets.secrets[SECRET] = {"ssh-privatekey": text, "ssh-passphrase": PHRASE}
    await provider.list()
    assert states(world) == {"Free"}


async def test_a_key_whose_passphrase_is_missing_says_where_it_belongs(tmp_path: Path) -> None:
    text = await keygen(tmp_path)
    with pytest.raises(ProviderError, match="has a passphrase: put it into ssh-passphrase of the same Secret"):
        keys.key_of(SECRET, {"ssh-privatekey": text})


async def test_a_key_that_takes_too_long_to_open_is_refused_before_it_is_tried(tmp_path: Path) -> None:
    """Its rounds are a number in its text, up to four thousand million."""
    text = _with_rounds(await keygen(tmp_path), 2**32 - 1)
    with pytest.raises(ProviderError, match="takes 4294967295 rounds to open, and 256 are the most") as caught:
        keys.key_of(SECRET, {"ssh-privatekey": text, "ssh-passphrase": PHRASE})
    assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION


@pytest.mark.parametrize("kind", ["pkcs8-pem", "pkcs1-pem"])
def test_a_key_in_an_older_format_is_not_opened_and_says_how_to_write_it_anew(kind: str) -> None:
    """Their rounds are not bounded, or there are none at all."""
    text = asyncssh.generate_private_key("ssh-rsa", key_size=2048).export_private_key(kind, passphrase="open")
    with pytest.raises(ProviderError, match="in another format than OpenSSH's: `ssh-keygen -p -f KEY`"):
        keys.key_of(SECRET, {"ssh-privatekey": text, "ssh-passphrase": b"open"})


def _with_rounds(text: bytes, rounds: int) -> bytes:
    lines = text.split(b"\n")
    raw = bytearray(base64.b64decode(b"".join(lines[1:-2])))
    at = raw.index(b"bcrypt") + len(b"bcrypt") + 4 + 4 + 16
    raw[at : at + 4] = struct.pack(">I", rounds)
    return b"\n".join([lines[0], base64.b64encode(bytes(raw)), lines[-2], b""])
