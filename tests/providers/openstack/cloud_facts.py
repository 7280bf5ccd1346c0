"""What the provider counts on, asked of a cloud directly: the fake one is held to the real one by these."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import ownership_tags
from providers.openstack.config import Cloud
from providers.openstack.login import login_in
from providers.openstack.lookup import Lookup
from providers.openstack.session import COMPUTE, IMAGE, NETWORK, VOLUME, Session

NOBODY = "11111111-1111-1111-1111-111111111111"
Thing = dict[str, Any]


class CloudFacts:
    """Subclass it with ``login`` set by a fixture."""

    login: bytes

    async def let_time_pass(self) -> None:
        await asyncio.sleep(0)

    @pytest_asyncio.fixture
    async def cloud(self) -> AsyncIterator[Session]:
        async def login() -> Any:
            return login_in({"clouds.yaml": self.login}, Cloud(secret_name="cloud"))

        cloud = Session(login)
        self.uid = str(uuid.uuid4())
        yield cloud
        for server in (await cloud.get(COMPUTE, "/servers/detail?limit=100"))["servers"]:
            if ownership_tags.uid_of_server(server) == self.uid:
                await cloud.change(COMPUTE, "DELETE", f"/servers/{server['id']}")
                await self.until_gone(cloud, server["id"])
        for port in (await cloud.get(NETWORK, f"/ports?description={ownership_tags.tag_of(self.uid)}"))["ports"]:
            await cloud.change(NETWORK, "DELETE", f"/ports/{port['id']}")

    async def a_port(self, cloud: Session) -> Thing:
        network = await Lookup(cloud, lambda: 0.0).network("nodes")
        desired = {"network_id": network["id"], "name": "fact", "description": ownership_tags.tag_of(self.uid)}
        made: Thing = (await cloud.change(NETWORK, "POST", "/ports", {"ports": [desired]}))["ports"][0]
        return made

    async def a_server(self, cloud: Session, port: str, **changes: Any) -> str:
        lookup = Lookup(cloud, lambda: 0.0)
        desired = {
            "name": "fact",
            "flavorRef": (await lookup.flavor("m1.tiny"))["id"],
            "imageRef": (await lookup.image("debian-12"))["id"],
            "networks": [{"port": port}],
            "metadata": {ownership_tags.UID: self.uid},
            "tags": [ownership_tags.TAG, ownership_tags.tag_of(self.uid)],
            **changes,
        }
        answer = await cloud.change(COMPUTE, "POST", "/servers", {"server": desired})
        return str(answer["server"]["id"])

    async def server(self, cloud: Session, identity: str) -> Thing:
        found: Thing = (await cloud.get(COMPUTE, f"/servers/{identity}"))["server"]
        return found

    async def until(self, cloud: Session, identity: str, *states: str) -> Thing:
        for _ in range(200):
            server = await self.server(cloud, identity)
            if server["status"] in states:
                return server
            await self.let_time_pass()
        raise AssertionError(f"server {identity} is {server['status']}")

    async def until_gone(self, cloud: Session, identity: str) -> None:
        for _ in range(200):
            listed = (await cloud.get(COMPUTE, "/servers/detail?limit=200"))["servers"]
            if identity not in [one["id"] for one in listed]:
                return
            await self.let_time_pass()
        raise AssertionError(f"server {identity} does not go")

    async def refused(self, work: Any) -> ErrorClass:
        with pytest.raises(ProviderError) as caught:
            await work
        assert caught.value.message
        return caught.value.error_class

    async def test_a_server_is_listed_at_once_with_what_it_was_marked_with(self, cloud: Session) -> None:
        identity = await self.a_server(cloud, (await self.a_port(cloud))["id"])
        listed = (await cloud.get(COMPUTE, "/servers/detail?limit=200"))["servers"]
        (server,) = [one for one in listed if one["id"] == identity]
        assert ownership_tags.uid_of_server(server) == self.uid
        assert set(server["tags"]) == {ownership_tags.TAG, ownership_tags.tag_of(self.uid)}

    async def test_a_server_that_is_up_tells_addresses_zone_and_start(self, cloud: Session) -> None:
        port = await self.a_port(cloud)
        server = await self.until(cloud, await self.a_server(cloud, port["id"]), "ACTIVE")
        (addresses,) = server["addresses"].values()
        assert [one["addr"] for one in addresses] == [port["fixed_ips"][0]["ip_address"]]
        assert server["OS-EXT-AZ:availability_zone"] in {"az1", "az2"}
        assert server["OS-SRV-USG:launched_at"]
        assert server["flavor"]["original_name"] == "m1.tiny"

    async def test_ports_carry_their_mark_from_the_request_that_makes_them(self, cloud: Session) -> None:
        port = await self.a_port(cloud)
        found = (await cloud.get(NETWORK, f"/ports?description={ownership_tags.tag_of(self.uid)}"))["ports"]
        assert [one["id"] for one in found] == [port["id"]]
        assert ownership_tags.uid_of_part(found[0]) == self.uid

    async def test_a_port_outlives_its_server_and_can_go_then(self, cloud: Session) -> None:
        port = await self.a_port(cloud)
        identity = await self.a_server(cloud, port["id"])
        await self.until(cloud, identity, "ACTIVE")
        await cloud.change(COMPUTE, "DELETE", f"/servers/{identity}")
        await self.until_gone(cloud, identity)
        found = (await cloud.get(NETWORK, f"/ports?description={ownership_tags.tag_of(self.uid)}"))["ports"]
        assert [(one["id"], one["device_id"]) for one in found] == [(port["id"], "")]
        await cloud.change(NETWORK, "DELETE", f"/ports/{port['id']}")

    async def test_a_second_server_on_the_same_port_is_refused(self, cloud: Session) -> None:
        port = await self.a_port(cloud)
        await self.until(cloud, await self.a_server(cloud, port["id"]), "ACTIVE")
        assert await self.refused(self.a_server(cloud, port["id"])) is ErrorClass.CONFLICT

    async def test_what_is_not_there_is_told_as_missing(self, cloud: Session) -> None:
        port = (await self.a_port(cloud))["id"]
        assert await self.refused(self.a_server(cloud, port, flavorRef="nope")) is ErrorClass.NOT_FOUND
        assert await self.refused(self.a_server(cloud, port, imageRef=NOBODY)) is ErrorClass.NOT_FOUND
        assert await self.refused(self.a_server(cloud, NOBODY)) is ErrorClass.NOT_FOUND
        assert await self.refused(self.a_server(cloud, port, availability_zone="az9")) is ErrorClass.NOT_FOUND
        assert await self.refused(self.server(cloud, NOBODY)) is ErrorClass.NOT_FOUND
        assert await self.refused(cloud.change(NETWORK, "DELETE", f"/ports/{NOBODY}")) is ErrorClass.NOT_FOUND

    async def test_user_data_that_is_too_large_is_refused_and_not_told(self, cloud: Session) -> None:
        port = (await self.a_port(cloud))["id"]
        with pytest.raises(ProviderError) as caught:
            await self.a_server(cloud, port, user_data="QUJD" * 20_000)
        assert caught.value.error_class is ErrorClass.INVALID_CONFIGURATION
        assert "QUJDQUJD" not in caught.value.message

    async def test_a_server_that_fits_nowhere_ends_in_error_and_was_never_launched(self, cloud: Session) -> None:
        flavor = await Lookup(cloud, lambda: 0.0).flavor("m1.huge")
        identity = await self.a_server(cloud, (await self.a_port(cloud))["id"], flavorRef=flavor["id"])
        server = await self.until(cloud, identity, "ERROR")
        assert "No valid host" in server["fault"]["message"]
        assert not server["OS-SRV-USG:launched_at"]

    async def test_a_resize_waits_to_be_confirmed(self, cloud: Session) -> None:
        identity = await self.a_server(cloud, (await self.a_port(cloud))["id"])
        await self.until(cloud, identity, "ACTIVE")
        flavor = await Lookup(cloud, lambda: 0.0).flavor("m1.small")
        await cloud.change(COMPUTE, "POST", f"/servers/{identity}/action", {"resize": {"flavorRef": flavor["id"]}})
        server = await self.until(cloud, identity, "VERIFY_RESIZE")
        assert server["flavor"]["original_name"] == "m1.small"
        await cloud.change(COMPUTE, "POST", f"/servers/{identity}/action", {"confirmResize": None})
        await self.until(cloud, identity, "ACTIVE")

    async def test_a_resize_without_a_place_leaves_the_server_as_it_was(self, cloud: Session) -> None:
        identity = await self.a_server(cloud, (await self.a_port(cloud))["id"])
        await self.until(cloud, identity, "ACTIVE")
        flavor = await Lookup(cloud, lambda: 0.0).flavor("m1.huge")
        await cloud.change(COMPUTE, "POST", f"/servers/{identity}/action", {"resize": {"flavorRef": flavor["id"]}})
        server = await self.until(cloud, identity, "ACTIVE")
        assert server["flavor"]["original_name"] == "m1.tiny"

    async def test_a_rebuild_keeps_id_and_addresses_and_takes_metadata(self, cloud: Session) -> None:
        identity = await self.a_server(cloud, (await self.a_port(cloud))["id"])
        before = await self.until(cloud, identity, "ACTIVE")
        image = (await Lookup(cloud, lambda: 0.0).image("debian-13"))["id"]
        desired = {"imageRef": image, "metadata": {ownership_tags.UID: self.uid, "new": "yes"}, "user_data": None}
        await cloud.change(COMPUTE, "POST", f"/servers/{identity}/action", {"rebuild": desired})
        after = await self.until(cloud, identity, "ACTIVE")
        assert after["image"]["id"] == image
        assert after["metadata"] == {ownership_tags.UID: self.uid, "new": "yes"}
        assert after["addresses"] == before["addresses"] or after["addresses"]

    async def test_a_tag_and_a_key_come_and_go_beside_others(self, cloud: Session) -> None:
        identity = await self.a_server(cloud, (await self.a_port(cloud))["id"])
        before = await self.until(cloud, identity, "ACTIVE")
        tag, key = f"/servers/{identity}/tags/a%20b%3F%23%25c", f"/servers/{identity}/metadata/cost%3Acentre%201"
        for _ in range(2):
            await cloud.change(COMPUTE, "PUT", tag)
        desired = {"metadata": {"cost:centre 1": "7"}}
        await cloud.change(COMPUTE, "POST", f"/servers/{identity}/metadata", desired)
        server = await self.server(cloud, identity)
        assert sorted(server["tags"]) == sorted([*before["tags"], "a b?#%c"])
        assert server["metadata"] == {**before["metadata"], **desired["metadata"]}
        for path in (tag, key):
            await cloud.change(COMPUTE, "DELETE", path)
            assert await self.refused(cloud.change(COMPUTE, "DELETE", path)) is ErrorClass.NOT_FOUND
        server = await self.server(cloud, identity)
        assert sorted(server["tags"]) == sorted(before["tags"])
        assert server["metadata"] == before["metadata"]

    async def test_a_port_that_carries_a_trunk_goes_after_it(self, cloud: Session) -> None:
        port = (await self.a_port(cloud))["id"]
        made = await cloud.change(NETWORK, "POST", "/trunks", {"trunk": {"port_id": port, "name": "fact"}})
        assert await self.refused(cloud.change(NETWORK, "DELETE", f"/ports/{port}")) is ErrorClass.CONFLICT
        found = (await cloud.get(NETWORK, f"/trunks?port_id={port}"))["trunks"]
        assert [one["id"] for one in found] == [made["trunk"]["id"]]
        await cloud.change(NETWORK, "DELETE", f"/trunks/{found[0]['id']}")
        await cloud.change(NETWORK, "DELETE", f"/ports/{port}")

    async def test_a_subport_goes_after_its_trunk(self, cloud: Session) -> None:
        port, behind = [(await self.a_port(cloud))["id"] for _ in range(2)]
        subport = {"port_id": behind, "segmentation_type": "vlan", "segmentation_id": 100}
        twice = {"port_id": port, "name": "fact", "sub_ports": [subport, {**subport, "port_id": NOBODY}]}
        with pytest.raises(ProviderError):
            await cloud.change(NETWORK, "POST", "/trunks", {"trunk": twice})
        desired = {"port_id": port, "name": "fact", "sub_ports": [subport]}
        made = await cloud.change(NETWORK, "POST", "/trunks", {"trunk": desired})
        assert made["trunk"]["sub_ports"] == [subport]
        assert await self.refused(cloud.change(NETWORK, "DELETE", f"/ports/{behind}")) is ErrorClass.CONFLICT
        assert (await cloud.get(NETWORK, f"/trunks?port_id={behind}"))["trunks"] == []
        server = await self.until(cloud, await self.a_server(cloud, port), "ACTIVE")
        (addresses,) = server["addresses"].values()
        assert len(addresses) == 1, "the server has its own port alone"
        await cloud.change(COMPUTE, "DELETE", f"/servers/{server['id']}")
        await self.until_gone(cloud, server["id"])
        await cloud.change(NETWORK, "DELETE", f"/trunks/{made['trunk']['id']}")
        for one in (port, behind):
            await cloud.change(NETWORK, "DELETE", f"/ports/{one}")

    async def test_an_address_of_a_port_can_be_used_again_in_another_network_alone(self, cloud: Session) -> None:
        port, lookup = await self.a_port(cloud), Lookup(cloud, lambda: 0.0)
        desired = {"name": "fact", "description": ownership_tags.tag_of(self.uid), "mac_address": port["mac_address"]}
        storage, nodes = [(await lookup.network(name))["id"] for name in ("storage", "nodes")]
        made = (await cloud.change(NETWORK, "POST", "/ports", {"ports": [{**desired, "network_id": storage}]}))["ports"]
        assert [one["mac_address"] for one in made] == [port["mac_address"]]
        again = cloud.change(NETWORK, "POST", "/ports", {"ports": [{**desired, "network_id": nodes}]})
        assert await self.refused(again) is ErrorClass.CONFLICT

    async def test_a_floating_ip_carries_its_mark_from_the_request_that_makes_it(self, cloud: Session) -> None:
        port = (await self.a_port(cloud))["id"]
        network = (await Lookup(cloud, lambda: 0.0).network("public"))["id"]
        desired = {"floating_network_id": network, "port_id": port, "description": ownership_tags.tag_of(self.uid)}
        made = (await cloud.change(NETWORK, "POST", "/floatingips", {"floatingip": desired}))["floatingip"]
        listed = (await cloud.get(NETWORK, "/floatingips?limit=200&sort_key=id&sort_dir=asc"))["floatingips"]
        (found,) = [one for one in listed if one["id"] == made["id"]]
        assert (ownership_tags.uid_of_part(found), found["port_id"]) == (self.uid, port)
        await cloud.change(NETWORK, "DELETE", f"/floatingips/{made['id']}")

    async def test_a_page_that_is_not_the_last_links_to_the_next_however_short_it_is(self, cloud: Session) -> None:
        for _ in range(2):
            await self.a_port(cloud)
        ports = await cloud.get(
            NETWORK, f"/ports?limit=1&sort_key=id&sort_dir=asc&description={ownership_tags.tag_of(self.uid)}"
        )
        flavors = await cloud.get(COMPUTE, "/flavors/detail?limit=1")
        images = await cloud.get(IMAGE, "/images?limit=1&status=active")
        assert [len(one) for one in (ports["ports"], flavors["flavors"], images["images"])] == [1, 1, 1]
        assert "next" in [link["rel"] for link in ports["ports_links"]]
        assert "next" in [link["rel"] for link in flavors["flavors_links"]]
        assert "marker=" in images["next"]

    async def test_key_pairs_and_zones_are_listed_by_name(self, cloud: Session) -> None:
        lookup = Lookup(cloud, lambda: 0.0)
        assert (await lookup.key_pair("nodes"))["name"] == "nodes"
        assert (await lookup.zone("az2"))["zoneName"] == "az2"
        assert await self.refused(lookup.key_pair("none")) is ErrorClass.NOT_FOUND
        assert await self.refused(lookup.zone("az9")) is ErrorClass.NOT_FOUND

    async def test_a_member_may_ask_what_is_used_of_the_project_s_quotas(self, cloud: Session) -> None:
        """Of Neutron only by the project's id, which it tells; the others know it by the login."""
        project = (await cloud.get(NETWORK, "/quotas/tenant"))["tenant"]["tenant_id"]
        before = (await cloud.get(NETWORK, f"/quotas/{project}/details"))["quota"]["port"]
        await self.a_port(cloud)
        after = (await cloud.get(NETWORK, f"/quotas/{project}/details"))["quota"]["port"]
        assert after["used"] == before["used"] + 1
        assert isinstance(after["limit"], int)
        for service, field in ((COMPUTE, "maxTotalInstances"), (VOLUME, "maxTotalVolumes")):
            assert isinstance((await cloud.get(service, "/limits"))["limits"]["absolute"][field], int)
