"""Every server, its state shared by all inputs: no answer of 5xx, and the next request is served as before."""

from __future__ import annotations

import copy
import logging
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import grpc
import pytest
from aiohttp import web

from api.kinds import KINDS
from hack.cloudpool.scene import scene
from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.crds import load_crds
from nodewright.gateways.admission.certificate import ServedCertificate
from nodewright.gateways.admission.server import AdmissionServer
from nodewright.gateways.externalgrpc.server import SERVICE
from nodewright.runtime.telemetry import metrics
from tests.api.samples import GOOD
from tests.apiserver.app.client import client_of
from tests.apiserver.app.raw import ask, request
from tests.fuzz.driving import REPLAYED, drive, sizes
from tests.fuzz.inputs import TEXTS, as_json, damaged, document, mutant
from tests.gateways.cloudpool.conftest import quiet_logs, town
from tests.gateways.cloudpool.test_server import served as cloudpools
from tests.gateways.externalgrpc.caller import CAPACITY, GROUP, bounds, group, replicas, serving
from tests.gateways.pems import issue
from tests.gateways.test_admission_server import LOOPBACK, Door
from tests.gateways.test_review import REGISTRY, asked, good
from tests.runtime.town import Town

__all__ = ["quiet_logs", "town"]

BODIES = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json-patch+json",
    "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "", "x",
)  # fmt: skip
GROUPED = "/apis/cluster.k8s.io/v1alpha1/namespaces/default/"
COLLECTIONS = (
    *(GROUPED + plural for plural in ("machines", "machinesets", "machinedeployments", "machineclasses", "clusters")),
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods",
    "/api/v1/nodes",
)


def reviewed(rng: random.Random) -> dict[str, Any]:
    """An AdmissionReview of an object that is nearly right."""
    body = asked(good())
    body["request"]["object"] = mutant(rng)
    return body


def patch_of(rng: random.Random) -> bytes:
    """A JSON patch that is nearly right."""
    name = rng.choice(("add", "remove", "replace", "move", "copy", "test"))
    path = rng.choice(("/spec", "/metadata/labels", "/metadata/annotations/a", "/spec/replicas", "/spec/-"))
    return as_json(mutant(rng, [{"op": name, "path": path, "from": "/spec", "value": {"a": "b"}}] * 2))


def fitting(rng: random.Random) -> tuple[str, str, str, bytes]:
    """Method, path, content type and body that fit one another, but for the mutations."""
    valid = copy.deepcopy(rng.choice([each for each in GOOD.values() if each["kind"] in KINDS]))
    valid["metadata"].pop("namespace", None)
    collection = GROUPED + KINDS[valid["kind"]].resource.plural
    named = f"{collection}/{valid['metadata']['name']}"
    body = as_json(mutant(rng, valid))
    how = rng.randrange(5)
    if how == 0:
        return "PATCH", named, "application/json-patch+json", patch_of(rng)
    if how == 1:
        return "PATCH", named, rng.choice(("application/merge-patch+json", "application/apply-patch+yaml")), body
    if how == 2:
        return "PUT", named, "application/json", body
    if how == 3 and rng.random() < 0.3:
        return "DELETE", named, "application/json", b""
    return "POST", collection, rng.choice(("application/json", "application/yaml")), body


def unfitting(rng: random.Random) -> tuple[str, str, str, bytes]:
    """Parts of requests that have nothing to do with one another."""
    method = rng.choice(("POST", "PUT", "PATCH", "DELETE"))
    path = rng.choice(COLLECTIONS) + ("" if method == "POST" else rng.choice(("/demo", "/one", "/set", "/%00")))
    kind = rng.choice(BODIES)
    body = patch_of(rng) if "json-patch" in kind else document(rng)
    return method, path, kind, b"k8s\x00" + body if "protobuf" in kind and rng.random() < 0.5 else body


