"""Damaged keys and host certificates: each is taken or refused in our own words, and none holds the process up."""

from __future__ import annotations

import base64
import random

import asyncssh

from providers.base.errors import ProviderError
from providers.ssh import keys
from providers.ssh.hostkeys import Judge, Pins, WrongCertificateError
from tests.fuzz.driving import drive, sizes

# Key and salt are others in each run, and the bytes that an input damages are the same.
_KEY = asyncssh.generate_private_key("ssh-ed25519")
_ENCRYPTED = _KEY.export_private_key(passphrase="open", rounds=1, ignore_few_rounds=True)
_CA = " ".join(_KEY.export_public_key().decode().split()[:2])
_SHOWN = _KEY.generate_host_certificate(_KEY, "h", principals=["h"]).public_data


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes are others, left out or doubled."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made) or 1)
        match rng.randrange(4):
            case 0:
                made[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del made[at : at + rng.randint(1, 40)]
            case 2:
                made[at:at] = made[at : at + rng.randint(1, 40)]
            case _:
                made[at : at + 4] = b"\xff\xff\xff\xff"
    return bytes(made)


def _refusal(text: bytes) -> str:
    """ "" for a key that is opened."""
    try:
        keys.key_of("s", {"ssh-privatekey": text, "ssh-passphrase": b"open"})
    except ProviderError as error:
        return str(error)
    return ""


@sizes(100, 5_000)
async def test_a_damaged_key_with_a_passphrase_is_refused_or_opened(count: int) -> None:
    async def act(rng: random.Random) -> None:
        lines = _ENCRYPTED.split(b"\n")
        if rng.random() < 0.7:
            raw = damaged(base64.b64decode(b"".join(lines[1:-2])), rng)
            text = b"\n".join([lines[0], base64.b64encode(raw), *lines[-2:]])
        else:
            text = damaged(_ENCRYPTED, rng)
        assert _refusal(text).partition(" of ")[0] in {"", "InvalidConfiguration: ssh-privatekey"}

    await drive(count, act)


@sizes(300, 20_000)
async def test_a_damaged_certificate_is_never_taken_for_the_one_that_was_signed(count: int) -> None:
    """Nor does it raise anything but a refusal: its text is a stranger's."""
    judge = Judge(Pins((), (_CA,), "h"))
    assert judge.check(_SHOWN) is None

    async def act(rng: random.Random) -> None:
        shown = damaged(_SHOWN, rng)
        try:
            judge.check(shown)
        except WrongCertificateError:
            return
        assert shown == _SHOWN, "it was changed, and is taken"

    await drive(count, act)
