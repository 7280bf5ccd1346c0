"""A server is booted anew once for each attempt, softly first and hard the next time, whatever ends in between."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from providers.base.capabilities import RebootsHosts
from providers.base.contract import Host, HostIdentity, HostRequest, HostState, Provider
from providers.base.errors import ErrorClass, ProviderError
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_with

UID = "5b1d2f0e-0000-4000-8000-000000000001"
REQUEST = HostRequest(HostIdentity(UID, "default", "m-1", "", "here"), CONFIG, "hash")
ACTION = "/servers/.*/action"


@pytest_asyncio.fixture
async def cloud() -> AsyncIterator[FakeCloud]:
    async with FakeCloud() as made:
        yield made


def opened(cloud: FakeCloud) -> Provider:
    """A process that knows nothing of those before it."""
    return provider_with(cloud={"clouds.yaml": cloud.login()})


async def listed(provider: Provider) -> Host:
    (host,) = await provider.list()
    return host


async def running(provider: Provider) -> Host:
    await provider.create(REQUEST)
    while (host := await listed(provider)).state is not HostState.RUNNING:
        pass
    return host


async def order(provider: Provider, host: Host, attempt: str) -> None:
    assert isinstance(provider, RebootsHosts)
    await provider.reboot(host, attempt)


async def seen(provider: Provider, attempt: str) -> Host:
    for _ in range(10):
        if (host := await listed(provider)).rebooted == attempt:
            return host
    raise AssertionError(f"{attempt} was not seen")


def kinds(cloud: FakeCloud, host: Host) -> list[str]:
    """Of its reboots, in their order."""
    return [each["kind"] for each in reversed(cloud.nova.reboots.get(host.id, []))]


async def test_the_first_attempt_is_soft_and_the_next_one_hard(cloud: FakeCloud) -> None:
    provider = opened(cloud)
    host = await running(provider)
    await order(provider, host, "one")
    await seen(provider, "one")
    await order(provider, host, "two")
    await seen(provider, "two")
    assert kinds(cloud, host) == ["SOFT", "HARD"]


@pytest.mark.parametrize("status", ["SHUTOFF", "ERROR"])
async def test_a_server_that_does_not_run_is_rebooted_hard_at_once(cloud: FakeCloud, status: str) -> None:
    provider = opened(cloud)
    host = await running(provider)
    cloud.servers[host.id]["status"] = status
    await order(provider, host, "one")
    await seen(provider, "one")
    assert kinds(cloud, host) == ["HARD"]


@pytest.mark.parametrize("after", [False, True], ids=["before it was ordered", "once it was ordered"])
async def test_a_process_that_ends_between_the_record_and_the_answer_is_followed_by_one_reboot(
    cloud: FakeCloud, after: bool
) -> None:
    provider = opened(cloud)
    host = await running(provider)
    cloud.mishaps.append(Mishap("POST", ACTION, status=500, after=after))
    with pytest.raises(ProviderError):
        await order(provider, host, "one")
    other = opened(cloud)
    await order(other, host, "one")
    await order(other, host, "one")
    await seen(other, "one")
    await order(other, host, "one")
    assert kinds(cloud, host) == ["SOFT"]


async def test_a_reboot_that_nova_could_not_do_is_not_seen_and_the_next_attempt_is_hard(cloud: FakeCloud) -> None:
    provider = opened(cloud)
    host = await running(provider)
    cloud.nova.reboots_fail = True
    await order(provider, host, "one")
    assert [(await listed(provider)).rebooted for _ in range(3)] == ["", "", ""]
    cloud.nova.reboots_fail = False
    await order(provider, host, "two")
    await seen(provider, "two")
    assert kinds(cloud, host) == ["SOFT", "HARD"]


async def test_reboots_by_others_before_are_none_of_ours(cloud: FakeCloud) -> None:
    provider = opened(cloud)
    host = await running(provider)
    cloud.nova.reboots[host.id] = [{"action": "reboot", "message": None, "kind": "by hand"}]
    assert (await listed(provider)).rebooted == ""
    await order(provider, host, "one")
    await seen(provider, "one")
    assert kinds(cloud, host) == ["by hand", "SOFT"]


async def test_a_list_asks_only_about_servers_whose_reboot_is_waited_for(cloud: FakeCloud) -> None:
    provider = opened(cloud)
    host = await running(provider)
    await listed(provider)
    assert not [path for path in cloud.asked if "os-instance-actions" in path]
    await order(provider, host, "one")
    await seen(provider, "one")
    cloud.asked.clear()
    await listed(provider)
    assert not [path for path in cloud.asked if "os-instance-actions" in path]


async def test_what_others_wrote_into_the_record_is_no_reboot(cloud: FakeCloud) -> None:
    provider = opened(cloud)
    host = await running(provider)
    for text in ("rubbish", "SOFT -1 one", "SOFT ٣ one", "SOFT 1", "SOFT 99999999999999999999 one"):
        cloud.servers[host.id]["metadata"]["nodewright-reboot"] = text
        assert (await listed(provider)).rebooted == ""


async def test_another_machines_server_is_not_rebooted(cloud: FakeCloud) -> None:
    provider = opened(cloud)
    host = await running(provider)
    cloud.servers[host.id]["metadata"]["nodewright-machine-uid"] = "another"
    with pytest.raises(ProviderError) as caught:
        await order(provider, host, "one")
    assert caught.value.error_class is ErrorClass.NOT_FOUND
    assert kinds(cloud, host) == []
