"""A small OpenStack over HTTP: as much of Keystone, Nova, Neutron, Glance and Cinder as the provider uses.

Verified: ``cloud_facts.py`` and the provider's contract run on it and on a real cloud alike. Time passes by looking:
each list of servers moves what is under way by one step.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import yaml
from aiohttp import web

from tests.providers.openstack.fake_compute import FakeNova
from tests.providers.openstack.fake_load_balancer import FakeOctavia
from tests.providers.openstack.fake_network import FakeNeutron
from tests.providers.openstack.paging import MOST, Refused, Thing, page

PASSWORD = "fake-cloud-password"
TOKEN = "fake-cloud-token-0123456789"


@dataclass(slots=True)
class Held:
    """The next request that matches takes until ``let_go`` is set. ``after``: until then the cloud has done it, and
    only the answer is late. The cloud sets ``reached``.
    """

    method: str
    path: str
    after: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.reached.set()
        await self.let_go.wait()


@dataclass(slots=True)
class Mishap:
    """What befalls the next request that matches: an answer, or none. ``after``: once the cloud has done it."""

    method: str
    path: str
    status: int = 0
    after: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


T = TypeVar("T", Held, Mishap)


class FakeCloud:
    """``async with FakeCloud() as cloud``; ``cloud.login()`` is its clouds.yaml.

    ``most_per_page``: what an operator allows a page to hold, whatever is asked for. ``octavia``: whether there is one.
    """

    def __init__(self, instances: int = 1000, most_per_page: int = 1000, octavia: bool = True) -> None:
        self.mishaps: list[Mishap] = []
        self.held: list[Held] = []
        self.delay: Callable[[], float] = lambda: 0.0
        """Seconds before the cloud does what it is asked for, and again before it answers."""
        self.asked: Counter[str] = Counter()
        self.bodies: list[tuple[str, str, Any]] = []
        self.images = [self._image(name) for name in ("debian-12", "debian-13")]
        self.neutron = FakeNeutron()
        self.octavia = FakeOctavia(self.neutron) if octavia else None
        self.nova = FakeNova(self.neutron, self._has_image, instances)
        self.catalog = {
            "compute": "compute/v2.1",
            "network": "network",
            "image": "image",
            "block-storage": "volume/v3/demo",
        }
        if octavia:
            self.catalog["load-balancer"] = "load-balancer"
        self.volume_limits: Thing = {"maxTotalVolumes": 10, "totalVolumesUsed": 2, "maxTotalVolumeGigabytes": -1}
        self._most_per_page = most_per_page
        self._runner: web.AppRunner | None = None
        self.url = ""

    @property
    def servers(self) -> dict[str, Thing]:
        return self.nova.servers

    @property
    def ports(self) -> dict[str, Thing]:
        return self.neutron.ports

    @property
    def floating_ips(self) -> dict[str, Thing]:
        return self.neutron.floating_ips

    @property
    def trunks(self) -> dict[str, Thing]:
        return self.neutron.trunks

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 22)
        app[MOST] = self._most_per_page
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
        await asyncio.sleep(self.delay())
        try:
            return await self._served(service, rest, request)
        finally:
            await asyncio.sleep(self.delay())

    async def _served(self, service: str, rest: str, request: web.Request) -> web.StreamResponse:
        path = re.sub(r"^(v2(\.[01])?|v3(/demo)?)", "", rest).removesuffix("/") or "/"
        if path == "/":
            return web.json_response(self._versions(service, request))
        self.asked[f"{request.method} {path}"] += 1
        body = await request.json() if request.can_read_body else None
        self.bodies.append((request.method, path, body))
        mishap, held = _taken(self.mishaps, request.method, path), _taken(self.held, request.method, path)
        if held is not None and not held.after:
            await held.wait()
        if mishap is not None and not mishap.after:
            return self._befalls(mishap, request)
        try:
            answer = self._answer(service, request, path, body)
        except Refused as refused:
            redact = {refused.kind: {"message": refused.message, "code": refused.status}}
            return web.json_response(redact, status=refused.status, headers={"x-openstack-request-id": "req-fake"})
        if held is not None and held.after:
            await held.wait()
        return self._befalls(mishap, request) if mishap is not None else answer

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
            for kind, path in self.catalog.items()
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
        number = {"compute": "v2.1", "image": "v2.9", "volume": "v3.0"}.get(service, "v2.0")
        path = {"compute": "v2.1", "image": "v2", "volume": "v3"}.get(service, "v2.0")
        newest, oldest = {"compute": ("2.96", "2.1"), "volume": ("3.70", "3.0")}.get(service, ("", ""))
        version = {
            "id": number,
            "status": "CURRENT",
            "version": newest,
            "min_version": oldest,
            "links": [{"rel": "self", "href": f"{self.url}/{service}/{path}/"}],
        }
        return {"version": version} if request.path.rstrip("/").endswith(path) else {"versions": [version]}

    def _answer(self, service: str, request: web.Request, path: str, body: Any) -> web.Response:
        handlers: dict[str, Callable[[web.Request, str, Any], tuple[int, Any]]] = {
            "compute": self.nova.answer,
            "network": self.neutron.answer,
            "image": self._image_api,
            "volume": self._volume_api,
        }
        if self.octavia is not None:
            handlers["load-balancer"] = self.octavia.answer
        status, answer = handlers[service](request, path, body)
        return web.json_response(answer, status=status) if answer is not None else web.Response(status=status)

    # Cinder

    def _volume_api(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        if path != "/limits":
            raise Refused(404, path, "itemNotFound")
        return 200, {"limits": {"rate": [], "absolute": self.volume_limits}}

    # Glance

    def _image_api(self, request: web.Request, path: str, body: Any) -> tuple[int, Any]:
        if path == "/images":
            wanted = request.query.get("name", "").removeprefix("in:").strip('"')
            seen = [one for one in self.images if one["status"] == "active" and not one.get("os_hidden")]
            answer = page("images", [one for one in seen if wanted in {"", one["name"]}], request)
            links = answer.pop("images_links", ())
            return 200, {**answer, **{link["rel"]: link["href"] for link in links}}
        found = [one for one in self.images if path == f"/images/{one['id']}"]
        if not found:
            raise Refused(404, "No image found", "itemNotFound")
        return 200, found[0]

    def _has_image(self, identity: str) -> bool:
        return identity in [one["id"] for one in self.images]

    @staticmethod
    def _image(name: str) -> Thing:
        return {"id": str(uuid.uuid4()), "name": name, "status": "active", "tags": []}


def _taken(planned: list[T], method: str, path: str) -> T | None:
    """What is planned for the next request of this kind, which is then no longer planned."""
    found = next((one for one in planned if one.method == method and re.fullmatch(one.path, path)), None)
    if found is not None:
        planned.remove(found)
    return found
