"""As much of Nova as the provider uses."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.providers.openstack.fake_network import FakeNeutron
from tests.providers.openstack.paging import Refused, Thing, page

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


class FakeNova:
    """``has_image`` says whether there is an image of an id."""

    def __init__(self, neutron: FakeNeutron, has_image: Callable[[str], bool], instances: int) -> None:
        self.quota = instances
        self.servers: dict[str, Thing] = {}
        self.deletions_take = 1
        self.consoles: dict[str, str] = {}
        """What servers have printed, by id."""
        self.reboots: dict[str, list[Thing]] = {}
        """What Nova records of the reboots of a server, the newest first."""
        self.reboots_fail = False
        self._neutron = neutron
        self._has_image = has_image
        self._flavors = [
            {"id": str(number), "name": name, "vcpus": size[0], "ram": size[1], "disk": size[2], "extra_specs": {}}
            for number, (name, size) in enumerate(FLAVORS.items(), 1)
        ]
        self._flavors[-1]["extra_specs"] = {"pci_passthrough:alias": "nvidia-a100:2", "hw:mem_page_size": "1GB"}
        self._server_groups = [{"id": str(uuid.uuid4()), "name": "spread", "policy": "soft-anti-affinity"}]
        self._numbers = itertools.count(2)

    def answer(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        words = path.strip("/").split("/")
        match (request.method, words):
            case ("GET", ["servers", "detail"]):
                self._step()
                return 200, page("servers", list(self.servers.values()), request)
            case ("POST", ["servers"]):
                return 202, {"server": self._boot(body)}
            case ("GET", ["limits"]):
                return 200, {"limits": {"rate": [], "absolute": self._limits()}}
            case ("GET", ["flavors", "detail"]):
                return 200, page("flavors", self._flavors, request)
            case ("GET", ["os-server-groups" | "os-keypairs" as kind]):
                keys = {"keypairs": [{"keypair": {"name": name}} for name in KEY_PAIRS]}
                return 200, keys if kind == "os-keypairs" else {"server_groups": self._server_groups}
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
            case (method, ["tags", tag]):
                return self._tag(server, method, tag)
            case (method, ["metadata", *key]):
                return self._describe(server, method, key, body)
            case ("POST", ["action"]) if "os-getConsoleOutput" in body:
                return 200, {"output": self._printed(server, body["os-getConsoleOutput"])}
            case ("GET", ["os-instance-actions"]):
                created = {"action": "create", "message": None}
                return 200, {"instanceActions": [*self.reboots.get(server["id"], ()), created]}
            case ("POST", ["action"]):
                return 202, self._act(server, body)
        raise Refused(404, path, "itemNotFound")

    def _limits(self) -> Thing:
        """Cores are not limited: -1, as Nova says it."""
        sizes = [FLAVORS[server["flavor"]["original_name"]] for server in self.servers.values()]
        return {
            "maxTotalInstances": self.quota,
            "totalInstancesUsed": len(sizes),
            "maxTotalCores": -1,
            "totalCoresUsed": sum(size[0] for size in sizes),
            "maxTotalRAMSize": 51200,
            "totalRAMUsed": sum(size[1] for size in sizes),
        }

    def _printed(self, server: Thing, desired: Thing) -> str:
        """The last lines that were asked for, as Nova's length counts."""
        if server["status"] == "BUILD":
            raise Refused(404, f"Instance {server['id']} is not ready", "itemNotFound")
        lines = self.consoles.get(server["id"], "booted\nlogin: ").splitlines(keepends=True)
        return "".join(lines[-int(desired["length"]) :])

    @staticmethod
    def _tag(server: Thing, method: str, tag: str) -> tuple[int, Any]:
        there = tag in server["tags"]
        if method == "PUT":
            server["tags"] = server["tags"] if there else [*server["tags"], tag]
            return 204 if there else 201, None
        if not there:
            raise Refused(404, f"Server {server['id']} has no tag '{tag}'", "itemNotFound")
        server["tags"] = [one for one in server["tags"] if one != tag]
        return 204, None

    @staticmethod
    def _describe(server: Thing, method: str, key: list[str], body: Any) -> tuple[int, Any]:
        if method == "POST":
            server["metadata"] = {**server["metadata"], **body["metadata"]}
            return 200, {"metadata": server["metadata"]}
        if key[0] not in server["metadata"]:
            raise Refused(404, "Metadata item was not found", "itemNotFound")
        server["metadata"] = {name: value for name, value in server["metadata"].items() if name != key[0]}
        return 204, None

    def _boot(self, body: Thing) -> Thing:
        desired = body["server"]
        flavor = next((one for one in self._flavors if one["id"] == desired["flavorRef"]), None)
        if flavor is None:
            raise Refused(400, f"Flavor {desired['flavorRef']} could not be found.")
        if desired["imageRef"] and not self._has_image(desired["imageRef"]):
            raise Refused(400, f"Can not find requested image {desired['imageRef']}")
        if desired.get("availability_zone", "az1") not in {"az1", "az2"}:
            raise Refused(400, "The requested availability zone is not available")
        if len(desired.get("user_data", "")) > 65535:
            raise Refused(
                400,
                f"Invalid input for field/attribute user_data. Value: {desired['user_data']}. "
                f"'{desired['user_data']}' is too long",
            )
        if len(self.servers) + 1 > self.quota:
            text = f"Quota exceeded for instances: Requested 1, but already used {self.quota} of {self.quota} instances"
            raise Refused(403, text, "forbidden")
        identity = str(uuid.uuid4())
        addresses = [self._neutron.plug(identity, network["port"]) for network in desired["networks"]]
        server = {
            "id": identity,
            "name": desired["name"],
            "status": "BUILD",
            "created": f"2026-01-01T00:00:{next(self._numbers) % 60:02d}Z",
            "metadata": desired["metadata"],
            "tags": desired["tags"],
            "image": {"id": desired["imageRef"]} if desired["imageRef"] else "",
            "flavor": {"original_name": flavor["name"]},
            "addresses": {"nodes": addresses},
            "OS-EXT-AZ:availability_zone": desired.get("availability_zone", "az1"),
            "OS-EXT-STS:task_state": None,
            "OS-SRV-USG:launched_at": None,
            "steps": 1,
        }
        self.servers[identity] = server
        return {"id": identity}

    def _step(self, only: str = "") -> None:
        for server in list(self.servers.values()):
            if only and server["id"] != only:
                continue
            if server["steps"] > 0:
                server["steps"] -= 1
                continue
            if server["OS-EXT-STS:task_state"] == "deleting":
                del self.servers[server["id"]]
                self._neutron.unplug(server["id"])
            elif server["status"] == "BUILD" and server["flavor"]["original_name"] == NO_PLACE:
                server |= {"status": "ERROR", "fault": {"code": 500, "message": "No valid host was found. "}}
            elif server["status"] in {"REBOOT", "HARD_REBOOT"}:
                server |= {"status": "ACTIVE", "OS-EXT-STS:task_state": None}
            elif server["status"] in {"BUILD", "REBUILD"}:
                server |= {"status": "ACTIVE", "OS-SRV-USG:launched_at": "2026-01-01T00:00:01.000000"}
            elif server["status"] == "RESIZE":
                server["status"] = server["next"]

    def _reboot(self, server: Thing, kind: str) -> None:
        """A soft one only of a server that runs, a hard one also of one that is off or broken."""
        allowed = {"SOFT": {"ACTIVE"}, "HARD": {"ACTIVE", "SHUTOFF", "ERROR", "REBOOT", "HARD_REBOOT"}}[kind]
        if server["status"] not in allowed or server["OS-EXT-STS:task_state"] == "deleting":
            raise Refused(409, f"Cannot 'reboot' instance while it is in vm_state {server['status']}")
        message = "Error" if self.reboots_fail else None
        self.reboots.setdefault(server["id"], []).insert(0, {"action": "reboot", "message": message, "kind": kind})
        if not self.reboots_fail:
            busy = {"SOFT": ("REBOOT", "rebooting"), "HARD": ("HARD_REBOOT", "rebooting_hard")}[kind]
            server |= {"status": busy[0], "OS-EXT-STS:task_state": busy[1], "steps": 1}

    def _act(self, server: Thing, body: Thing) -> Thing | None:
        if "reboot" in body:
            return self._reboot(server, body["reboot"]["type"])
        if server["status"] not in {"ACTIVE", "VERIFY_RESIZE", "SHUTOFF"}:
            raise Refused(409, f"Cannot do that while it is in vm_state {server['status']}", "conflictingRequest")
        match body:
            case {"resize": {"flavorRef": flavor}}:
                name = next(one["name"] for one in self._flavors if one["id"] == flavor)
                server |= {"status": "RESIZE", "steps": 1, "next": "ACTIVE"}
                if name != NO_PLACE:
                    server |= {"flavor": {"original_name": name}, "next": "VERIFY_RESIZE"}
            case {"confirmResize": None}:
                server["status"] = "ACTIVE"
            case {"rebuild": desired}:
                server |= {"status": "REBUILD", "image": {"id": desired["imageRef"]}, "steps": 1}
                server["metadata"] = desired["metadata"]
            case {"os-stop": None}:
                server["status"] = "SHUTOFF"
        return None
