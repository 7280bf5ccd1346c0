"""Hosts behind a proxy jump: one connection to it, both keys pinned, and errors that say which of the two it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, HostIdentity, HostRequest
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import login
from providers.ssh.provider import SSHProvider
from tests.providers.sshfixtures import provider as provider  # noqa: PLC0414 - a fixture
from tests.providers.sshworld import POOL, World

CONFIG: dict[str, Any] = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": POOL}
JUMP_KEY = asyncssh.generate_private_key("ssh-ed25519")


class _Opens(asyncssh.SSHServer):
    def __init__(self, jump: Jump) -> None:
        self._jump = jump

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._jump.connections.append(conn)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        self._jump.opened.append(dest_port)
        return self._jump.may_open


class Jump:
    """A machine with sshd that opens connections and runs nothing."""

    def __init__(self) -> None:
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.opened: list[int] = []
        self.may_open = True
        self.port = 0
        self._acceptor: asyncssh.SSHAcceptor | None = None

    async def up(self) -> None:
        users = asyncssh.import_authorized_keys(JUMP_KEY.export_public_key().decode())
        self._acceptor = await asyncssh.listen(
            "127.0.0.1", self.port, server_host_keys=[self.key], authorized_client_keys=users,
            server_factory=lambda: _Opens(self), reuse_address=True,
        )  # fmt: skip
        self.port = self._acceptor.get_port()

    async def down(self) -> None:
        assert self._acceptor is not None
        self._acceptor.close()
        await self._acceptor.wait_closed()
        self.cut()

    def cut(self) -> None:
        for connection in self.connections:
            connection.abort()

    def entry(self, **changes: Any) -> dict[str, Any]:
        public = " ".join(self.key.export_public_key().decode().split()[:2])
        entry = {"address": "127.0.0.1", "port": self.port, "user": "jump", "hostKeys": [public]}
        return {**entry, "secretName": "jump-key", **changes}


@pytest_asyncio.fixture
async def jump() -> AsyncIterator[Jump]:
    made = Jump()
    await made.up()
    yield made
    await made.down()


@pytest_asyncio.fixture
async def world(tmp_path: Path, jump: Jump) -> AsyncIterator[World]:
    """Three hosts, all behind the jump."""
    made = World(tmp_path, 3, {"join": {BOOTSTRAP_DATA: b"#!/bin/sh\n"}})
    await made.up()
    made.secrets.secrets["jump-key"] = {"ssh-privatekey": JUMP_KEY.export_private_key()}
    behind(made, jump.entry())
    yield made
    await made.down()


def behind(world: World, entry: dict[str, Any]) -> None:
    world.publish(**{name: {"proxyJump": entry} for name in world.hosts})


def request() -> HostRequest:
    identity = HostIdentity("5b1d2f0e-0000-4000-8000-000000000001", "default", "m", "", "here")
    return HostRequest(identity, CONFIG, "hash", bootstrap=BootstrapRef("join"))


def reasons(world: World) -> dict[str, str]:
    return {name: each.get("reason", "") for name, each in world.objects.pool["status"]["hosts"].items()}


async def test_hosts_are_claimed_joined_and_given_back_over_one_connection_to_the_jump(
    world: World, jump: Jump, provider: SSHProvider
) -> None:
    await provider.list()
    host = await provider.create(request())
    assert (world.hosts[host.name].home / "started").exists()
    await provider.delete(host)
    assert len(jump.connections) == 1
    assert sorted(jump.opened) == sorted(each.port for each in world.hosts.values())


async def test_a_jump_that_was_cut_is_made_anew_for_all_its_hosts(
    world: World, jump: Jump, provider: SSHProvider
) -> None:
    await provider.list()
    jump.cut()
    await provider.list()
    assert set(reasons(world).values()) == {""}
    assert len(jump.connections) == 2


async def test_a_jump_with_another_key_is_told_nothing_and_named(
    world: World, jump: Jump, provider: SSHProvider
) -> None:
    await jump.down()
    jump.key = asyncssh.generate_private_key("ssh-ed25519")
    await jump.up()
    await provider.list()
    for name, reason in reasons(world).items():
        assert f"host {name} (127.0.0.1:{world.hosts[name].port}) can't be asked" in reason
        assert f"its proxyJump 127.0.0.1:{jump.port} shows a host key that is not among its hostKeys" in reason
    assert jump.opened == []


async def test_a_host_with_another_key_behind_a_jump_is_named_as_the_host(world: World, provider: SSHProvider) -> None:
    world.hosts["h1"].key = asyncssh.generate_private_key("ssh-ed25519")
    await world.hosts["h1"].down()
    await world.hosts["h1"].up()
    await provider.list()
    found = reasons(world)
    assert "shows a host key that is not among its hostKeys" in found["h1"]
    assert f"host h1 (127.0.0.1:{world.hosts['h1'].port}) shows a host key" in found["h1"]
    assert (found["h2"], found["h3"]) == ("", "")


@pytest.mark.parametrize("secret", ["of the pool", "of its own"])
async def test_a_jump_that_refuses_the_key_names_the_secret(
    world: World, jump: Jump, provider: SSHProvider, secret: str
) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    world.secrets.secrets["jump-key"] = {"ssh-privatekey": other}
    entry = jump.entry()
    if secret == "of the pool":
        del entry["secretName"]
    behind(world, entry)
    await provider.list()
    name = "racks-key" if secret == "of the pool" else "jump-key"
    assert f"proxyJump 127.0.0.1:{jump.port} refuses user jump with the key of Secret {name}" in reasons(world)["h2"]


async def test_a_jump_that_is_away_makes_its_hosts_unreachable_and_no_others(
    world: World, jump: Jump, provider: SSHProvider
) -> None:
    world.publish(h1={"proxyJump": jump.entry()}, h2={"proxyJump": jump.entry()})
    await jump.down()
    assert (await provider.create(request())).name == "h3"
    await provider.list()
    states = {name: each["state"] for name, each in world.objects.pool["status"]["hosts"].items()}
    assert states == {"h1": "Unreachable", "h2": "Unreachable", "h3": "Claimed"}
    assert f"proxyJump 127.0.0.1:{jump.port} can't be reached" in reasons(world)["h1"]
    await jump.up()
    await provider.list()
    assert reasons(world) == {"h1": "", "h2": "", "h3": ""}


async def test_a_jump_that_says_nothing_holds_up_the_list_once_and_not_for_each_host(
    world: World, provider: SSHProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One attempt for all that wait: a pool behind a dead jump would else take its time for each host."""
    arrived: list[asyncio.StreamWriter] = []

    def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    mute = {"address": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "user": "jump"}
    behind(world, {**mute, "hostKeys": world.hosts["h1"].entry()["hostKeys"], "secretName": "jump-key"})
    monkeypatch.setattr(login, "CONNECT_TIMEOUT", 1.0)
    try:
        await provider.list()
        assert len(arrived) == 1
        assert all("proxyJump" in reason for reason in reasons(world).values())
    finally:
        server.close()
        for writer in arrived:
            writer.close()


