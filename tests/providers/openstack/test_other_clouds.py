"""Clouds as their operators set them up: short pages, zones that close, quotas that are told late, tokens that end."""

from __future__ import annotations

import base64
import gzip
import uuid
from typing import Any

from providers.base.contract import HostIdentity, HostRequest, HostState
from providers.base.errors import ErrorClass
from providers.openstack.requests import USER_DATA_LIMIT
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, provider_of, refused


def request(**config: Any) -> HostRequest:
    uid = str(uuid.uuid4())
    return HostRequest(HostIdentity(uid, "test", f"m-{uid[:4]}", "story"), {**CONFIG, **config}, "hash-1")


async def test_a_cloud_with_short_pages_loses_no_host() -> None:
    """Nova's max_limit and Neutron's pagination_max_limit do that, and a host that is missing counts as gone."""
    async with FakeCloud(most_per_page=3) as cloud:
        provider, wanted = provider_of(cloud), [request(flavor="m1.medium") for _ in range(8)]
        for one in wanted:
            await provider.create(one)
        uids = {one.identity.machine_uid for one in wanted}
        assert {host.machine_uid for host in await provider.list()} == uids
        successor = provider_of(cloud)
        assert {host.machine_uid for host in await successor.list()} == uids
        assert (await successor.create(wanted[-1])).machine_uid == wanted[-1].identity.machine_uid
        assert len(cloud.servers) == len(cloud.ports) == 8
        assert (await provider.shape({**CONFIG, "flavor": "g1.small"})).capacity["nvidia.com/gpu"] == "2"


async def test_a_zone_that_the_cloud_refuses_does_not_take_half_of_all_servers_down(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), [request(availabilityZones=["az9", "az1"]) for _ in range(4)]
    error = await refused(provider, wanted[0])
    assert (error.error_class, "availability zone" in error.message) == (ErrorClass.NOT_FOUND, True)
    assert [(await provider.create(one)).failure_domain for one in wanted] == ["az1"] * 4


async def test_the_zone_of_a_shape_is_that_of_the_failure_domain_unless_the_configuration_names_it(
    cloud: FakeCloud,
) -> None:
    """A Machine's failure domain counts before ``availabilityZones``; what ``shape.labels`` says counts before both."""
    zone, provider = "topology.kubernetes.io/zone", provider_of(cloud)
    listed = await provider.shape({**CONFIG, "availabilityZones": ["az1"]})
    said = await provider.shape({**CONFIG, "shape": {"labels": {zone: "az2"}}})
    assert (listed.labels[zone], listed.failure_domain_label) == ("az1", zone)
    assert (said.labels[zone], said.failure_domain_label) == ("az2", "")


async def test_a_failure_domain_that_the_cloud_refuses_is_told_and_kept(cloud: FakeCloud) -> None:
    wanted = HostRequest(HostIdentity("u1", "test", "m-1"), CONFIG, "hash-1", failure_domain="az9")
    provider = provider_of(cloud)
    for _ in range(2):
        assert (await refused(provider, wanted)).error_class is ErrorClass.NOT_FOUND


async def test_a_quota_that_only_the_build_runs_into_is_a_quota(cloud: FakeCloud) -> None:
    """Volumes are made when the server is built: Cinder's quota comes as a fault of the server."""
    provider, wanted = provider_of(cloud), request(bootVolume={"sizeGiB": 10})
    host = await provider.create(wanted)
    text = (
        "Build of instance aborted: VolumeSizeExceedsAvailableQuota: Requested volume exceeds allowed gigabytes quota"
    )
    cloud.servers[host.id] |= {"status": "ERROR", "fault": {"code": 500, "message": text}, "steps": 0}
    (shown,) = await provider.list()
    assert shown.state is HostState.DELETING
    for _ in range(4):
        await provider.list()
    error = await refused(provider, wanted)
    assert error.error_class is ErrorClass.QUOTA_EXCEEDED
    assert "gigabytes" in error.message
    assert (await provider.create(wanted)).id != host.id
    assert len(cloud.servers) == len(cloud.ports) == 1


async def test_a_network_without_addresses_keeps_nothing_waiting(cloud: FakeCloud) -> None:
    body = {"NeutronError": {"message": "No more IP addresses available on network f1.", "type": "IpAddressGeneration"}}
    ports = [{"network": "nodes", "floatingIP": {"network": "public"}}]
    cloud.mishaps.append(
        Mishap("POST", "/floatingips", status=409, body=body, headers={"x-openstack-request-id": "req-1"})
    )
    error = await refused(provider_of(cloud), request(ports=ports))
    assert error.error_class is ErrorClass.STOCK_OUT
    assert "No more IP addresses" in error.message
    assert cloud.ports == {}


async def test_a_token_that_ends_in_mid_life_is_renewed_without_a_word(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    await provider.list()
    for method, path in (("POST", "/ports"), ("POST", "/servers"), ("GET", "/servers/detail")):
        cloud.mishaps.append(Mishap(method, path, status=401))
    host = await provider.create(wanted)
    await provider.list()
    assert not cloud.mishaps
    assert list(cloud.servers) == [host.id]
    assert len(cloud.ports) == 1


async def test_an_image_that_is_not_active_is_told_before_nova_refuses_it(cloud: FakeCloud) -> None:
    provider, image = provider_of(cloud), cloud.images[0]
    image["status"] = "deactivated"
    by_id = {**CONFIG, "image": {"id": image["id"]}}
    (problem,) = await provider.validate(by_id)
    assert (problem.path, problem.message) == ("image", f"image {image['id']} is deactivated")
    assert (await refused(provider, request(image={"id": image["id"]}))).error_class is ErrorClass.NOT_FOUND
    image["status"] = "active"
    assert (await provider.create(request(image={"id": image["id"]}))).id


async def test_a_hidden_image_is_found_by_its_id_alone_and_the_error_says_so(cloud: FakeCloud) -> None:
    """The usual way to publish a new build: the old one keeps its name and is hidden."""
    provider, old = provider_of(cloud), cloud.images[0]
    cloud.images.append({**old, "id": str(uuid.uuid4())})
    (problem,) = await provider.validate(CONFIG)
    assert "there are 2 images debian-12" in problem.message
    old["os_hidden"] = True
    assert await provider_of(cloud).validate(CONFIG) == ()
    assert await provider_of(cloud).validate({**CONFIG, "image": {"id": old["id"]}}) == ()
    cloud.images.pop()
    (problem,) = await provider_of(cloud).validate(CONFIG)
    assert "by their id" in problem.message


async def test_user_data_that_is_too_large_is_told_before_a_server_is_asked_for(cloud: FakeCloud) -> None:
    config = {**CONFIG, "userData": {"secretName": "data"}}
    fits = b"#" * (USER_DATA_LIMIT.size // 4 * 3)
    assert await provider_of(cloud, fits).validate(config) == ()
    (problem,) = await provider_of(cloud, fits + b"#").validate(config)
    assert problem.path == "userData.secretName"
    assert "too large" in problem.message
    script = b"#!/bin/sh\n" + b"echo the same again\n" * 5000
    assert await provider_of(cloud, script).validate(config) == ()
    await provider_of(cloud, script).create(request(userData={"secretName": "data"}))
    (sent,) = [body["server"]["user_data"] for _, path, body in cloud.bodies if path == "/servers"]
    assert gzip.decompress(base64.b64decode(sent)) == script
