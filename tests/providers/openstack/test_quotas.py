"""How much of the project's quota is used, as Nova counts it."""

from __future__ import annotations

from typing import Any

import pytest

from providers.base.contract import HostIdentity, HostRequest, Quota, ShowsQuotas
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_of

FULL = {"maxTotalInstances": 10, "totalInstancesUsed": 3}


def shows(cloud: FakeCloud) -> ShowsQuotas:
    provider = provider_of(cloud)
    assert isinstance(provider, ShowsQuotas)
    return provider


async def test_what_is_used_follows_the_servers_and_what_is_not_limited_is_left_out(cloud: FakeCloud) -> None:
    provider = provider_of(cloud)
    assert isinstance(provider, ShowsQuotas)
    assert await provider.quotas() == (Quota("instances", 0, 1000), Quota("ram", 0, 51200, "MiB"))
    await provider.create(HostRequest(HostIdentity("u1", "test", "m-1"), CONFIG, "hash-1"))
    assert await provider.quotas() == (Quota("instances", 1, 1000), Quota("ram", 512, 51200, "MiB"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"limits": []},
        {"limits": {"absolute": "none"}},
        {"limits": {"absolute": {"maxTotalInstances": "10", "totalInstancesUsed": 1}}},
        {"limits": {"absolute": {"maxTotalInstances": True, "totalInstancesUsed": 1}}},
        {"limits": {"absolute": {"maxTotalInstances": 10, "totalInstancesUsed": -1}}},
    ],
)
async def test_an_answer_of_another_form_is_no_quota(cloud: FakeCloud, body: Any) -> None:
    cloud.mishaps.append(Mishap("GET", "/limits", status=200, body=body))
    assert await shows(cloud).quotas() == ()


async def test_what_can_be_read_of_an_answer_is_shown(cloud: FakeCloud) -> None:
    absolute = {**FULL, "maxTotalCores": None, "totalCoresUsed": 1}
    cloud.mishaps.append(Mishap("GET", "/limits", status=200, body={"limits": {"absolute": absolute}}))
    assert await shows(cloud).quotas() == (Quota("instances", 3, 10),)
