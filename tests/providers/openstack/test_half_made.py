"""Servers of many parts that are made in several attempts: each goes on where the last one stopped."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import pytest

from providers.base.contract import HostIdentity, HostRequest, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import creation, leftovers
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_of, refused

WHOLE: dict[str, Any] = {
    **CONFIG,
    "ports": [
        {"network": "nodes", "trunk": True, "floatingIP": {"network": "public"}},
        {"network": "nodes", "trunk": True, "floatingIP": {"network": "public"}},
    ],
}
STEPS = ("/ports", "/trunks", "/trunks", "/floatingips", "/floatingips", "/servers")


def request(**config: Any) -> HostRequest:
    uid = str(uuid.uuid4())
    return HostRequest(HostIdentity(uid, "test", f"m-{uid[:4]}-0", "story"), {**WHOLE, **config}, "hash-1")


def whole(cloud: FakeCloud) -> list[int]:
    return [len(found) for found in (cloud.servers, cloud.ports, cloud.trunks, cloud.floating_ips)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_each_attempt_gets_one_step_further_and_says_so(cloud: FakeCloud, after: bool) -> None:
    """500 at every step in turn: six attempts fail, and none of them in vain."""
    provider, wanted = provider_of(cloud), request()
    failed: list[bool] = []
    for step in dict.fromkeys(STEPS):
        cloud.mishaps.append(Mishap("POST", step, status=500, after=after))
        failed.append((await refused(provider, wanted)).progressed)
    host = await provider.create(wanted)
    assert failed == [False, not after, True, True]
    assert whole(cloud) == [1, 2, 2, 2]
    assert list(cloud.servers) == [host.id]


async def test_a_service_that_gave_up_is_asked_again_at_once_and_silence_is_waited_out(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=500))
    assert (await refused(provider, wanted)).error_class is ErrorClass.INTERNAL
    cloud.mishaps.append(Mishap("POST", "/servers", status=503))
    assert (await refused(provider, wanted)).error_class is ErrorClass.UNAVAILABLE, "asked again at once"
    waiting = await refused(provider, wanted)
    assert waiting.error_class is ErrorClass.TIMEOUT
    assert 0 < (waiting.retry_after or 0) <= creation.UNSURE
    assert cloud.asked["POST /servers"] == 2


async def test_what_is_refused_for_good_is_no_progress(cloud: FakeCloud) -> None:
    cloud.nova.quota = 0
    error = await refused(provider_of(cloud), request())
    assert (error.error_class, error.progressed) == (ErrorClass.QUOTA_EXCEEDED, False)
    assert whole(cloud) == [0, 0, 0, 0]


async def test_what_was_made_so_far_is_kept_for_the_next_attempt_and_shown(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/floatingips", status=500))
    await refused(provider, wanted)
    (left,) = await provider.list()
    assert (left.machine_uid, left.state) == (wanted.identity.machine_uid, HostState.UNFINISHED)
    assert left.name == wanted.identity.name
    monkeypatch.setattr(leftovers, "ABANDONED", 0.0)
    assert await provider.list() == ()
    assert whole(cloud) == [0, 0, 0, 0], "nobody came back for it"


async def test_a_machine_that_goes_takes_along_what_was_made_so_far(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=500))
    await refused(provider, wanted)
    (left,) = await provider.list()
    await provider.delete(left)
    assert await provider.list() == ()
    assert whole(cloud) == [0, 0, 0, 0]


async def test_a_successor_waits_for_what_its_predecessor_may_have_asked_for_and_then_goes_on(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=503))
    await refused(provider_of(cloud), wanted)
    successor = provider_of(cloud)
    (left,) = await successor.list()
    assert left.state is HostState.UNFINISHED
    waiting = await refused(successor, wanted)
    assert (waiting.error_class, waiting.progressed) == (ErrorClass.TIMEOUT, False)
    assert 0 < (waiting.retry_after or 0) <= creation.UNSURE
    monkeypatch.setattr(creation, "UNSURE", 0.0)
    await successor.create(wanted)
    assert whole(cloud) == [1, 2, 2, 2]
    assert (cloud.asked["POST /ports"], cloud.asked["POST /floatingips"]) == (1, 2)


async def test_parts_of_an_earlier_config_are_not_used_for_another_one(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=500))
    await refused(provider, wanted)
    edited = replace(wanted, config={**WHOLE, "ports": [{"network": "public"}]}, spec_hash="hash-2")
    assert (await refused(provider, edited)).error_class is ErrorClass.CONFLICT
    await provider.create(edited)
    assert whole(cloud) == [1, 1, 0, 0]
    (body,) = [body for method, path, body in cloud.bodies if (method, path) == ("POST", "/ports")][1:]
    assert [port["network_id"] for port in body["ports"]] == [next(iter(cloud.ports.values()))["network_id"]]


async def test_servers_of_many_parts_come_up_in_bad_times_without_starting_over(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), [request() for _ in range(8)]
    for step in STEPS:
        cloud.mishaps += [Mishap("POST", step, status=500), Mishap("POST", step, status=500, after=True)]

    failed = []

    async def until_made(one: HostRequest) -> None:
        for _ in range(len(cloud.mishaps) + 1):
            try:
                await provider.create(one)
                return
            except ProviderError as error:
                failed.append(error.error_class)

    await asyncio.gather(*(until_made(one) for one in wanted))
    assert failed == [ErrorClass.INTERNAL] * 2 * len(STEPS)
    assert whole(cloud) == [8, 16, 16, 16]
