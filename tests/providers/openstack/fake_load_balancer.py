"""As much of Octavia as the provider uses. No real one was at hand: this follows the API reference (v2.0).

A load balancer is PENDING_* for one look, and takes no change meanwhile.
"""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from aiohttp import web

from tests.providers.openstack.fake_network import FakeNeutron
from tests.providers.openstack.paging import Refused, Thing, page

NEXT = {"PENDING_CREATE": "ACTIVE", "PENDING_UPDATE": "ACTIVE", "PENDING_DELETE": ""}


class FakeOctavia:
    """``broken``: the next one that is made ends in ERROR."""

    def __init__(self, neutron: FakeNeutron) -> None:
        self._neutron = neutron
        self.balancers: dict[str, Thing] = {}
        self.members: dict[str, list[Thing]] = {}
        """By pool."""
        self.broken = False
        self._numbers = itertools.count(1)

    def answer(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        match (request.method, path.removeprefix("/lbaas").strip("/").split("/")):
            case ("GET", ["loadbalancers"]):
                shown = page("loadbalancers", [dict(one) for one in self.balancers.values()], request)
                self._pass_time()
                return 200, shown
            case ("POST", ["loadbalancers"]):
                return 201, {"loadbalancer": self._made(body["loadbalancer"])}
            case ("DELETE", ["loadbalancers", identity]):
                balancer = self._changing(self._found(identity), "PENDING_DELETE")
                if balancer["pools"] and request.query.get("cascade") != "true":
                    raise Refused(400, "Cannot delete Load Balancer - it has children", "faultstring")
                return 204, None
            case ("PUT", ["loadbalancers", identity]):
                self._changing(self._found(identity)).update(body["loadbalancer"])
                return 200, {"loadbalancer": self._found(identity)}
            case ("GET", ["pools", pool, "members"]):
                return 200, page("members", self._pool(pool), request)
            case ("PUT", ["pools", pool, "members"]):
                self._pool(pool)
                self._changing(next(one for one in self.balancers.values() if one["pools"] == [{"id": pool}]))
                self.members[pool] = [{"id": str(uuid.uuid4()), **one} for one in body["members"]]
                return 202, None
        raise Refused(404, path, "faultstring")

    def _made(self, desired: Thing) -> Thing:
        number, pool = next(self._numbers), str(uuid.uuid4())
        port = self._neutron.make_port({"network_id": self._neutron.networks["nodes"], "description": ""})
        balancer = {
            "id": str(uuid.uuid4()),
            "name": desired["name"],
            "description": desired["description"],
            "created_at": f"2026-01-01T00:00:{number:02}",
            "provisioning_status": "PENDING_CREATE",
            "vip_address": port["fixed_ips"][0]["ip_address"],
            "vip_port_id": port["id"],
            "vip_subnet_id": desired["vip_subnet_id"],
            "listeners": [{"id": str(uuid.uuid4())}],
            "pools": [{"id": pool}],
        }
        self.members[pool] = []
        self.balancers[balancer["id"]] = balancer
        return dict(balancer)

    def _pass_time(self) -> None:
        for identity, balancer in list(self.balancers.items()):
            state = NEXT.get(balancer["provisioning_status"], balancer["provisioning_status"])
            if self.broken and state == "ACTIVE":
                state, self.broken = "ERROR", False
            balancer["provisioning_status"] = state
            if not state:
                del self.balancers[identity]
                self._neutron.remove_port(balancer["vip_port_id"])

    @staticmethod
    def _changing(balancer: Thing, state: str = "PENDING_UPDATE") -> Thing:
        if balancer["provisioning_status"].startswith("PENDING"):
            text = f"Load Balancer {balancer['id']} is immutable and cannot be updated."
            raise Refused(409, text, "faultstring")
        balancer["provisioning_status"] = state
        return balancer

    def _found(self, identity: str) -> Thing:
        if identity not in self.balancers:
            raise Refused(404, f"Load Balancer {identity} not found.", "faultstring")
        return self.balancers[identity]

    def _pool(self, identity: str) -> list[Thing]:
        if identity not in self.members:
            raise Refused(404, f"Pool {identity} not found.", "faultstring")
        return self.members[identity]
