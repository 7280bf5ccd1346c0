"""User data fits a cloud as it is, or with gzip, or is refused with its sizes."""

from __future__ import annotations

import base64
import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.base.user_data import CLOUDS, Fitted, TooLarge, UserDataLimit, fit

NOISE = random.Random(7).randbytes(70_000)
LIMITS = [
    UserDataLimit("plain", 1000),
    UserDataLimit("coded", 1000, base64=True),
    UserDataLimit("text", 1000, gzip=False),
]
heads = st.sampled_from([b"#cloud-config\n", b"#!/bin/sh\n", b"{", b"\x1f\x8b", b"", b"\n #cloud-config\n"])


@given(head=heads, repeated=st.integers(0, 5000), noise=st.integers(0, 2000), limit=st.sampled_from(LIMITS))
def test_what_is_handed_over_is_within_the_limit_and_the_same_data(
    head: bytes, repeated: int, noise: int, limit: UserDataLimit
) -> None:
    data = head + b"a" * repeated + NOISE[:noise]
    found = fit(data, limit)
    assert found == fit(data, limit), "the same bytes each time"
    if isinstance(found, TooLarge):
        assert limit.length(data) > limit.size
        assert str(limit.length(data)) in found.message
        assert str(limit.size) in found.message
        return
    assert limit.length(found.data) == found.size <= limit.size
    assert (gzip.decompress(found.data) if found.compressed else found.data) == data
    assert found.compressed == (limit.length(data) > limit.size)


@pytest.mark.parametrize("limit", CLOUDS.values(), ids=list(CLOUDS))
def test_every_clouds_limit_holds_to_the_byte(limit: UserDataLimit) -> None:
    most = limit.size // 4 * 3 if limit.base64 else limit.size
    text = b"#cloud-config\n"
    assert isinstance(fit(text.ljust(most), limit), Fitted)
    assert len(base64.b64encode(b"x" * most) if limit.base64 else b"x" * most) <= limit.size
    over = fit(text.ljust(most + 1), limit)
    assert isinstance(over, Fitted if limit.gzip else TooLarge)
    assert not isinstance(over, Fitted) or over.compressed
    assert isinstance(fit(text + random.Random(1).randbytes(limit.size), limit), TooLarge)


@pytest.mark.parametrize("data", [b'{"ignition": {}}', b"<powershell>", gzip.compress(NOISE), b"#ps1_sysnative\n"])
def test_what_cloud_init_is_not_going_to_read_is_never_compressed(data: bytes) -> None:
    found = fit(data.ljust(70_000), UserDataLimit("c", 1000))
    assert isinstance(found, TooLarge)
    assert "gzip" not in found.message


def test_without_a_limit_everything_fits() -> None:
    assert fit(NOISE, None) == Fitted(NOISE, len(NOISE))


def test_the_message_says_what_to_do() -> None:
    found = fit(b"#!/bin/sh\n" + NOISE, CLOUDS["aws"])
    assert isinstance(found, TooLarge)
    assert found.message.startswith("user data is too large: 70010 bytes, 70")
    assert "EC2 takes 16384: bring large files with the image" in found.message


def test_the_documentation_has_every_limit() -> None:
    text = (Path(__file__).parents[2] / "docs/tasks/join.md").read_text()
    for limit in CLOUDS.values():
        row = f"| {limit.cloud} | {limit.size} {limit.unit} | {'yes' if limit.gzip else 'no'} | {limit.source} |"
        assert row in text
