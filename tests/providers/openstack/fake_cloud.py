"""A small OpenStack over HTTP: as much of Keystone, Nova, Neutron and Glance as the provider uses.

Verified: ``cloud_facts.py`` and the provider's contract run on it and on a real cloud alike. Time passes by looking:
each list of servers moves what is under way by one step.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import yaml
from aiohttp import web

PASSWORD = "fake-cloud-password"
TOKEN = "fake-cloud-token-0123456789"
FLAVORS = {
    "m1.tiny": (1, 512, 1),
    "m1.small": (2, 2048, 10),
    "m1.medium": (4, 4096, 20),
    "m1.huge": (9, 900_000, 10),
    "g1.small": (2, 4096, 10),
}
KEY_PAIRS = ("nodes",)
NO_PLACE = "m1.huge"
"""A flavor that no compute service has room for."""

Thing = dict[str, Any]


@dataclass(slots=True)
class Mishap:
    """What befalls the next request that matches: an answer, or none. ``after``: once the cloud has done it."""

    method: str
    path: str
    status: int = 0
    after: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


class Refused(Exception):
    def __init__(self, status: int, message: str, kind: str = "badRequest") -> None:
        self.status, self.message, self.kind = status, message, kind


class FakeCloud:
    """``async with FakeCloud() as cloud``; ``cloud.login()`` is its clouds.yaml."""

    def __init__(self, instances: int = 1000) -> None:
        self.quota = instances
        self.servers: dict[str, Thing] = {}
        self.ports: dict[str, Thing] = {}
        self.floating_ips: dict[str, Thing] = {}
        self.trunks: dict[str, Thing] = {}
        self.mishaps: list[Mishap] = []
        self.asked: Counter[str] = Counter()
        self.bodies: list[tuple[str, str, Any]] = []
        self.deletions_take = 1
        self._flavors = [
            {"id": str(number), "name": name, "vcpus": size[0], "ram": size[1], "disk": size[2], "extra_specs": {}}
            for number, (name, size) in enumerate(FLAVORS.items(), 1)
        ]
        self._flavors[-1]["extra_specs"] = {"pci_passthrough:alias": "nvidia-a100:2", "hw:mem_page_size": "1GB"}
        self._images = [self._image(name) for name in ("debian-12", "debian-13")]
        self._networks = {name: str(uuid.uuid4()) for name in ("nodes", "public")}
        self._subnets = {"nodes": str(uuid.uuid4())}
        self._groups = {name: str(uuid.uuid4()) for name in ("default", "nodes")}
        self._server_groups = [{"id": str(uuid.uuid4()), "name": "spread", "policy": "soft-anti-affinity"}]
        self._numbers = itertools.count(2)
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 22)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def login(self) -> bytes:
        auth = {
            "auth_url": f"{self.url}/identity/v3",
            "username": "demo",
            "password": PASSWORD,
            "project_name": "demo",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        return yaml.safe_dump({"clouds": {"demo": {"region_name": "RegionOne", "auth": auth}}}).encode()

    def requests(self, pattern: str) -> int:
        """How many requests there were like ``POST /servers``."""
        return sum(count for asked, count in self.asked.items() if re.fullmatch(pattern, asked))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        service, _, rest = request.path.lstrip("/").partition("/")
        if service == "identity":
            return await self._identity(request)
        path = re.sub(r"^v2(\.[01])?", "", rest).removesuffix("/") or "/"
        if path == "/":
            return web.json_response(self._versions(service, request))
        self.asked[f"{request.method} {path}"] += 1
        body = await request.json() if request.can_read_body else None
        self.bodies.append((request.method, path, body))
        mishap = self._mishap(request.method, path)
        if mishap is not None and not mishap.after:
            return self._befalls(mishap, request)
        try:
            answer = self._answer(service, request, path, body)
        except Refused as refused:
            told = {refused.kind: {"message": refused.message, "code": refused.status}}
            return web.json_response(told, status=refused.status, headers={"x-openstack-request-id": "req-fake"})
        return self._befalls(mishap, request) if mishap is not None else answer

    def _mishap(self, method: str, path: str) -> Mishap | None:
        for mishap in self.mishaps:
            if mishap.method == method and re.fullmatch(mishap.path, path):
                self.mishaps.remove(mishap)
                return mishap
        return None

    @staticmethod
    def _befalls(mishap: Mishap, request: web.Request) -> web.StreamResponse:
        if mishap.status:
            return web.json_response(mishap.body or {}, status=mishap.status, headers=mishap.headers)
        assert request.transport is not None
        request.transport.abort()  # the connection is cut
        return web.Response()

    async def _identity(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.json_response(
                {"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": str(request.url)}]}}
            )
        body = await request.json()
        user = body["auth"]["identity"].get("password", {}).get("user", {})
        if user.get("password") != PASSWORD:
            return web.json_response({"error": {"message": "no such user", "code": 401}}, status=401)
        catalog = [
            {"type": kind, "name": kind, "endpoints": [self._endpoint(kind, path)]}
            for kind, path in (("compute", "compute/v2.1"), ("network", "network"), ("image", "image"))
        ]
        token = {
            "methods": ["password"],
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "project": {"id": "demo", "name": "demo", "domain": {"id": "default", "name": "Default"}},
            "user": {"id": "demo", "name": "demo", "domain": {"id": "default", "name": "Default"}},
            "roles": [{"id": "member", "name": "member"}],
            "catalog": catalog,
        }
        return web.json_response({"token": token}, status=201, headers={"X-Subject-Token": TOKEN})

    def _endpoint(self, kind: str, path: str) -> Thing:
        return {"id": kind, "interface": "public", "region": "RegionOne", "region_id": "RegionOne",
                "url": f"{self.url}/{path}"}  # fmt: skip

    def _versions(self, service: str, request: web.Request) -> Thing:
        number = {"compute": "v2.1", "network": "v2.0", "image": "v2.9"}[service]
        path = {"compute": "v2.1", "network": "v2.0", "image": "v2"}[service]
        version = {
            "id": number,
            "status": "CURRENT",
            "version": "2.96" if service == "compute" else "",
            "min_version": "2.1" if service == "compute" else "",
            "links": [{"rel": "self", "href": f"{self.url}/{service}/{path}/"}],
        }
        return {"version": version} if request.path.rstrip("/").endswith(path) else {"versions": [version]}

    def _answer(self, service: str, request: web.Request, path: str, body: Any) -> web.Response:
        handlers: dict[str, Callable[[web.Request, str, Any], tuple[int, Any]]] = {
            "compute": self._compute,
            "network": self._network,
            "image": self._image_api,
        }
        status, answer = handlers[service](request, path, body)
        return web.json_response(answer, status=status) if answer is not None else web.Response(status=status)

    # Nova

    def _compute(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        words = path.strip("/").split("/")
        match (request.method, words):
            case ("GET", ["servers", "detail"]):
                self._step()
                return 200, {"servers": _page(list(self.servers.values()), request)}
            case ("POST", ["servers"]):
                return 202, {"server": self._boot(body)}
            case ("GET", ["flavors", "detail"]):
                return 200, {"flavors": _page(self._flavors, request)}
            case ("GET", ["os-server-groups"]):
                return 200, {"server_groups": self._server_groups}
            case ("GET", ["os-keypairs"]):
                return 200, {"keypairs": [{"keypair": {"name": name}} for name in KEY_PAIRS]}
            case ("GET", ["os-availability-zone"]):
                zones = [{"zoneName": name, "zoneState": {"available": True}} for name in ("az1", "az2")]
                return 200, {"availabilityZoneInfo": zones}
        server = self.servers.get(words[1]) if len(words) > 1 else None
        if server is None:
            raise Refused(404, f"Instance {words[1] if len(words) > 1 else path} could not be found.", "itemNotFound")
        match (request.method, words[2:]):
            case ("GET", []):
                self._step(only=server["id"])
                return 200, {"server": server}
            case ("DELETE", []):
                server["OS-EXT-STS:task_state"] = "deleting"
                server["steps"] = self.deletions_take
                return 204, None
            case ("PUT", ["tags"]):
                server["tags"] = body["tags"]
                return 200, {"tags": server["tags"]}
            case ("PUT", ["metadata"]):
                server["metadata"] = body["metadata"]
                return 200, {"metadata": server["metadata"]}
            case ("POST", ["action"]):
                return 202, self._act(server, body)
        raise Refused(404, path, "itemNotFound")

    def _boot(self, body: Thing) -> Thing:
        wish = body["server"]
        flavor = next((one for one in self._flavors if one["id"] == wish["flavorRef"]), None)
        if flavor is None:
            raise Refused(400, f"Flavor {wish['flavorRef']} could not be found.")
        if wish["imageRef"] and wish["imageRef"] not in [one["id"] for one in self._images]:
            raise Refused(400, f"Can not find requested image {wish['imageRef']}")
        if wish.get("availability_zone", "az1") not in {"az1", "az2"}:
            raise Refused(400, "The requested availability zone is not available")
        if len(wish.get("user_data", "")) > 65535:
            raise Refused(
                400,
                f"Invalid input for field/attribute user_data. Value: {wish['user_data']}. "
                f"'{wish['user_data']}' is too long",
            )
        if len(self.servers) + 1 > self.quota:
            text = f"Quota exceeded for instances: Requested 1, but already used {self.quota} of {self.quota} instances"
            raise Refused(403, text, "forbidden")
        identity = str(uuid.uuid4())
        addresses = [self._plug(identity, network) for network in wish["networks"]]
        server = {
            "id": identity,
            "name": wish["name"],
            "status": "BUILD",
            "created": f"2026-01-01T00:00:{next(self._numbers) % 60:02d}Z",
            "metadata": wish["metadata"],
            "tags": wish["tags"],
            "image": {"id": wish["imageRef"]} if wish["imageRef"] else "",
            "flavor": {"original_name": flavor["name"]},
            "addresses": {"nodes": addresses},
            "OS-EXT-AZ:availability_zone": wish.get("availability_zone", "az1"),
            "OS-EXT-STS:task_state": None,
            "OS-SRV-USG:launched_at": None,
            "steps": 1,
        }
        self.servers[identity] = server
        return {"id": identity}

    def _plug(self, server: str, network: Thing) -> Thing:
        port = self.ports.get(network["port"])
        if port is None:
            raise Refused(400, f"Port {network['port']} could not be found.")
        if port["device_id"]:
            raise Refused(409, f"Port {port['id']} is still in use.", "conflictingRequest")
        port["device_id"] = server
        return {"addr": port["fixed_ips"][0]["ip_address"], "OS-EXT-IPS:type": "fixed", "version": 4}

    def _step(self, only: str = "") -> None:
        for server in list(self.servers.values()):
            if only and server["id"] != only:
                continue
            if server["steps"] > 0:
                server["steps"] -= 1
                continue
            if server["OS-EXT-STS:task_state"] == "deleting":
                del self.servers[server["id"]]
                for port in self.ports.values():
                    port["device_id"] = "" if port["device_id"] == server["id"] else port["device_id"]
            elif server["status"] == "BUILD" and server["flavor"]["original_name"] == NO_PLACE:
                server |= {"status": "ERROR", "fault": {"code": 500, "message": "No valid host was found. "}}
            elif server["status"] in {"BUILD", "REBUILD"}:
                server |= {"status": "ACTIVE", "OS-SRV-USG:launched_at": "2026-01-01T00:00:01.000000"}
            elif server["status"] == "RESIZE":
                server["status"] = "VERIFY_RESIZE"

    def _act(self, server: Thing, body: Thing) -> Thing | None:
        if server["status"] not in {"ACTIVE", "VERIFY_RESIZE", "SHUTOFF"}:
            raise Refused(409, f"Cannot do that while it is in vm_state {server['status']}", "conflictingRequest")
        match body:
            case {"resize": {"flavorRef": flavor}}:
                name = next(one["name"] for one in self._flavors if one["id"] == flavor)
                server |= {"status": "RESIZE", "flavor": {"original_name": name}, "steps": 1}
            case {"confirmResize": None}:
                server["status"] = "ACTIVE"
            case {"rebuild": wish}:
                server |= {"status": "REBUILD", "image": {"id": wish["imageRef"]}, "steps": 1}
                server["metadata"] = wish["metadata"]
            case {"os-stop": None}:
                server["status"] = "SHUTOFF"
        return None

    # Neutron

    def _network(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        words, query = path.strip("/").split("/"), request.query
        named = {"networks": self._networks, "subnets": self._subnets, "security-groups": self._groups}
        match (request.method, words):
            case ("GET", [plural]) if plural in named:
                found = [{"id": value, "name": name} for name, value in named[plural].items()]
                wanted = [one for one in found if query.get("name", one["name"]) == one["name"]]
                wanted = [one for one in wanted if query.get("id", one["id"]) == one["id"]]
                return 200, {plural.replace("-", "_"): wanted}
            case ("GET", ["ports"]):
                wanted = query.get("description")
                found = [port for port in self.ports.values() if wanted in {None, port["description"]}]
                return 200, {"ports": _page(sorted(found, key=lambda one: str(one["id"])), request)}
            case ("POST", ["ports"]):
                return 201, {"ports": [self._port(wish) for wish in body["ports"]]}
            case ("PUT", ["ports", identity]):
                self._found(self.ports, identity, "Port").update(body["port"])
                return 200, {"port": self.ports[identity]}
            case ("DELETE", ["ports", identity]):
                return self._unplug(self._found(self.ports, identity, "Port"))
            case ("GET", ["floatingips"]):
                return 200, {"floatingips": _page(list(self.floating_ips.values()), request)}
            case ("POST", ["floatingips"]):
                made = {"id": str(uuid.uuid4()), **body["floatingip"]}
                self.floating_ips[made["id"]] = made
                return 201, {"floatingip": made}
            case ("DELETE", ["floatingips", identity]):
                del self.floating_ips[self._found(self.floating_ips, identity, "Floating IP")["id"]]
                return 204, None
            case ("GET", ["trunks"]):
                found = [one for one in self.trunks.values() if query.get("port_id", "") in {"", one["port_id"]}]
                return 200, {"trunks": found}
            case ("POST", ["trunks"]):
                made = {"id": str(uuid.uuid4()), **body["trunk"]}
                self.trunks[made["id"]] = made
                return 201, {"trunk": made}
            case ("DELETE", ["trunks", identity]):
                del self.trunks[self._found(self.trunks, identity, "Trunk")["id"]]
                return 204, None
        raise Refused(404, path, "NeutronError")

    def _port(self, wish: Thing) -> Thing:
        if wish["network_id"] not in self._networks.values():
            raise Refused(404, f"Network {wish['network_id']} could not be found.", "NeutronError")
        number = next(self._numbers)
        fixed = [{"ip_address": f"10.9.{number >> 8 & 3}.{number & 255}"}]
        port = {"id": str(uuid.uuid4()), "device_id": "", "status": "ACTIVE", "fixed_ips": fixed, **wish}
        port["fixed_ips"] = [{**fixed[0], **one} for one in wish.get("fixed_ips", fixed)]
        self.ports[port["id"]] = port
        return port

    def _unplug(self, port: Thing) -> tuple[int, Any]:
        if any(trunk["port_id"] == port["id"] for trunk in self.trunks.values()):
            raise Refused(409, f"Port {port['id']} is currently a parent port for trunk", "NeutronError")
        if port["device_id"]:
            raise Refused(403, f"(rule:delete_port) is disallowed by policy for {port['id']}", "NeutronError")
        del self.ports[port["id"]]
        return 204, None

    @staticmethod
    def _found(things: dict[str, Thing], identity: str, kind: str) -> Thing:
        if identity not in things:
            raise Refused(404, f"{kind} {identity} could not be found.", "NeutronError")
        return things[identity]

    # Glance

    def _image_api(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        if path == "/images":
            wanted = request.query.get("name", "").removeprefix("in:").strip('"')
            return 200, {"images": [one for one in self._images if wanted in {"", one["name"]}]}
        found = [one for one in self._images if path == f"/images/{one['id']}"]
        if not found:
            raise Refused(404, "No image found", "itemNotFound")
        return 200, found[0]

    @staticmethod
    def _image(name: str) -> Thing:
        return {"id": str(uuid.uuid4()), "name": name, "status": "active", "tags": []}


def _page(things: list[Thing], request: web.Request) -> list[Thing]:
    """As all services page: after ``marker``, at most ``limit``."""
    marker, limit = request.query.get("marker", ""), int(request.query.get("limit", "1000"))
    start = next((index + 1 for index, one in enumerate(things) if str(one["id"]) == marker), 0)
    return things[start : start + limit]
