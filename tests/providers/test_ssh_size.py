"""What large pools cost: connections, commands and writes are counted; `python -m hack.bench ssh` has the seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from hack.sshd import Hosts, pool_of
from providers.base.contract import BOOTSTRAP_DATA, BootstrapRef, HostIdentity, HostRequest
from providers.ssh import connections
from providers.ssh.provider import LOOKS_AT_ONCE, SSHProvider
from tests.providers.sshworld import POOL, SECRET, USER_KEY, HeldObjects, HeldSecrets

CONFIG: dict[str, Any] = {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHMachineConfig", "pool": POOL}
MANY = 50


class Counted(HeldObjects):
    def __init__(self) -> None:
        super().__init__()
        self.reads = self.writes = 0

    async def read(self, api_version: str, kind: str, name: str) -> Any:
        self.reads += 1
        return await super().read(api_version, kind, name)

    async def report(self, obj: Any, status: Any) -> Any:
        self.writes += 1
        return await super().report(obj, status)


@pytest_asyncio.fixture
async def hosts() -> AsyncIterator[Hosts]:
    made = Hosts()
    await made.up(USER_KEY.export_public_key().decode())
    yield made
    await made.down()


@pytest.fixture
def objects() -> Counted:
    return Counted()


@pytest_asyncio.fixture
async def provider(objects: Counted) -> AsyncIterator[SSHProvider]:
    secrets = {SECRET: {"ssh-privatekey": USER_KEY.export_private_key()}, "join": {BOOTSTRAP_DATA: b"#!/bin/sh\n"}}
    made = SSHProvider(POOL, HeldSecrets(secrets), objects)
    yield made
    await made.close()


def request(number: int) -> HostRequest:
    identity = HostIdentity(f"5b1d2f0e-0000-4000-8000-{number:012}", "default", f"m-{number}", "", "here")
    return HostRequest(identity, CONFIG, "hash", bootstrap=BootstrapRef("join", "script"))


async def test_fifty_machines_at_once_have_fifty_hosts_by_one_login_and_four_commands_each(
    hosts: Hosts, objects: Counted, provider: SSHProvider
) -> None:
    """A look of the first list, a look before the claim, the claim and the start."""
    objects.pool = hosts.pool(POOL, SECRET, MANY)
    await provider.list()
    made = await asyncio.gather(*(provider.create(request(number)) for number in range(MANY)))
    assert len({host.name for host in made}) == MANY
    assert hosts.counts.logins == MANY
    assert hosts.counts.commands == {"look": 2 * MANY, "claim": MANY, "start": MANY}
    assert objects.writes <= MANY + 1, "more than one intent for each claim, and the first list"


async def test_a_list_is_one_command_for_each_host_over_the_connections_that_are_there(
    hosts: Hosts, objects: Counted, provider: SSHProvider
) -> None:
    objects.pool = hosts.pool(POOL, SECRET, MANY)
    await provider.list()
    await provider.list()
    assert hosts.counts.logins == MANY
    assert hosts.counts.commands == {"look": 2 * MANY}
    assert (objects.reads, objects.writes) == (2, 1), "a pool in which nothing happens is written"


async def test_a_look_over_a_thousand_hosts_is_one_bounded_pass(
    objects: Counted, provider: SSHProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the level of connections: commands, how many at a time, reads and writes."""
    running = most = commands = 0

    async def run(_ways: Any, host: Any, *_args: object, **_options: object) -> dict[str, str]:
        nonlocal running, most, commands
        commands, running = commands + 1, running + 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return {"hostname": host.name}

    monkeypatch.setattr(connections.Connections, "run", run)
    key = " ".join(USER_KEY.export_public_key().decode().split()[:2])

    objects.pool = pool_of(POOL, SECRET, {"port": 22, "hostKeys": [key]}, 1000)
    for _ in range(3):
        assert await provider.list() == ()
    assert (commands, objects.reads, objects.writes) == (3000, 3, 1)
    assert most == LOOKS_AT_ONCE
    assert objects.pool["status"]["free"] == 1000
