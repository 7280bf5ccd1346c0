"""Ports behind a trunk: made with the server, changed with its ports, gone after their trunk."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from providers.base.contract import Host, HostIdentity, HostRequest, HostState, NeedsReplacement, Provider, Updated
from providers.base.errors import ErrorClass
from providers.openstack import creation, ownership_tags
from providers.openstack.config import parse
from tests.providers.openstack.fake_cloud import FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG, gone, provider_of, refused

SUBPORTS: list[dict[str, Any]] = [
    {"network": "nodes", "segmentationID": 100},
    {"network": "public", "segmentationID": 7, "portSecurity": False},
]


def request(subports: list[dict[str, Any]] = SUBPORTS, **config: Any) -> HostRequest:
    uid = str(uuid.uuid4())
    ports = [{"network": "nodes", "subports": subports}, {"network": "nodes"}]
    return HostRequest(HostIdentity(uid, "test", f"m.{uid[:4]}-0", "story"), {**CONFIG, "ports": ports, **config}, "1")


def changed(wanted: HostRequest, subports: list[dict[str, Any]], **config: Any) -> HostRequest:
    return replace(wanted, config={**request(subports).config, **config}, spec_hash="2")


async def up(provider: Provider, wanted: HostRequest) -> Host:
    host = await provider.create(wanted)
    while host.state is not HostState.RUNNING:
        (host,) = await provider.list()
    return host


def vlans(cloud: FakeCloud) -> list[Mapping[int, str]]:
    """Of each trunk: the networks by VLAN."""
    networks = {value: name for name, value in cloud.neutron.networks.items()}
    return [
        {one["segmentation_id"]: networks[cloud.ports[one["port_id"]]["network_id"]] for one in trunk["sub_ports"]}
        for trunk in cloud.trunks.values()
    ]


async def test_subports_come_with_their_server_and_go_after_it(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    host = await up(provider, wanted)
    (body,) = [body for method, path, body in cloud.bodies if (method, path) == ("POST", "/servers")]
    assert [cloud.ports[one["port"]]["name"] for one in body["server"]["networks"]] == [
        f"{wanted.identity.name}-0",
        f"{wanted.identity.name}-1",
    ]
    assert vlans(cloud) == [{100: "nodes", 7: "public"}]
    assert [cloud.asked[f"POST {path}"] for path in ("/ports", "/trunks", "/servers")] == [2, 1, 1]
    assert [port.get("port_security_enabled") for port in cloud.ports.values()].count(False) == 1
    await gone(provider, host)
    assert cloud.ports == cloud.trunks == {}
    assert cloud.requests("DELETE /ports/.*") == 5, "the trunk's own port twice, for only then is the trunk looked for"


async def test_a_subport_has_the_address_of_its_trunk_as_a_vlan_in_the_guest_has(cloud: FakeCloud) -> None:
    """One network has each address but once, so a second subport there, or one in the trunk's own, has another."""
    networks = ("storage", "nodes", "public", "storage")
    wanted = request([{"network": network, "segmentationID": vlan} for vlan, network in enumerate(networks, 1)])
    cloud.mishaps.append(Mishap("POST", "/trunks", status=500))
    await refused(provider_of(cloud), wanted)
    addresses = {port["name"].rpartition("-")[2]: port["mac_address"] for port in cloud.ports.values()}
    assert {name for name, address in addresses.items() if address == addresses["0"]} == {"0", "0.1", "0.3"}
    assert len(set(addresses.values())) == 4


async def test_subports_that_are_missing_are_made_behind_ports_that_are_there(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "UNSURE", 0.0)
    wanted = request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=500))
    await refused(provider_of(cloud), wanted)
    cloud.trunks.clear()
    for identity in [port["id"] for port in cloud.ports.values() if "." in port["name"].rpartition("-")[2]]:
        del cloud.ports[identity]
    await provider_of(cloud).create(wanted)
    assert vlans(cloud) == [{100: "nodes", 7: "public"}]
    assert len({port["mac_address"] for port in cloud.ports.values()}) == 3


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_trunk_that_failed_is_made_again_with_the_same_subports(cloud: FakeCloud, after: bool) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/trunks", status=500, after=after))
    assert (await refused(provider, wanted)).progressed
    await provider.create(wanted)
    assert vlans(cloud) == [{100: "nodes", 7: "public"}]
    assert len(cloud.ports) == 4


async def test_what_was_made_of_a_server_that_never_came_goes_with_its_machine(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    cloud.mishaps.append(Mishap("POST", "/servers", status=500))
    await refused(provider, wanted)
    (left,) = await provider.list()
    assert (left.name, left.state) == (wanted.identity.name, HostState.UNFINISHED)
    await gone(provider, left)
    assert cloud.ports == cloud.trunks == {}


async def test_security_of_subports_changes_in_place(cloud: FakeCloud) -> None:
    provider, wanted = provider_of(cloud), request()
    host = await up(provider, wanted)
    guarded = [{**SUBPORTS[0], "securityGroups": ["nodes"]}, {**SUBPORTS[1], "portSecurity": True}]
    assert await provider.update(changed(wanted, guarded, securityGroups=["default"]), host, False) == Updated()
    groups = {value: name for name, value in cloud.neutron.groups.items()}
    redact = {port["name"].rpartition("-")[2]: port["security_groups"] for port in cloud.ports.values()}
    assert {name: [groups[one] for one in found] for name, found in redact.items()} == {
        "0": ["default"],
        "0.100": ["nodes"],
        "0.7": ["default"],
        "1": ["default"],
    }


@pytest.mark.parametrize(
    "subports",
    [[], SUBPORTS[:1], [*SUBPORTS, {"network": "nodes", "segmentationID": 101}], [SUBPORTS[1], SUBPORTS[0]]],
    ids=["none", "one less", "one more", "another order"],
)
async def test_other_subports_need_another_server(cloud: FakeCloud, subports: list[dict[str, Any]]) -> None:
    provider, wanted = provider_of(cloud), request()
    host = await up(provider, wanted)
    assert isinstance(await provider.update(changed(wanted, subports), host, False), NeedsReplacement)


async def test_two_subports_in_one_vlan_are_refused_with_their_field(cloud: FakeCloud) -> None:
    error = await refused(provider_of(cloud), request([SUBPORTS[0], {"network": "public", "segmentationID": 100}]))
    assert error.error_class is ErrorClass.INVALID_CONFIGURATION
    assert "ports.0.subports" in error.message
    assert "segmentationID" in error.message
    assert cloud.ports == {}


async def test_a_network_that_is_missing_is_named_by_its_field(cloud: FakeCloud) -> None:
    wanted = request([{"network": "none", "segmentationID": 1, "securityGroups": ["none"]}])
    found = await provider_of(cloud).validate(wanted.config)
    assert [problem.path for problem in found] == [
        "ports[0].subports[0].network",
        "ports[0].subports[0].securityGroups[0]",
    ]


def test_servers_that_were_made_before_there_were_subports_are_not_replaced_for_them() -> None:
    """What such a server has in its metadata, and its ports in their descriptions."""
    ports = [{"network": "nodes", "trunk": True, "securityGroups": ["a"]}, {"network": "public"}]
    config = {**CONFIG, "ports": ports}
    wanted = HostRequest(HostIdentity("uid-1", "test", "m-0", "story"), config, "h")
    parts = ownership_tags.parts_of(wanted, parse(config))
    assert (parts["networks"], parts["ports"]) == ("7a325fe5", "70adb380")
    assert ownership_tags.description_of(wanted, parse(config)) == "nodewright-machine-uid-1 16b995a9"
