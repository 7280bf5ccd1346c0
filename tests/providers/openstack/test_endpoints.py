"""Endpoints of Clusters on the fake cloud: the contract, and a crash after each request.

Floating IPs are held to a real cloud by ``tests/openstack/test_endpoints.py``. Octavia is not: none was at hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from providers.base.endpoints import EndpointMember, EndpointRequest, MakesEndpoints
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import endpoints, ownership_tags
from providers.openstack.endpoints import Place, holder
from tests.providers.openstack.endpoint_scene import FLOATING_IP, FloatingIPContract
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import provider_of

BALANCER: dict[str, Any] = {**FLOATING_IP, "endpoint": {"loadBalancer": {"subnet": "nodes"}}}
BOTH: dict[str, Any] = {
    **FLOATING_IP,
    "endpoint": {"loadBalancer": {"subnet": "nodes", "floatingIP": {"network": "public"}}},
}
FORMS = {"floating IP": FLOATING_IP, "load balancer": BALANCER, "load balancer with a floating IP": BOTH}


class OnTheFakeCloud(FloatingIPContract):
    @pytest_asyncio.fixture(autouse=True)
    async def _cloud(self) -> AsyncIterator[None]:
        async with FakeCloud() as self.cloud:
            self.login = self.cloud.login()
            yield


class TestAFloatingIP(OnTheFakeCloud):
    """As on a real one."""


class TestALoadBalancer(OnTheFakeCloud):
    cluster_config: ClassVar[dict[str, Any]] = BALANCER

    async def served_by(self, host: str) -> set[str]:
        octavia = self.cloud.octavia
        assert octavia is not None
        (balancer,) = [one for one in octavia.balancers.values() if one["vip_address"] == host]
        return {one["name"] for one in octavia.members[balancer["pools"][0]["id"]]}

    async def left(self, cluster_uid: str) -> int:
        return things(self.cloud, cluster_uid)


class TestALoadBalancerWithAFloatingIP(TestALoadBalancer):
    cluster_config: ClassVar[dict[str, Any]] = BOTH

    async def served_by(self, host: str) -> set[str]:
        octavia = self.cloud.octavia
        assert octavia is not None
        (address,) = [one for one in self.cloud.floating_ips.values() if one["floating_ip_address"] == host]
        (balancer,) = [one for one in octavia.balancers.values() if one["vip_port_id"] == address["port_id"]]
        return await super().served_by(balancer["vip_address"])


def things(cloud: FakeCloud, uid: str = "c-1") -> int:
    mark = ownership_tags.cluster_tag_of(uid)
    assert cloud.octavia is not None
    there = [*cloud.floating_ips.values(), *cloud.octavia.balancers.values()]
    return sum(one["description"] == mark for one in there)


def opened(cloud: FakeCloud) -> MakesEndpoints:
    made = provider_of(cloud)
    assert isinstance(made, MakesEndpoints)
    return made


def asked(config: dict[str, Any], *members: EndpointMember, host: str = "") -> EndpointRequest:
    return EndpointRequest("c-1", "default", "prod", config, members, host)


def a_machine(cloud: FakeCloud, uid: str) -> EndpointMember:
    network = cloud.neutron.networks["nodes"]
    cloud.neutron.make_port({"network_id": network, "name": f"{uid}-0", "description": ownership_tags.tag_of(uid)})
    return EndpointMember(uid)


async def until_made(provider: MakesEndpoints, request: EndpointRequest) -> str:
    for _ in range(20):
        found = await provider.ensure_endpoint(request)
        if found.host and not found.waits:
            return found.host
    raise AssertionError(found)


async def until_gone(provider: MakesEndpoints, request: EndpointRequest) -> None:
    for _ in range(20):
        if await provider.remove_endpoint(request):
            return
    raise AssertionError("it does not go")


async def tried(work: Any) -> bool:
    """Whether it came to its end; the connection is cut where it does not."""
    try:
        await work
    except ProviderError:
        return False
    return True


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("form", FORMS)
async def test_a_crash_at_any_request_leaves_nothing_behind_and_makes_nothing_twice(
    cloud: FakeCloud, form: str, after: bool
) -> None:
    """Each change of the cloud is cut, before or after it was carried out; a new process goes on."""
    request = asked(FORMS[form], a_machine(cloud, "m-1"))
    for method in ("POST", "PUT"):
        cloud.mishaps.append(Mishap(method, r"/(floatingips|lbaas).*", after=after))
    hosts = set()
    for _ in range(30):
        try:
            found = await opened(cloud).ensure_endpoint(request)
        except ProviderError:
            continue
        hosts |= {found.host} - {""}
        if found.host and not found.waits:
            break
    assert not cloud.mishaps
    assert len(hosts) == 1
    assert things(cloud) == (2 if FORMS[form] is BOTH else 1)

    cloud.mishaps.append(Mishap("DELETE", r"/(floatingips|lbaas).*", after=after))
    for _ in range(30):
        if await tried(until_gone(opened(cloud), request)):
            break
    assert not cloud.mishaps
    assert things(cloud) == 0


async def test_the_same_process_waits_for_a_request_that_nobody_answered(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.mishaps.append(Mishap("POST", "/floatingips"))
    provider, request = opened(cloud), asked(FLOATING_IP)
    assert not await tried(provider.ensure_endpoint(request))
    with pytest.raises(ProviderError, match="not answered"):
        await provider.ensure_endpoint(request)
    assert cloud.requests("POST /floatingips") == 1
    assert not await provider.remove_endpoint(request), "it may still come"
    monkeypatch.setattr(endpoints, "UNSURE", 0.0)
    assert (await provider.ensure_endpoint(request)).host
    assert things(cloud) == 1


async def test_of_two_the_one_that_the_cluster_was_told_stays(cloud: FakeCloud) -> None:
    provider, member = opened(cloud), a_machine(cloud, "m-1")
    host = await until_made(provider, asked(FLOATING_IP, member))
    cloud.neutron.make_floating_ip({"description": ownership_tags.cluster_tag_of("c-1"), "created_at": "2020"})
    assert await until_made(provider, asked(FLOATING_IP, member, host=host)) == host
    assert [one["floating_ip_address"] for one in cloud.floating_ips.values()] == [host]


async def test_addresses_and_balancers_of_others_are_left_alone(cloud: FakeCloud) -> None:
    other = cloud.neutron.make_floating_ip({"description": ownership_tags.cluster_tag_of("c-2")})
    provider = opened(cloud)
    for config in FORMS.values():
        request = asked(config, a_machine(cloud, f"m-{len(cloud.ports)}"))
        await until_made(provider, request)
        await until_gone(provider, request)
    assert list(cloud.floating_ips.values()) == [other]


async def test_a_load_balancer_that_fails_before_anybody_knows_it_is_made_again(cloud: FakeCloud) -> None:
    assert cloud.octavia is not None
    cloud.octavia.broken = True
    provider, request = opened(cloud), asked(BALANCER, a_machine(cloud, "m-1"))
    with pytest.raises(ProviderError, match="ERROR"):
        await until_made(provider, request)
    for _ in range(3):
        await tried(provider.ensure_endpoint(request))
    assert await until_made(provider, request)
    assert things(cloud) == 1


async def test_it_is_asked_whether_an_api_server_is_ready_where_the_provider_can() -> None:
    async with FakeCloud() as cloud:
        await until_made(opened(cloud), asked(BALANCER, a_machine(cloud, "m-1")))
        (body,) = [
            body["loadbalancer"] for method, path, body in cloud.bodies if path == "/lbaas/loadbalancers" and body
        ]
        (listener,) = body["listeners"]
        assert listener["protocol_port"] == 6443
        assert listener["default_pool"]["healthmonitor"]["url_path"] == "/readyz"


async def test_a_cloud_without_octavia_says_so() -> None:
    async with FakeCloud(octavia=False) as cloud:
        with pytest.raises(ProviderError) as caught:
            await opened(cloud).ensure_endpoint(asked(BALANCER))
        assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
        assert "load-balancer" in caught.value.message or "no such service" in caught.value.message


async def test_a_config_with_both_forms_is_refused_by_name(cloud: FakeCloud) -> None:
    config = {**FLOATING_IP, "endpoint": {**FLOATING_IP["endpoint"], **BALANCER["endpoint"]}}
    with pytest.raises(ProviderError, match="endpoint: exactly one"):
        await opened(cloud).ensure_endpoint(asked(config))


PLACES = {uid: Place(f"port-{uid}", "10.0.0.1") for uid in ("a", "b", "c")}


@pytest.mark.parametrize(
    ("ready", "now", "expected"),
    [
        ("", "", "port-a"),
        ("", "port-b", "port-b"),
        ("b", "port-a", "port-b"),
        ("ab", "port-b", "port-b"),
        ("ab", "port-gone", "port-a"),
        ("d", "port-c", "port-c"),
    ],
)
def test_a_floating_ip_stays_unless_its_machine_is_not_ready_and_another_one_is(
    ready: str, now: str, expected: str
) -> None:
    members = [EndpointMember(uid, uid in ready) for uid in "abcd"]
    assert holder(members, PLACES, now) == expected


def test_without_a_host_nobody_has_the_address() -> None:
    assert holder([EndpointMember("d", ready=True)], PLACES, "") == ""
