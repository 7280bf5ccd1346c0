"""How much of the project's quotas is used, as Nova, Neutron and Cinder count it."""

from __future__ import annotations

from typing import Any

import pytest

from providers.base.capabilities import Quota, ShowsQuotas
from providers.base.contract import HostIdentity, HostRequest
from providers.base.errors import ErrorClass, ProviderError
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_of

FULL = {"maxTotalInstances": 10, "totalInstancesUsed": 3}
COMPUTE = ("instances", "cores", "ram")


def shows(cloud: FakeCloud) -> ShowsQuotas:
    provider = provider_of(cloud)
    assert isinstance(provider, ShowsQuotas)
    return provider


async def of_compute(cloud: FakeCloud) -> tuple[Quota, ...]:
    return tuple(quota for quota in await shows(cloud).quotas() if quota.resource in COMPUTE)


def without_others(cloud: FakeCloud) -> None:
    """What is asked next is asked of Nova alone."""
    cloud.catalog = {"compute": cloud.catalog["compute"]}


async def test_what_is_used_follows_the_servers_and_what_is_not_limited_is_left_out(cloud: FakeCloud) -> None:
    provider = provider_of(cloud)
    assert isinstance(provider, ShowsQuotas)
    network, volumes = (Quota("ports", 0, 500), Quota("floatingips", 0, 50)), ()
    cloud.volume_limits = {"maxTotalVolumes": -1, "totalVolumesUsed": 2}
    assert await provider.quotas() == (Quota("instances", 0, 1000), Quota("ram", 0, 51200, "MiB"), *network, *volumes)
    await provider.create(HostRequest(HostIdentity("u1", "test", "m-1"), CONFIG, "hash-1"))
    used = (Quota("instances", 1, 1000), Quota("ram", 512, 51200, "MiB"), Quota("ports", 1, 500))
    assert (await provider.quotas())[:3] == used


async def test_volumes_and_their_gigabytes_are_those_of_cinder(cloud: FakeCloud) -> None:
    cloud.volume_limits |= {"maxTotalVolumeGigabytes": 1000, "totalGigabytesUsed": 40}
    assert (await shows(cloud).quotas())[-2:] == (Quota("volumes", 2, 10), Quota("gigabytes", 40, 1000, "GiB"))


async def test_a_cloud_of_nova_alone_tells_what_that_tells(cloud: FakeCloud) -> None:
    without_others(cloud)
    assert [quota.resource for quota in await shows(cloud).quotas()] == ["instances", "ram"]


@pytest.mark.parametrize("path", ["/quotas/tenant", "/quotas/demo/details"])
@pytest.mark.parametrize("status", [403, 404])
async def test_without_details_of_neutron_the_others_are_told(cloud: FakeCloud, path: str, status: int) -> None:
    cloud.mishaps.append(Mishap("GET", path, status=status))
    assert [quota.resource for quota in await shows(cloud).quotas()] == ["instances", "ram", "volumes"]


@pytest.mark.parametrize("project", [None, "", "../ports", "a/b", 7, {"x": 1}])
async def test_a_project_that_is_no_id_is_not_asked_for(cloud: FakeCloud, project: Any) -> None:
    cloud.mishaps.append(Mishap("GET", "/quotas/tenant", status=200, body={"tenant": {"tenant_id": project}}))
    assert [quota.resource for quota in await shows(cloud).quotas()] == ["instances", "ram", "volumes"]
    assert cloud.requests("GET /quotas/.*") == 1


async def test_what_nova_refuses_is_an_error(cloud: FakeCloud) -> None:
    cloud.mishaps.append(Mishap("GET", "/limits", status=403))
    cloud.catalog.pop("block-storage")
    with pytest.raises(ProviderError) as refused:
        await shows(cloud).quotas()
    assert refused.value.error_class is ErrorClass.UNAUTHORIZED


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
    without_others(cloud)
    cloud.mishaps.append(Mishap("GET", "/limits", status=200, body=body))
    assert await shows(cloud).quotas() == ()


@pytest.mark.parametrize("body", [{}, {"quota": []}, {"quota": {"port": 3}}, {"quota": {"port": {"used": "1"}}}])
async def test_details_of_another_form_are_no_quota(cloud: FakeCloud, body: Any) -> None:
    cloud.mishaps.append(Mishap("GET", "/quotas/demo/details", status=200, body=body))
    assert [quota.resource for quota in await shows(cloud).quotas()] == ["instances", "ram", "volumes"]


async def test_what_can_be_read_of_an_answer_is_shown(cloud: FakeCloud) -> None:
    without_others(cloud)
    absolute = {**FULL, "maxTotalCores": None, "totalCoresUsed": 1}
    cloud.mishaps.append(Mishap("GET", "/limits", status=200, body={"limits": {"absolute": absolute}}))
    assert await of_compute(cloud) == (Quota("instances", 3, 10),)
