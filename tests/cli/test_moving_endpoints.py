"""The endpoint that a provider has made moves with its Cluster, or keeps the Cluster where it is."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from controllers.kernel.refs import CLUSTER, SECRET
from nodewright.cli.exits import CliError
from nodewright.cli.moving.graph import Item
from nodewright.cli.moving.handover import Hosts
from nodewright.cli.moving.sides import Side
from nodewright.runtime.kube.client import KubeClient
from providers.base.contract import Provider, Registration
from providers.base.endpoints import EndpointRequest, MakesEndpoints
from providers.base.registry import Registry
from providers.openstack import ownership_tags
from providers.openstack import registration as openstack
from tests.providers.openstack.endpoint_scene import FLOATING_IP
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import provider_of


class Held:
    """An API that has the login of the cloud."""

    def __init__(self, login: bytes) -> None:
        data = {"clouds.yaml": base64.b64encode(login).decode()}
        self._secret = {"metadata": {"name": "cloud", "namespace": "default"}, "data": data}

    async def get(self, kind: object, key: object) -> dict[str, Any]:
        assert kind == SECRET
        return self._secret


def cluster(config: dict[str, Any], host: str = "203.0.0.1", uid: str = "uid-new") -> dict[str, Any]:
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": "Cluster",
        "metadata": {"name": "prod", "namespace": "default", "uid": uid},
        "spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}} if host else {},
        "status": {"providerStatus": config},
    }


@asynccontextmanager
async def hosts_of(cloud: FakeCloud, registration: Registration = openstack) -> AsyncIterator[Hosts]:
    side = Side(cast("KubeClient", Held(cloud.login())), "the source")
    hosts = Hosts(Registry.of(registration), side)
    yield hosts
    await hosts.close()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (cluster(FLOATING_IP), []),
        (cluster({}), []),
        (cluster(FLOATING_IP, host=""), ["its endpoint is being made"]),
        (cluster({**FLOATING_IP, "kind": "Other"}), ["Other"]),
    ],
    ids=["it can", "none was made", "it is being made", "its provider is unknown"],
)
async def test_what_keeps_a_cluster_with_an_endpoint(body: dict[str, Any], why: list[str]) -> None:
    async with FakeCloud() as cloud, hosts_of(cloud) as hosts:
        found = await hosts.hindrances([Item(CLUSTER, body)])
    assert len(found) == len(why), found
    assert all(text in each for text, each in zip(why, found, strict=True)), found


async def test_a_provider_that_can_not_hand_it_over_keeps_it() -> None:
    other = replace(openstack, open_with_secrets=lambda *_: cast("Provider", object()))
    async with FakeCloud() as cloud, hosts_of(cloud, other) as hosts:
        (found,) = await hosts.hindrances([Item(CLUSTER, cluster(FLOATING_IP))])
    assert "provider openstack can't hand its endpoint over" in found


async def test_it_is_handed_over_and_a_cloud_that_refuses_is_named() -> None:
    async with FakeCloud() as cloud, hosts_of(cloud) as hosts:
        provider = provider_of(cloud)
        assert isinstance(provider, MakesEndpoints)
        made = await provider.ensure_endpoint(EndpointRequest("uid-old", "default", "prod", FLOATING_IP))
        cloud.mishaps += [Mishap("PUT", r"/floatingips/.*", status=403) for _ in range(10)]
        with pytest.raises(CliError, match="provider openstack"):
            await hosts.hand_over_endpoint(cluster(FLOATING_IP, made.host), "uid-old")
        cloud.mishaps.clear()
        await hosts.hand_over_endpoint(cluster(FLOATING_IP, made.host), "uid-old")
        (address,) = cloud.floating_ips.values()
        assert address["description"] == ownership_tags.cluster_tag_of("uid-new")
