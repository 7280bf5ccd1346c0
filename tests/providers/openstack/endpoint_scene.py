"""Endpoints on a cloud, fake or real: a Machine is a port with its mark, which is all that an endpoint asks of it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest_asyncio

from providers.base.endpoint_contract_tests import EndpointContract
from providers.base.endpoints import MakesEndpoints
from providers.openstack import ownership_tags
from providers.openstack.cluster_config import CLUSTER_KIND
from providers.openstack.config import API_VERSION, Cloud
from providers.openstack.login import login_in
from providers.openstack.lookup import Lookup
from providers.openstack.session import NETWORK, Session
from tests.providers.openstack.scene import provider_with

FLOATING_IP: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": CLUSTER_KIND,
    "cloud": {"secretName": "cloud", "name": "demo"},
    "endpoint": {"floatingIP": {"network": "public"}},
}


class FloatingIPContract(EndpointContract):
    """Subclass it with ``login`` set by a fixture."""

    login: bytes
    cluster_config: ClassVar[dict[str, Any]] = FLOATING_IP

    @pytest_asyncio.fixture(autouse=True)
    async def _session(self) -> AsyncIterator[None]:
        async def login() -> Any:
            return login_in({"clouds.yaml": self.login}, Cloud(secret_name="cloud"))

        self.session, self.made = Session(login), dict[str, str]()
        yield
        for uid in list(self.made):
            await self.lose(uid)
        await self.session.close()

    def provider(self) -> MakesEndpoints:
        made = provider_with(cloud={"clouds.yaml": self.login})
        assert isinstance(made, MakesEndpoints)
        return made

    async def a_member(self) -> str:
        uid = str(uuid.uuid4())
        network = await Lookup(self.session, lambda: 0.0).network("nodes")
        port = {"network_id": network["id"], "name": "prod-0", "description": f"{ownership_tags.tag_of(uid)} 01234567"}
        answer = await self.session.change(NETWORK, "POST", "/ports", {"ports": [port]})
        self.made[uid] = answer["ports"][0]["id"]
        return uid

    async def lose(self, uid: str) -> None:
        await self.session.change(NETWORK, "DELETE", f"/ports/{self.made.pop(uid)}")

    async def served_by(self, host: str) -> set[str]:
        listed = (await self.session.get(NETWORK, "/floatingips?limit=200"))["floatingips"]
        ports = {one["port_id"] for one in listed if one["floating_ip_address"] == host}
        return {uid for uid, port in self.made.items() if port in ports}

    async def left(self, cluster_uid: str) -> int:
        mark = ownership_tags.cluster_tag_of(cluster_uid)
        listed = (await self.session.get(NETWORK, "/floatingips?limit=200"))["floatingips"]
        return sum(one["description"] == mark for one in listed)
