"""Servers come and go, answers are late, requests go wrong at random: nothing is there twice, nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import pytest

from providers.base.contract import HostRequest, HostState, Provider
from providers.base.errors import ProviderError
from providers.openstack import creation, ownership_tags
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import provider_of
from tests.providers.openstack.test_half_made import request, whole

MOST_MACHINES, ATTEMPTS = 6, 100
SECONDS = 60.0
UNSURE = 0.3
"""The fake cloud does nothing after it has cut a connection."""
DELAYS = (0.0, 0.0, 0.002, 0.01, 0.04)
REQUESTS = (
    *(2 * [("POST", "/ports"), ("POST", "/trunks"), ("POST", "/floatingips"), ("POST", "/servers")]),
    ("DELETE", "/ports/.*"), ("DELETE", "/floatingips/.*"), ("DELETE", "/servers/.*"),
    ("GET", "/ports"), ("GET", "/floatingips"), ("GET", "/servers/detail"),
)  # fmt: skip
SCHEDULES = (*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60)))


def mishaps(random: Random) -> list[Mishap]:
    """Status 0 cuts the connection. A floating IP that is made without an answer is in each."""
    first = Mishap("POST", "/floatingips", status=500, after=True)
    wrong = [random.choice(REQUESTS) for _ in range(random.randrange(4, 14))]
    return [first, *(Mishap(*one, random.choice((500, 503, 0)), after=random.random() < 0.5) for one in wrong)]


@contextlib.asynccontextmanager
async def listed_all_the_time(provider: Provider, random: Random) -> AsyncIterator[None]:
    async def listing() -> None:
        while True:
            with contextlib.suppress(ProviderError):
                await provider.list()
            await asyncio.sleep(random.random() * 0.05)

    tasks = [asyncio.create_task(listing()) for _ in range(2)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def made(provider: Provider, wanted: HostRequest, attempts: int) -> None:
    """After so many attempts at most; its Machine may have gone before."""
    for _ in range(attempts):
        try:
            await provider.create(wanted)
            return
        except ProviderError as error:
            await asyncio.sleep(min(UNSURE, error.retry_after or 0.01))


async def all_gone(provider: Provider, cloud: FakeCloud) -> None:
    while any(whole(cloud)):
        with contextlib.suppress(ProviderError):
            for host in await provider.list():
                if host.state is not HostState.DELETING:
                    await provider.delete(host)


@pytest.mark.parametrize("seed", SCHEDULES)
async def test_nothing_is_there_twice_and_nothing_is_left(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(creation, "UNSURE", UNSURE)
    random = Random(seed)
    provider, wanted = provider_of(cloud), [request() for _ in range(random.randint(1, MOST_MACHINES))]
    stay = {one.identity.machine_uid for one in wanted if random.random() < 0.7}
    cloud.delay = lambda: random.choice(DELAYS)
    cloud.mishaps += mishaps(random)
    async with asyncio.timeout(SECONDS):
        async with listed_all_the_time(provider, random):
            await asyncio.gather(
                *(made(provider, one, ATTEMPTS if one.identity.machine_uid in stay else 2) for one in wanted)
            )
        servers = Counter(map(ownership_tags.uid_of_server, cloud.servers.values()))
        assert stay <= set(servers), "each that stays has a server"
        assert set(servers.values()) <= {1}
        held = Counter(one["port_id"] for one in cloud.floating_ips.values())
        assert set(held.values()) <= {1}, "a second floating IP for one port"
        await all_gone(provider, cloud)
