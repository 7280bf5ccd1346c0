"""Parts of servers that appear where a list is already under way, or long after a request that was not answered."""

from __future__ import annotations

import asyncio

import pytest

from providers.base.contract import HostRequest, HostState, Provider
from providers.base.errors import ErrorClass
from providers.openstack import creation
from tests.providers.openstack.fake_cloud import FakeCloud, Held, Mishap
from tests.providers.openstack.scene import gone, provider_of, refused
from tests.providers.openstack.test_half_made import request, whole


async def failed_beside_a_list(cloud: FakeCloud, provider: Provider, wanted: HostRequest) -> Held:
    """A creation fails while a list is under way that still found no floating IP: the list's answer to that."""
    post, early = Held("POST", "/floatingips"), Held("GET", "/floatingips", after=True)
    async with asyncio.timeout(30):
        cloud.held.append(post)
        attempt = asyncio.create_task(refused(provider, wanted))
        await post.reached.wait()
        cloud.held.append(early)
        listing = asyncio.create_task(provider.list())
        listing.add_done_callback(lambda done: done.result())
        await early.reached.wait()
        post.let_go.set()
        assert (await attempt).error_class is ErrorClass.INTERNAL
    return early


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_list_that_is_under_way_does_not_hide_a_floating_ip_that_is_made_meanwhile(
    cloud: FakeCloud, after: bool
) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/floatingips", status=500, after=after))
    early = await failed_beside_a_list(cloud, provider, wanted)
    second = asyncio.create_task(provider.create(wanted))
    early.let_go.set()
    await second
    assert whole(cloud) == [1, 2, 2, 2]


async def test_a_floating_ip_that_such_a_list_missed_goes_with_its_machine(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=500))
    early = await failed_beside_a_list(cloud, provider, wanted)
    early.let_go.set()
    (left,) = await provider.list()
    await gone(provider, left)
    assert whole(cloud) == [0, 0, 0, 0]


async def test_a_floating_ip_that_another_program_made_goes_with_its_server(cloud: FakeCloud) -> None:
    """As that of a Machine that was moved here from another management cluster."""
    provider = provider_of(cloud)
    await provider.list()
    await provider_of(cloud).create(request())
    (host,) = await provider.list()
    await gone(provider, host)
    assert whole(cloud) == [0, 0, 0, 0]


async def test_ports_of_a_request_that_was_lost_on_its_way_are_seen_when_they_come(cloud: FakeCloud) -> None:
    """Its Machine may have gone meanwhile, so no creation asks for them."""
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/ports", status=503))
    assert (await refused(provider, wanted)).error_class is ErrorClass.UNAVAILABLE
    assert await provider.list() == ()
    (body,) = [body for method, path, body in cloud.bodies if (method, path) == ("POST", "/ports")]
    for desired in body["ports"]:
        cloud.neutron.make_port(desired)
    (left,) = await provider.list()
    assert (left.machine_uid, left.state) == (wanted.identity.machine_uid, HostState.UNFINISHED)
    await gone(provider, left)
    assert whole(cloud) == [0, 0, 0, 0]


async def test_lists_ask_for_parts_no_longer_than_a_lost_request_may_take(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "UNSURE", 0.0)
    provider = provider_of(cloud)
    cloud.mishaps.append(Mishap("POST", "/ports", status=503))
    await refused(provider, request())
    await provider.list()
    cloud.asked.clear()
    await provider.list()
    assert (cloud.asked["GET /servers/detail"], cloud.asked["GET /ports"], cloud.asked["GET /floatingips"]) == (1, 0, 0)


async def test_what_a_server_leaves_that_somebody_else_deleted_goes_with_its_machine(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    host = await provider.create(wanted)
    await provider.list()
    cloud.servers[host.id] |= {"OS-EXT-STS:task_state": "deleting", "steps": 0}
    await provider.list()
    (left,) = await provider.list()
    assert (left.machine_uid, left.state) == (wanted.identity.machine_uid, HostState.UNFINISHED)
    await gone(provider, left)
    assert whole(cloud) == [0, 0, 0, 0]