async def test_a_jump_that_may_open_nothing_is_told(world: World, jump: Jump, provider: SSHProvider) -> None:
    jump.may_open = False
    with pytest.raises(ProviderError) as caught:
        await provider.create(request())
    assert caught.value.error_class is ErrorClass.STOCK_OUT
    await provider.list()
    assert "its proxyJump" in reasons(world)["h1"]


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1"])
async def test_an_address_that_servers_may_not_have_is_not_asked_for_through_a_jump_either(
    world: World, jump: Jump, provider: SSHProvider, address: str
) -> None:
    world.publish(h1={"address": address, "proxyJump": jump.entry()})
    await provider.list()
    assert address in reasons(world)["h1"]
    assert jump.opened == []


async def test_a_jump_that_no_host_has_any_more_is_let_go(world: World, jump: Jump, provider: SSHProvider) -> None:
    await provider.list()
    world.publish()
    await provider.list()
    await jump.connections[0].wait_closed()
    assert set(reasons(world).values()) == {""}


# -- several of them, one behind the other


@pytest_asyncio.fixture
async def inner(world: World, jump: Jump) -> AsyncIterator[Jump]:
    """A second jump behind the first one, and all hosts behind it."""
    made = Jump()
    await made.up()
    world.publish(**{name: {"proxyJumps": [jump.entry(), made.entry()]} for name in world.hosts})
    yield made
    await made.down()


async def test_hosts_behind_two_jumps_share_one_connection_to_each(
    world: World, jump: Jump, inner: Jump, provider: SSHProvider
) -> None:
    await provider.list()
    assert set(reasons(world).values()) == {""}
    assert (len(jump.connections), len(inner.connections)) == (1, 1)
    assert jump.opened == [inner.port]
    assert sorted(inner.opened) == sorted(each.port for each in world.hosts.values())


@pytest.mark.parametrize("which", ["jump", "inner"])
async def test_a_chain_that_was_cut_is_made_anew(
    world: World, jump: Jump, inner: Jump, provider: SSHProvider, which: str
) -> None:
    await provider.list()
    {"jump": jump, "inner": inner}[which].cut()
    await provider.list()
    assert set(reasons(world).values()) == {""}
    assert len(inner.connections) == 2


async def test_of_a_chain_the_one_is_named_that_shows_another_key(
    world: World, jump: Jump, inner: Jump, provider: SSHProvider
) -> None:
    for wrong, named in ((0, jump), (1, inner)):
        entries = [jump.entry(), inner.entry()]
        entries[wrong]["hostKeys"] = [hostkey_of((inner, jump)[wrong])]
        world.publish(**{name: {"proxyJumps": entries} for name in world.hosts})
        await provider.list()
        for reason in reasons(world).values():
            assert f"its proxyJump 127.0.0.1:{named.port} shows a host key that is not among" in reason
    assert all(host.logins == 0 for host in world.hosts.values())


async def test_a_jump_that_may_not_open_the_way_to_the_next_one_is_named(
    world: World, jump: Jump, inner: Jump, provider: SSHProvider
) -> None:
    jump.may_open = False
    await provider.list()
    for reason in reasons(world).values():
        assert f"for its proxyJump 127.0.0.1:{inner.port} can't be reached" in reason
        assert f"by way of its proxyJump 127.0.0.1:{jump.port}" in reason


def hostkey_of(jump: Jump) -> str:
    return " ".join(jump.key.export_public_key().decode().split()[:2])
