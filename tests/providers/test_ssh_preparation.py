"""A host that is prepared before its Machine can join: claimed once, Unfinished until it joins, given back clean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from providers.base.contract import HostRequest, HostState
from providers.ssh import remote
from providers.ssh.provider import SSHProvider
from tests.providers.sshworld import FakeHost, World
from tests.providers.test_ssh_claims import persistent
from tests.providers.test_ssh_faults import controllers, provider, request, world

__all__ = ["controllers", "provider", "world"]


def early(wanted: HostRequest) -> HostRequest:
    return replace(wanted, bootstrap=None, preparation="#!/bin/sh\ntrue\n")


def started(host: FakeHost, unit: str) -> int:
    log = host.root / "systemctl.log"
    return log.read_text().splitlines().count(f"start --no-block {unit}") if log.exists() else 0


async def test_the_machine_joins_on_the_host_that_was_prepared_for_it(world: World, provider: SSHProvider) -> None:
    wanted = request()
    prepared = await provider.create(early(wanted))
    assert prepared.state is HostState.UNFINISHED
    assert [host.state for host in await provider.list()] == [HostState.UNFINISHED]
    host = world.hosts[prepared.name]
    assert (started(host, remote.PREPARE_UNIT), started(host, remote.JOIN_UNIT)) == (1, 0)
    joined = await provider.create(wanted)
    assert joined == replace(prepared, state=HostState.RUNNING)
    assert (started(host, remote.PREPARE_UNIT), started(host, remote.JOIN_UNIT)) == (1, 1)
    assert len(world.claims()) == 1


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("word", ["claim", "prepare"])
async def test_a_connection_that_is_cut_costs_no_second_host_and_no_second_preparation(
    world: World, provider: SSHProvider, word: str, where: str
) -> None:
    await provider.list()
    for host in world.hosts.values():
        host.cut = {word: where}
    name = (await persistent(provider, early(request()))).partition("/")[0]
    assert len(world.claims()) == 1
    assert started(world.hosts[name], remote.PREPARE_UNIT) == 1


async def test_another_controller_goes_on_with_a_host_that_was_prepared(
    world: World, controllers: list[SSHProvider]
) -> None:
    wanted = request()
    prepared = await controllers[0].create(early(wanted))
    joined = await controllers[1].create(wanted)
    assert joined.id == prepared.id
    late = await controllers[0].create(early(wanted))
    assert late.id == prepared.id
    assert started(world.hosts[prepared.name], remote.PREPARE_UNIT) == 1
    assert len(world.claims()) == 1


async def test_a_host_whose_machine_goes_before_it_joined_is_given_back(world: World, provider: SSHProvider) -> None:
    prepared = await provider.create(early(request()))
    await provider.delete(prepared)
    assert [host.state for host in await provider.list()] == [HostState.DELETING]
    cleaning = (world.hosts[prepared.name].home / "clean.sh").read_text()
    assert '"$prepare_unit"' in cleaning
    world.clean()
    assert await provider.list() == ()
