"""What was acknowledged stays, whatever happens to the process; and nobody sees what may not stay."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import sys
from pathlib import Path

import aiohttp
import pytest

from nodewright.controlplane.app import ControlPlane, ControlPlaneConfig
from nodewright.controlplane.store import JournalError
from nodewright.controlplane.values import ApiError
from tests.controlplane.app.client import WIDGETS, client_of
from tests.kubectl.manifests import WIDGET_CRD, widget

_SERVER = """
import asyncio, json, sys
from pathlib import Path
from nodewright.controlplane.app import ControlPlane, ControlPlaneConfig

async def serve():
    crds = (json.loads(sys.argv[2]),)
    async with ControlPlane(ControlPlaneConfig(data_dir=Path(sys.argv[1]), crds=crds)) as plane:
        print(plane.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


def config(folder: Path) -> ControlPlaneConfig:
    return ControlPlaneConfig(data_dir=folder, crds=(WIDGET_CRD,))


async def test_a_restart_gives_the_same_objects_versions_keys_and_token(tmp_path: Path) -> None:
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        await api.create(WIDGETS, widget("a", 7))
        await api.patch(f"{WIDGETS}/a/status", {"status": {"phase": "Sold"}})
        before = await api.get(WIDGETS)
        secrets = (plane.token, plane.ca_path.read_bytes())
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        after = await api.get(WIDGETS)
        assert after["items"] == before["items"]
        assert (plane.token, plane.ca_path.read_bytes()) == secrets
        later = await api.create(WIDGETS, widget("b"))
        assert int(later["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


async def test_a_restart_does_not_touch_the_kinds_that_are_as_they_should_be(tmp_path: Path) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{WIDGET_CRD['metadata']['name']}"
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        before = await api.get(path)
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        assert await api.get(path) == before


async def test_two_planes_do_not_share_a_folder(tmp_path: Path) -> None:
    async with ControlPlane(config(tmp_path)):
        with pytest.raises(JournalError, match="in use"):
            async with ControlPlane(config(tmp_path)):
                pass


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_open(tmp_path: Path) -> None:
    async with ControlPlane(ControlPlaneConfig()) as plane:
        port = int(plane.url.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"):
            async with ControlPlane(ControlPlaneConfig(data_dir=tmp_path, port=port)):
                pass
    async with ControlPlane(ControlPlaneConfig(data_dir=tmp_path, port=port)) as plane:
        assert plane.url.endswith(f":{port}")


async def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    command = (sys.executable, "-c", _SERVER, str(tmp_path), json.dumps(WIDGET_CRD))
    server = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    assert server.stdout is not None
    url = (await asyncio.wait_for(server.stdout.readline(), 30)).decode().strip()
    acknowledged: dict[str, str] = {}
    enough = asyncio.Event()

    async def write(session: aiohttp.ClientSession, lane: int) -> None:
        for number in range(10_000):
            body = widget(f"w-{lane}-{number}")
            try:
                async with session.post(url + WIDGETS, json=body) as response:
                    made = await response.json()
            except aiohttp.ClientError:
                return
            acknowledged[made["metadata"]["name"]] = made["metadata"]["resourceVersion"]
            if len(acknowledged) >= 150:
                enough.set()

    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text()}"}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session, asyncio.TaskGroup() as group:
        for lane in range(8):
            group.create_task(write(session, lane))
        await asyncio.wait_for(enough.wait(), 30)
        server.send_signal(signal.SIGKILL)
    await server.wait()
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        items = (await api.get(WIDGETS))["items"]
    kept = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
    assert {name: kept.get(name) for name in acknowledged} == acknowledged


async def test_what_cannot_be_written_down_is_not_acknowledged_nor_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        since = (await api.get(WIDGETS))["metadata"]["resourceVersion"]
        async with api.watch(WIDGETS, f"resourceVersion={since}&timeoutSeconds=20") as events:
            flush = plane.store.flush
            broken = ApiError.internal("the journal cannot be written: disk full")

            def fail() -> None:
                raise broken

            monkeypatch.setattr(plane.store, "flush", fail)
            answer = await api("POST", WIDGETS, widget("a"))
            assert (answer.status, answer.json["reason"]) == (500, "InternalError")
            assert "disk full" in answer.json["message"]
            monkeypatch.setattr(plane.store, "flush", flush)
            assert await events.seen(1) == [("ADDED", "a")]


async def test_writes_of_one_turn_share_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ControlPlane(config(tmp_path)) as plane, client_of(plane) as api:
        flush, flushes = plane.store.flush, 0

        def count() -> None:
            nonlocal flushes
            flushes += 1
            flush()

        await asyncio.gather(*[api.get(WIDGETS) for _ in range(20)])
        monkeypatch.setattr(plane.store, "flush", count)
        plane.faults.delay(0.05, times=20)
        await asyncio.gather(*[api.create(WIDGETS, widget(f"w-{number}")) for number in range(20)])
        assert flushes < 20
