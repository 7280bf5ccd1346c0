"""Host certificates: a host is taken for itself by a CA that is pinned, for its own name, and now; by nothing else."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from providers.ssh.provider import SSHProvider
from tests.providers.sshfixtures import provider as provider  # noqa: PLC0414 - a fixture
from tests.providers.sshworld import FakeHost, World

CA, OTHER_CA = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
NO_KEYS: dict[str, Any] = {"hostKeys": None}
NOW = datetime.datetime.now(datetime.UTC)
PAST, LATER = NOW - datetime.timedelta(days=1), NOW + datetime.timedelta(days=1)


def public(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


SHARED = {"hostCAs": [public(CA)]}


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Two hosts that are pinned by the pool's CA alone; h2 shows what it should."""
    made = World(tmp_path, 2, {})
    await made.up()
    made.publish(SHARED, h1=NO_KEYS, h2=NO_KEYS)
    await shows(made.hosts["h2"], CA, principals=["127.0.0.1"])
    yield made
    await made.down()


async def shows(host: FakeHost, ca: asyncssh.SSHKey, **terms: Any) -> None:
    await host.down()
    host.certificate = ca.generate_host_certificate(host.key, host.name, **terms)
    await host.up()


def reasons(world: World) -> dict[str, str]:
    return {name: each.get("reason", "") for name, each in world.objects.pool["status"]["hosts"].items()}


async def test_hosts_with_certificates_of_the_pools_ca_need_no_keys(world: World, provider: SSHProvider) -> None:
    await shows(world.hosts["h1"], CA, principals=["rack1", "127.0.0.1"], valid_after=PAST, valid_before=LATER)
    await provider.list()
    assert reasons(world) == {"h1": "", "h2": ""}


@pytest.mark.parametrize(
    ("ca", "terms", "said"),
    [
        (OTHER_CA, {"principals": ["127.0.0.1"]}, "is of a CA that is not among its hostCAs"),
        (CA, {"principals": ["rack2"]}, "is for 'rack2', and not for '127.0.0.1'"),
        (CA, {"principals": []}, "is for no name, and not for '127.0.0.1'"),
        (CA, {"principals": ["127.0.0.1"], "valid_before": PAST}, "has expired"),
        (CA, {"principals": ["127.0.0.1"], "valid_after": LATER}, "is not valid yet"),
    ],
    ids=["another CA", "another name", "no name", "expired", "not yet"],
)
async def test_any_other_certificate_is_refused_with_host_and_reason_and_nothing_is_sent(
    world: World, provider: SSHProvider, ca: asyncssh.SSHKey, terms: dict[str, Any], said: str
) -> None:
    await shows(world.hosts["h1"], ca, **terms)
    for _ in range(2):
        await provider.list()
    found = reasons(world)
    assert f"host h1 (127.0.0.1:{world.hosts['h1'].port}) shows a host certificate that {said}" in found["h1"]
    assert found["h2"] == ""
    assert world.hosts["h1"].commands == []


async def test_a_certificate_of_a_user_is_none_of_a_host(world: World, provider: SSHProvider) -> None:
    host = world.hosts["h1"]
    await host.down()
    host.certificate = CA.generate_user_certificate(host.key, "someone", principals=["127.0.0.1"])
    await host.up()
    await provider.list()
    assert "shows a host certificate that is one of a user, not of a host" in reasons(world)["h1"]


async def test_a_plain_key_where_a_ca_is_pinned_is_refused_and_not_taken_over(
    world: World, provider: SSHProvider
) -> None:
    await provider.list()
    assert "shows a host key without a certificate of its hostCAs" in reasons(world)["h1"]
    assert world.hosts["h1"].commands == []


async def test_a_key_that_is_pinned_beside_the_ca_counts_whatever_its_certificate_is(
    world: World, provider: SSHProvider
) -> None:
    """As ssh does: a certificate that is over must not shut out a host whose very key is known."""
    world.publish(SHARED, h2=NO_KEYS)
    await provider.list()
    assert reasons(world)["h1"] == ""
    await shows(world.hosts["h1"], CA, principals=["127.0.0.1"], valid_before=PAST)
    await provider.list()
    assert reasons(world)["h1"] == ""
    world.hosts["h1"].key = asyncssh.generate_private_key("ssh-ed25519")
    await shows(world.hosts["h1"], CA, principals=["127.0.0.1"], valid_before=PAST)
    await provider.list()
    assert "shows a host certificate that has expired" in reasons(world)["h1"]


async def test_a_host_has_the_name_and_the_ca_of_its_own_entry(world: World, provider: SSHProvider) -> None:
    entry = {**NO_KEYS, "hostCAs": [public(OTHER_CA)], "certificateName": "rack1.example.com"}
    world.publish(SHARED, h1=entry, h2=NO_KEYS)
    await shows(world.hosts["h1"], OTHER_CA, principals=["rack1.example.com"])
    await provider.list()
    assert reasons(world) == {"h1": "", "h2": ""}
    await shows(world.hosts["h1"], CA, principals=["rack1.example.com"])
    await provider.list()
    assert "is of a CA that is not among its hostCAs" in reasons(world)["h1"]


async def test_a_ca_that_is_taken_out_of_the_pool_ends_the_connections_that_were_made_by_it(
    world: World, provider: SSHProvider
) -> None:
    await provider.list()
    world.publish({"hostCAs": [public(OTHER_CA)]}, h1=NO_KEYS, h2=NO_KEYS)
    await provider.list()
    assert "is of a CA that is not among its hostCAs" in reasons(world)["h2"]


async def test_a_jump_is_judged_by_the_pools_ca_too(world: World, provider: SSHProvider) -> None:
    jump, behind = world.hosts["h2"], world.hosts["h1"]
    await shows(behind, CA, principals=["127.0.0.1"])
    way = {"address": "127.0.0.1", "port": jump.port, "user": "root", "certificateName": "the-jump"}
    world.publish(SHARED, h1={**NO_KEYS, "proxyJump": way}, h2=NO_KEYS)
    await provider.list()
    told = reasons(world)["h1"]
    assert f"its proxyJump 127.0.0.1:{jump.port} shows a host certificate that is for '127.0.0.1'" in told
    assert "and not for 'the-jump'" in told


async def test_a_ca_that_is_no_key_is_named(world: World, provider: SSHProvider) -> None:
    certificate = CA.generate_host_certificate(CA, "x").export_certificate().decode().strip()
    world.publish({"hostCAs": [certificate]}, h1=NO_KEYS, h2=NO_KEYS)
    await provider.list()
    assert "has an entry in hostCAs that is an SSH certificate" in reasons(world)["h1"]
