"""Endpoints of Clusters in the whole program, on a fake cloud: made, given to a host, and gone with the Cluster."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controllers.cluster import endpoint as endpoint_plan
from controllers.kernel.refs import CLUSTER, MACHINE, SECRET, Key, Ref
from nodewright.runtime.hosts import endpoints
from providers.base.registry import Registry
from providers.openstack import registration
from tests.providers.openstack.endpoint_scene import FLOATING_IP
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG
from tests.runtime.town import Town

PROD = Ref(CLUSTER, Key("default", "prod"))


@pytest.fixture
async def cloud(town: Town, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeCloud]:
    monkeypatch.setattr(endpoints, "WAITING", 0.0)
    monkeypatch.setattr(endpoint_plan, "SOON", 0.1)
    town.options = replace(town.options, registry=Registry.of(replace(registration, list_pause=0.2)))
    async with FakeCloud() as fake:
        data = {"clouds.yaml": base64.b64encode(fake.login()).decode()}
        await town.client.create(
            SECRET,
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud", "namespace": "default"}, "data": data},
        )
        yield fake


async def a_cluster(town: Town, config: Mapping[str, Any] = FLOATING_IP) -> None:
    spec = {"providerConfig": {"value": dict(config)}}
    metadata = {"name": "prod", "namespace": "default"}
    await town.client.create(
        CLUSTER, {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": metadata, "spec": spec}
    )


async def a_control_plane(town: Town) -> None:
    metadata = {"name": "cp", "namespace": "default", "labels": {"cluster.k8s.io/cluster-name": "prod"}}
    versions = {"kubelet": "1.36.3", "controlPlane": "1.36.3"}
    spec = {"versions": versions, "providerConfig": {"value": CONFIG}}
    await town.client.create(
        MACHINE, {"apiVersion": MACHINE.api_version, "kind": "Machine", "metadata": metadata, "spec": spec}
    )


def endpoint(town: Town) -> str:
    found = [each["spec"].get("controlPlaneEndpoint", {}) for each in town.objects(CLUSTER)]
    return str(found[0].get("host", "")) if found else ""


def said(town: Town) -> Mapping[str, Any]:
    conditions = [each for body in town.objects(CLUSTER) for each in (body.get("status") or {}).get("conditions", ())]
    return next((each for each in conditions if each["type"] == "EndpointReady"), {})


async def test_it_is_made_given_to_the_first_host_and_gone_with_the_cluster(town: Town, cloud: FakeCloud) -> None:
    """The program ends and begins again between all steps: what was made is found."""
    await a_cluster(town)
    async with town.controllers():
        await town.until(lambda: bool(endpoint(town)))
    host = endpoint(town)
    await a_control_plane(town)
    async with town.controllers():
        await town.until(lambda: said(town).get("status") == "True")
    (address,) = cloud.floating_ips.values()
    (server,) = cloud.servers.values()
    assert (address["floating_ip_address"], endpoint(town)) == (host, host)
    assert cloud.ports[address["port_id"]]["device_id"] == server["id"]
    await town.client.delete(PROD)
    await town.client.delete(Ref(MACHINE, Key("default", "cp")))
    async with town.controllers():
        await town.until(lambda: not town.objects(CLUSTER) and not town.objects(MACHINE))
    assert not cloud.floating_ips
    assert not cloud.ports


async def test_an_error_of_the_cloud_is_told_and_tried_again(town: Town, cloud: FakeCloud) -> None:
    full = {"NeutronError": {"message": "Quota exceeded for resources: ['floatingip']."}}
    header = {"x-openstack-request-id": "req-1"}
    cloud.mishaps.append(Mishap("POST", "/floatingips", status=409, body=full, headers=header))
    await a_cluster(town)
    async with town.controllers():
        await town.until(lambda: said(town).get("reason") == "QuotaExceeded")
        assert not endpoint(town)
        await town.client.delete(PROD)
        await town.until(lambda: not town.objects(CLUSTER))
    assert not cloud.floating_ips


async def test_a_faulty_configuration_names_its_field_and_holds_nobody(town: Town, cloud: FakeCloud) -> None:
    await a_cluster(town, {**FLOATING_IP, "endpoint": {"floatingIP": {}}})
    async with town.controllers():
        await town.until(lambda: said(town).get("reason") == "InvalidConfiguration")
        assert "endpoint.floatingIP" in said(town)["message"]
        await town.client.delete(PROD)
        await town.until(lambda: not town.objects(CLUSTER))