@sizes(900, 18_000)
async def test_the_plane_answers_bodies(count: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with APIServer(APIServerConfig(crds=tuple(load_crds()))) as plane, client_of(plane) as api:
        seen: set[int] = set()

        async def act(rng: random.Random) -> None:
            method, path, kind, body = (fitting if rng.random() < 0.6 else unfitting)(rng)
            answer = await api(method, f"{path}?fieldManager=fuzz", body, Content_Type=kind)
            seen.add(answer.status)
            assert answer.status < 500, (method, path, kind, answer.text[:500], body[:1000])

        await drive(count, act)
        assert REPLAYED or {200, 201, 400, 404, 409, 415, 422} <= seen, "the inputs reach every stage"
        assert (await api("GET", COLLECTIONS[5])).status == 200
    assert "Traceback" not in caplog.text


@sizes(200, 4_000)
async def test_the_plane_answers_bytes(count: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with APIServer(APIServerConfig(crds=tuple(load_crds()))) as plane:

        async def act(rng: random.Random) -> None:
            path = rng.choice(COLLECTIONS).encode() + b"?" + quote(rng.choice(TEXTS)[:200]).encode()
            # Line ends stay as they are: a request that never ends is waited for, as it should be.
            path, odd = (b"".join(damaged(rng, part).split(b"\n")).replace(b"\r", b"") for part in (path, b"gzip"))
            header = rng.choice(("Accept", "Content_Type", "User_Agent", "If_None_Match", "Cookie", "Host"))
            sent = request(plane, rng.choice(("GET", "POST", "PUT")), path, document(rng)[:2000], **{header: odd})
            code, text = await ask(plane, sent)
            assert code < 500 or code in (501, 505), (text[:500], sent[:500])

        await drive(count, act)
    assert "Traceback" not in caplog.text


@sizes(300, 6_000)
async def test_the_webhook_answers_bodies(count: int, tmp_path: Path) -> None:
    pems = issue("fuzz")
    certificate = ServedCertificate(*pems.write(tmp_path), metrics.WEBHOOK_CERTIFICATE_EXPIRY)
    async with AdmissionServer(LOOPBACK, certificate, REGISTRY) as server:
        door = Door(server, certificate, tmp_path)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:

            async def act(rng: random.Random) -> None:
                body = damaged(rng, as_json(mutant(rng, reviewed(rng))))
                async with session.post(server.url + "/validate", data=body) as answer:
                    assert answer.status in (200, 400, 413), (answer.status, body[:1000])

            await drive(count, act)
        assert (await door.send(pems, json=asked(good())))[0] == 200


@sizes(400, 8_000)
async def test_the_externalgrpc_gateway_answers_messages(town: Town, count: int) -> None:
    fields = (b"", GROUP.encode(), b"\x00", b"x" * 300, b"\xff")

    async with serving(town) as served:
        await group(town, 2, {**bounds(2, 2), **CAPACITY})
        await town.until(lambda: GROUP in served.gateway.fleet.groups())

        async def act(rng: random.Random) -> None:
            text = rng.choice(fields)
            number = bytes([rng.randrange(1, 6) << 3 | 2])
            size = bytes([len(text) & 127 | 128, len(text) >> 7])
            name = rng.choice(sorted(SERVICE.methods_by_name))
            content = damaged(rng, number + size + text + b"\x08" + rng.randbytes(3))
            code = "OK"
            try:
                await served.caller.send(name, content)
            except grpc.aio.AioRpcError as error:
                code = error.code().name
            assert code not in ("UNKNOWN", "INTERNAL", "DEADLINE_EXCEEDED"), (code, name, content)

        await drive(count, act)
        assert replicas(town) == 2


CALLS = (
    ("/pool/size", {"desiredSize": 2}),
    ("/pool/terminate", {"machineId": "default/x", "decrementDesiredSize": False}),
    ("/pool/detach", {"machineId": "default/x", "decrementDesiredSize": False}),
    ("/pool/attach", {"machineId": "default/x"}),
    ("/pool/serviceState", {"machineId": "default/x", "serviceState": "BOOTING"}),
    ("/pool/membershipStatus", {"machineId": "x", "membershipStatus": {"active": True, "evictable": True}}),
)


def call_of(rng: random.Random) -> tuple[str, bytes]:
    """A path of the cloudpool API and a body that is nearly right."""
    path, body = rng.choice(CALLS)
    return path, damaged(rng, as_json(mutant(rng, body)))


@sizes(300, 6_000)
async def test_the_cloudpool_gateway_answers_bodies(town: Town, count: int) -> None:
    await town.machine_set("workers", 2)
    async with cloudpools(town) as client:

        async def act(rng: random.Random) -> None:
            path, body = call_of(rng)
            async with client.session.post(client.url + path, data=body) as answer:
                assert answer.status < 500, (path, body[:1000], await answer.text())

        await drive(count, act)
        assert (await client("GET", "/pool"))[0] == 200


@sizes(300, 6_000)
async def test_the_cloudpool_proxy_answers_bodies(count: int) -> None:
    async def accepted(_: web.Request) -> web.StreamResponse:
        return web.Response()

    async with scene() as stage:
        # The pool behind the proxy has no faults to find: it takes whatever is forwarded.
        stage.pool.instead.update({f"POST {path}": accepted for path, _ in CALLS})
        await stage.start()

        async def act(rng: random.Random) -> None:
            path, body = call_of(rng)
            code, text = await stage.ask("POST", path, data=body)
            assert code < 500, (path, body[:1000], text)

        await drive(count, act)
        assert (await stage.ask("GET", "/pool"))[0] == 200
