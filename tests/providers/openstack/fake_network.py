"""As much of Neutron as the provider uses."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from aiohttp import web

from tests.providers.openstack.paging import Refused, Thing, page


class FakeNeutron:
    def __init__(self) -> None:
        self.ports: dict[str, Thing] = {}
        self.floating_ips: dict[str, Thing] = {}
        self.trunks: dict[str, Thing] = {}
        self.networks = {name: str(uuid.uuid4()) for name in ("nodes", "storage", "public")}
        self.subnets = {"nodes": str(uuid.uuid4())}
        self.groups = {name: str(uuid.uuid4()) for name in ("default", "nodes")}
        self._numbers = itertools.count(2)

    def plug(self, server: str, identity: str) -> Thing:
        """A server takes a port; answers the address as Nova shows it."""
        port = self.ports.get(identity)
        if port is None:
            raise Refused(400, f"Port {identity} could not be found.")
        if port["device_id"]:
            raise Refused(409, f"Port {port['id']} is still in use.", "conflictingRequest")
        port["device_id"] = server
        return {"addr": port["fixed_ips"][0]["ip_address"], "OS-EXT-IPS:type": "fixed", "version": 4}

    def unplug(self, server: str) -> None:
        for port in self.ports.values():
            port["device_id"] = "" if port["device_id"] == server else port["device_id"]

    def answer(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        words, query = path.strip("/").split("/"), request.query
        named = {"networks": self.networks, "subnets": self.subnets, "security-groups": self.groups}
        match (request.method, words):
            case ("GET", [plural]) if plural in named:
                found = [{"id": value, "name": name} for name, value in named[plural].items()]
                wanted = [one for one in found if query.get("name", one["name"]) == one["name"]]
                wanted = [one for one in wanted if query.get("id", one["id"]) == one["id"]]
                return 200, {plural.replace("-", "_"): wanted}
            case ("GET", ["ports"]):
                wanted = query.get("description")
                found = [port for port in self.ports.values() if wanted in {None, port["description"]}]
                return 200, page("ports", sorted(found, key=lambda one: str(one["id"])), request)
            case ("POST", ["ports"]):
                return 201, {"ports": [self.make_port(desired) for desired in body["ports"]]}
            case ("PUT", ["ports", identity]):
                self._found(self.ports, identity, "Port").update(body["port"])
                return 200, {"port": self.ports[identity]}
            case ("DELETE", ["ports", identity]):
                return self._unplug(self._found(self.ports, identity, "Port"))
            case ("GET", ["floatingips"]):
                wanted = query.get("description")
                found = [one for one in self.floating_ips.values() if wanted in {None, one["description"]}]
                return 200, page("floatingips", sorted(found, key=lambda one: str(one["id"])), request)
            case ("POST", ["floatingips"]):
                return 201, {"floatingip": self.make_floating_ip(body["floatingip"])}
            case ("PUT", ["floatingips", identity]):
                return 200, {"floatingip": self._change_floating_ip(identity, body["floatingip"])}
            case ("DELETE", ["floatingips", identity]):
                del self.floating_ips[self._found(self.floating_ips, identity, "Floating IP")["id"]]
                return 204, None
            case ("GET", ["trunks"]):
                found = [one for one in self.trunks.values() if query.get("port_id", "") in {"", one["port_id"]}]
                return 200, {"trunks": found}
            case ("POST", ["trunks"]):
                return 201, {"trunk": self._trunk(body["trunk"])}
            case ("DELETE", ["trunks", identity]):
                del self.trunks[self._found(self.trunks, identity, "Trunk")["id"]]
                return 204, None
            case ("GET", ["quotas", "tenant"]):
                return 200, {"tenant": {"tenant_id": "demo"}}
            case ("GET", ["quotas", "demo", "details"]):
                return 200, {"quota": self._quotas()}
        raise Refused(404, path, "NeutronError")

    def _quotas(self) -> Thing:
        """Trunks are not limited: -1, as Neutron says it."""
        counts = {"port": (len(self.ports), 500), "floatingip": (len(self.floating_ips), 50), "trunk": (0, -1)}
        return {name: {"used": used, "limit": limit, "reserved": 0} for name, (used, limit) in counts.items()}

    def make_port(self, desired: Thing) -> Thing:
        if desired["network_id"] not in self.networks.values():
            raise Refused(404, f"Network {desired['network_id']} could not be found.", "NeutronError")
        number = next(self._numbers)
        fixed = [{"ip_address": f"10.9.{number >> 8 & 3}.{number & 255}"}]
        mac = desired.get("mac_address", f"fa:16:3e:00:{number >> 8 & 255:02x}:{number & 255:02x}")
        if any((one["network_id"], one["mac_address"]) == (desired["network_id"], mac) for one in self.ports.values()):
            text = f"Unable to complete operation for network {desired['network_id']}. The mac address {mac} is in use."
            raise Refused(409, text, "NeutronError")
        made = {"id": str(uuid.uuid4()), "device_id": "", "status": "ACTIVE", "fixed_ips": fixed, "mac_address": mac}
        port = {**made, **desired}
        port["fixed_ips"] = [{**fixed[0], **one} for one in desired.get("fixed_ips", fixed)]
        self.ports[port["id"]] = port
        return port

    def make_floating_ip(self, desired: Thing) -> Thing:
        number = next(self._numbers)
        made = {
            "id": str(uuid.uuid4()),
            "floating_ip_address": f"203.0.{number >> 8 & 255}.{number & 255}",
            "created_at": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
            "port_id": None,
            **desired,
        }
        self.floating_ips[made["id"]] = made
        return made

    def _change_floating_ip(self, identity: str, desired: Thing) -> Thing:
        """A port that is not named is taken away, as by Neutron of some versions."""
        port = desired.get("port_id")
        if port is not None:
            self._found(self.ports, port, "Port")
        self._found(self.floating_ips, identity, "Floating IP").update({**desired, "port_id": port})
        return self.floating_ips[identity]

    def _trunk(self, desired: Thing) -> Thing:
        subports = desired.get("sub_ports", [])
        for subport in subports:
            self._found(self.ports, subport["port_id"], "Port")
        if len({one["segmentation_id"] for one in subports}) < len(subports):
            raise Refused(409, "segmentation_type vlan and segmentation_id already in use", "NeutronError")
        made = {"id": str(uuid.uuid4()), "sub_ports": subports, **desired}
        self.trunks[made["id"]] = made
        return made

    def _unplug(self, port: Thing) -> tuple[int, Any]:
        if any(one["port_id"] == port["id"] for trunk in self.trunks.values() for one in trunk["sub_ports"]):
            raise Refused(409, f"Port {port['id']} is currently a subport for trunk", "NeutronError")
        if any(trunk["port_id"] == port["id"] for trunk in self.trunks.values()):
            raise Refused(409, f"Port {port['id']} is currently a parent port for trunk", "NeutronError")
        if port["device_id"]:
            raise Refused(403, f"(rule:delete_port) is disallowed by policy for {port['id']}", "NeutronError")
        self.remove_port(port["id"])
        return 204, None

    def remove_port(self, identity: str) -> None:
        """A floating IP that it has is free again."""
        del self.ports[identity]
        for one in self.floating_ips.values():
            one["port_id"] = None if one["port_id"] == identity else one["port_id"]

    @staticmethod
    def _found(things: dict[str, Thing], identity: str, kind: str) -> Thing:
        if identity not in things:
            raise Refused(404, f"{kind} {identity} could not be found.", "NeutronError")
        return things[identity]
