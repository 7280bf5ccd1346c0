"""Where no direct way leads to etcd's members, they are asked by their provider's way to the hosts."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from controllers.kernel.actions import RemoveEtcdMember
from controllers.kernel.etcd import EtcdHost, EtcdUnread
from hack import credentials
from nodewright.runtime.etcd.gateway import Gateway
from nodewright.runtime.etcd.reading import RemovalRefused, best_member, read, remove
from nodewright.runtime.etcd.snapshot_stream import SnapshotReader
from nodewright.runtime.etcd.ways import Way, Ways
from providers.base.contract import Host, HostState
from providers.base.errors import ErrorClass, ProviderError
from tests.runtime.etcd.test_reading import (
    CLUSTER,
    DEADLINE,
    Members,
    context_of,
    members,
    now,
    until_healthy,
)

__all__ = ["members"]
REASON = "host m0 (10.0.0.1:22) does not answer"


class _Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        return await self._reader.read(4096)

    async def write(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


class Hosts:
    """A provider with a way to its hosts, which are called as their addresses. ``leads``: to another one instead."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.leads: dict[str, str] = {}
        self.shut = False

    async def connect(self, host: Host, port: int) -> _Stream:
        self.asked.append((host.id, port))
        if self.shut:
            raise ProviderError(ErrorClass.TIMEOUT, REASON)
        return _Stream(*await asyncio.open_connection(self.leads.get(host.id, host.id), port))

    def locate(self, uid: str, namespace: str) -> Any:
        return (self, Host(uid, uid, uid, "", HostState.RUNNING, "")) if namespace == CLUSTER.namespace else None


def blocked(_info: Any) -> Any:
    """Sockets of a process that a firewall keeps away from all members."""
    raise OSError(errno.ECONNREFUSED, "refused")


def ways_to(hosts: Hosts, members: tuple[EtcdHost, ...], port: int) -> Ways:
    ways = Ways(hosts.locate, CLUSTER.namespace, port)
    ways.know(EtcdHost(host.name, host.address, host.address) for host in members)
    return ways


async def _removed(gateway: Gateway, members: Members, action: RemoveEtcdMember) -> bool:
    """etcd takes none out for some seconds after its start."""
    try:
        await remove(gateway, members.hosts, action, members.client)
    except RemovalRefused:
        return False
    return True


@pytest.mark.realplane
async def test_members_behind_a_firewall_are_read_saved_and_removed_by_their_providers_way(members: Members) -> None:
    hosts = Hosts()
    ways = ways_to(hosts, members.hosts, members.client)
    async with Gateway(context_of(members.ca), blocked, ways) as gateway:
        seen = await until_healthy(gateway, members, 3)
        url, status = await best_member(gateway, members.hosts, members.client)
        snapshot = SnapshotReader(gateway.snapshot(url))
        assert sum([len(part) async for part in snapshot.parts()]) == snapshot.size > status.revision
        everybody = frozenset(member.id for member in seen.members)
        last = seen.members[-1].id
        action = RemoveEtcdMember(CLUSTER, last, everybody, everybody - {last}, "")
        async with asyncio.timeout(DEADLINE):
            while not await _removed(gateway, members, action):  # noqa: ASYNC110  (etcd wakes nobody here)
                await asyncio.sleep(0.1)
        assert len((await until_healthy(gateway, members, 2)).members) == 2
    assert {port for _, port in hosts.asked} == {members.client}


@pytest.mark.realplane
async def test_where_the_direct_way_is_open_no_provider_is_asked(members: Members) -> None:
    hosts = Hosts()
    ways = ways_to(hosts, members.hosts, members.client)
    async with Gateway(context_of(members.ca)) as gateway:
        await until_healthy(gateway, members, 3)  # while they start, nothing listens
    async with Gateway(context_of(members.ca), ways=ways) as gateway:
        await until_healthy(gateway, members, 3)
    assert not hosts.asked


@pytest.mark.realplane
async def test_a_way_that_leads_to_another_member_is_found_out_by_its_certificate(members: Members) -> None:
    hosts = Hosts()
    second, third = (host.address for host in members.hosts[1:])
    hosts.leads[second] = third  # the first one's address is in every certificate
    async with Gateway(context_of(members.ca), blocked, ways_to(hosts, members.hosts, members.client)) as gateway:
        seen = await until_healthy(gateway, members, 2)
    [other] = [member for member in seen.members if not member.healthy]
    assert (other.name, other.why) == ("m1", "its certificate is not one of etcd's CA for this address")


async def test_where_neither_way_is_open_both_reasons_are_said_and_the_second_is_not_tried_at_once_again() -> None:
    hosts = Hosts()
    hosts.shut = True
    known = (EtcdHost("m0", "127.0.0.1"),)
    ways = ways_to(hosts, known, 2379)
    async with Gateway(context_of(credentials.issue("etcd-ca")), blocked, ways) as gateway:
        found = await read(gateway, known, now())
    assert isinstance(found, EtcdUnread)
    url = "https://127.0.0.1:2379"
    assert found.why == f"{url}: no connection; by its provider: {REASON}; {url}: no connection"
    assert hosts.asked == [("127.0.0.1", 2379)]


async def test_no_channel_leads_to_another_port_another_address_or_another_namespace() -> None:
    hosts, known = Hosts(), (EtcdHost("m0", "10.0.0.1"), EtcdHost("m1", "10.0.0.2", ""))
    ways = ways_to(hosts, known[:1], 2379)
    assert ways.order("10.0.0.1", 2379) == (Way.DIRECT, Way.CHANNEL)
    assert ways.order("10.0.0.1", 22) == (Way.DIRECT,)
    assert ways.order("10.0.0.2", 2379) == (Way.DIRECT,)
    stranger = Ways(hosts.locate, "another", 2379)
    stranger.know((EtcdHost("m0", "10.0.0.1", "10.0.0.1"),))
    assert stranger.order("10.0.0.1", 2379) == (Way.DIRECT,)
    nobody = Ways(lambda _uid, _namespace: (object(), object()), CLUSTER.namespace, 2379)  # type: ignore[arg-type,return-value]
    nobody.know((EtcdHost("m0", "10.0.0.1", "10.0.0.1"),))
    assert nobody.order("10.0.0.1", 2379) == (Way.DIRECT,)


async def test_a_way_that_was_needed_is_taken_first_until_the_host_goes() -> None:
    ways = ways_to(Hosts(), (EtcdHost("m0", "10.0.0.1"),), 2379)
    ways.worked("10.0.0.1", Way.CHANNEL, tried=True)
    assert ways.order("10.0.0.1", 2379) == (Way.CHANNEL, Way.DIRECT)
    ways.know(())
    ways.know((EtcdHost("m0", "10.0.0.1", "10.0.0.1"),))
    assert ways.order("10.0.0.1", 2379) == (Way.DIRECT, Way.CHANNEL)
    ways.worked("10.0.0.1", Way.CHANNEL, tried=True)
    ways.shut("10.0.0.1")
    assert ways.order("10.0.0.1", 2379) == (Way.DIRECT,)
