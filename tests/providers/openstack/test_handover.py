"""A server is handed to another Machine object: cut at any request it stays one host, and the next run ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from providers.base.capabilities import RebindsHosts
from providers.base.contract import Host, HostIdentity, HostRequest, HostState
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import leftovers, ownership_tags
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_of

OLD = HostIdentity("uid-old", "test", "m-1", "prod", "source")
NEW = HostIdentity("uid-new", "test", "m-1", "prod", "target")
PORTS = [{"network": "nodes", "floatingIP": {"network": "public"}}, {"network": "nodes"}]
REQUESTS = [
    ("POST", r"/servers/[^/]+/metadata"),
    ("PUT", r"/servers/[^/]+/tags/.*"),
    ("DELETE", r"/servers/[^/]+/tags/.*"),
    ("PUT", r"/ports/.*"),
    ("PUT", r"/floatingips/.*"),
    ("DELETE", r"/servers/[^/]+/metadata/.*"),
]


async def made(cloud: FakeCloud) -> Host:
    provider = provider_of(cloud)
    await provider.create(HostRequest(OLD, {**CONFIG, "ports": PORTS}, "hash"))
    for _ in range(10):
        host = await the_host(cloud)
        if host.state is HostState.RUNNING:
            return host
    raise AssertionError("the server does not come up")


async def the_host(cloud: FakeCloud) -> Host:
    """As a process shows it that was just started, and so asks for all parts."""
    (host,) = await provider_of(cloud).list()
    return host


async def handed_over(cloud: FakeCloud, host: Host) -> None:
    provider = provider_of(cloud)
    assert isinstance(provider, RebindsHosts)
    await provider.rebind(host, OLD, NEW)


def uids(cloud: FakeCloud) -> set[str]:
    parts = [*cloud.ports.values(), *cloud.floating_ips.values()]
    return {ownership_tags.uid_of_part(part) for part in parts}


async def test_all_that_was_made_for_it_has_the_new_mark(cloud: FakeCloud) -> None:
    host = await made(cloud)
    held = {one["id"]: one["port_id"] for one in cloud.floating_ips.values()}
    await handed_over(cloud, host)
    (server,) = cloud.servers.values()
    assert uids(cloud) == {NEW.machine_uid}
    assert {one["id"]: one["port_id"] for one in cloud.floating_ips.values()} == held
    assert ownership_tags.tag_of(NEW.machine_uid) in server["tags"]
    assert "uid-old" not in str(server)
    assert ownership_tags.FORMER not in server["metadata"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("method", "path"), REQUESTS)
async def test_cut_at_any_request_it_stays_one_host_and_the_next_run_ends_it(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch, method: str, path: str, after: bool
) -> None:
    host = await made(cloud)
    cloud.mishaps += [Mishap(method, path, after=after) for _ in range(10)]
    with pytest.raises(ProviderError):
        await handed_over(cloud, host)
    cloud.mishaps.clear()
    monkeypatch.setattr(leftovers, "ABANDONED", 0.0)
    between = await the_host(cloud)
    assert (between.id, between.state) == (host.id, host.state)
    assert (len(cloud.ports), len(cloud.floating_ips)) == (2, 1), (
        "parts of a server that is handed over are not left over"
    )
    await handed_over(cloud, host)
    assert await the_host(cloud) == replace(host, machine_uid=NEW.machine_uid, management_cluster="target")
    assert uids(cloud) == {NEW.machine_uid}


async def test_one_that_is_being_handed_over_is_given_to_nobody_else(cloud: FakeCloud) -> None:
    host = await made(cloud)
    cloud.mishaps += [Mishap("PUT", r"/ports/.*", status=403) for _ in range(10)]
    with pytest.raises(ProviderError):
        await handed_over(cloud, host)
    cloud.mishaps.clear()
    provider: Any = provider_of(cloud)
    with pytest.raises(ProviderError) as refused:
        await provider.rebind(host, NEW, replace(NEW, machine_uid="uid-third", management_cluster="third"))
    assert refused.value.error_class is ErrorClass.CONFLICT


async def test_a_process_that_knew_of_no_floating_ip_hands_it_over_too(cloud: FakeCloud) -> None:
    provider = provider_of(cloud)
    assert await provider.list() == ()
    host = await made(cloud)
    assert isinstance(provider, RebindsHosts)
    await provider.rebind(host, OLD, NEW)
    assert uids(cloud) == {NEW.machine_uid}


async def test_a_server_that_is_gone_is_not_found(cloud: FakeCloud) -> None:
    host = await made(cloud)
    cloud.servers.clear()
    with pytest.raises(ProviderError) as refused:
        await handed_over(cloud, host)
    assert refused.value.error_class is ErrorClass.NOT_FOUND
