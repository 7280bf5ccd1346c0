"""What was acknowledged stays, whatever happens to the process; and nobody sees what may not stay."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from nodewright.apiserver.app import APIServer, APIServerConfig
from nodewright.apiserver.store import JournalError, SqliteJournal
from tests.apiserver.app.client import WIDGETS, Client, answers, client_of
from tests.kubectl.manifests import WIDGET_CRD, widget

_LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
"""
_SERVER = """
import asyncio, json, sys
from pathlib import Path
from nodewright.apiserver.app import APIServer, APIServerConfig

async def serve():
    crds = (json.loads(sys.argv[2]),)
    async with APIServer(APIServerConfig(data_dir=Path(sys.argv[1]), crds=crds)) as plane:
        print(plane.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


def config(folder: Path) -> APIServerConfig:
    return APIServerConfig(data_dir=folder, crds=(WIDGET_CRD,))


async def test_a_restart_gives_the_same_objects_versions_keys_and_token(tmp_path: Path) -> None:
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        await api.create(WIDGETS, widget("a", 7))
        await api.patch(f"{WIDGETS}/a/status", {"status": {"phase": "Sold"}})
        before = await api.get(WIDGETS)
        secrets = (plane.token, plane.ca_path.read_bytes())
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        after = await api.get(WIDGETS)
        assert after["items"] == before["items"]
        assert (plane.token, plane.ca_path.read_bytes()) == secrets
        later = await api.create(WIDGETS, widget("b"))
        assert int(later["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


async def test_a_restart_does_not_touch_the_kinds_that_are_as_they_should_be(tmp_path: Path) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{WIDGET_CRD['metadata']['name']}"
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        before = await api.get(path)
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        assert await api.get(path) == before


async def test_two_planes_do_not_share_a_folder(tmp_path: Path) -> None:
    async with APIServer(config(tmp_path)):
        with pytest.raises(JournalError, match="in use"):
            async with APIServer(config(tmp_path)):
                pass


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_open(tmp_path: Path) -> None:
    async with APIServer(APIServerConfig()) as plane:
        port = int(plane.url.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"):
            async with APIServer(APIServerConfig(data_dir=tmp_path, port=port)):
                pass
    async with APIServer(APIServerConfig(data_dir=tmp_path, port=port)) as plane:
        assert plane.url.endswith(f":{port}")


async def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    command = (sys.executable, "-c", _SERVER, str(tmp_path), json.dumps(WIDGET_CRD))
    server = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    assert server.stdout is not None
    url = (await asyncio.wait_for(server.stdout.readline(), 180)).decode().strip()
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
        await asyncio.wait_for(enough.wait(), 180)
        server.send_signal(signal.SIGKILL)
    await server.wait()
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        items = (await api.get(WIDGETS))["items"]
    kept = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
    assert {name: kept.get(name) for name in acknowledged} == acknowledged


async def test_what_cannot_be_written_down_is_not_acknowledged_nor_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        since = (await api.get(WIDGETS))["metadata"]["resourceVersion"]
        async with api.watch(WIDGETS, f"resourceVersion={since}&timeoutSeconds=20") as events:
            with full_disk(monkeypatch):
                answer = await api("POST", WIDGETS, widget("a"))
                assert (answer.status, answer.json["reason"]) == (507, "InsufficientStorage")
                assert "database or disk is full" in answer.json["message"]
                ended = await events.next()
                assert (ended["type"], ended["object"]["code"]) == ("ERROR", 410)
            await answers(api, "/readyz", 200)
            assert (await api.get(WIDGETS))["items"] == []


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let SQLite say, as on a disk without space, that it can't write."""

    def refuse(journal: SqliteJournal, entries: object, revision: int) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteJournal, "_write", refuse)
        yield


async def test_on_a_full_disk_reads_go_on_and_writes_are_refused_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        kept = await api.create(WIDGETS, widget("kept"))
        with full_disk(monkeypatch):
            for method, path, body in (
                ("POST", WIDGETS, widget("new")),
                ("DELETE", f"{WIDGETS}/kept", None),
                ("PATCH", f"{WIDGETS}/kept", {"metadata": {"labels": {"a": "b"}}}),
            ):
                answer = await api(method, path, body, Content_Type="application/merge-patch+json")
                if method == "POST":
                    answer = await api(method, path, body)
                assert (answer.status, answer.json["reason"]) == (507, "InsufficientStorage"), answer.text
                assert await api.get(f"{WIDGETS}/kept") == kept
            reads = await asyncio.gather(*[api("GET", WIDGETS) for _ in range(10)], api("POST", WIDGETS, widget("x")))
            assert [answer.status for answer in reads] == [200] * 10 + [507]
            assert all([item["metadata"]["name"] for item in a.json["items"]] == ["kept"] for a in reads[:10])
            ready = await api("GET", "/readyz")
            assert ready.status == 500, ready.text
            assert "database or disk is full" in ready.text
            assert (await api("GET", "/livez")).status == 200
            async with api.watch(WIDGETS) as events:
                assert await events.seen(1) == [("ADDED", "kept")]
        await answers(api, "/readyz", 200)
        await api.create(WIDGETS, widget("new"))
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        assert [item["metadata"]["name"] for item in (await api.get(WIDGETS))["items"]] == ["kept", "new"]


async def test_a_limit_on_the_size_of_files_is_met_as_a_full_disk_is(tmp_path: Path) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _LIMITED + _SERVER, str(tmp_path), json.dumps(WIDGET_CRD)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert server.stdout is not None
    try:
        url = (await asyncio.wait_for(server.stdout.readline(), 180)).decode().strip()
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text()}"}
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            api, made = Client(session, url), []
            for number in range(200):
                body = widget(f"w-{number:03}", extra={"text": "x" * 40_000})
                answer = await api("POST", WIDGETS, body)
                if answer.status != 201:
                    break
                made.append(body["metadata"]["name"])
            assert (answer.status, answer.json["reason"]) == (507, "InsufficientStorage"), answer.text
            items = (await api.get(WIDGETS))["items"]
            assert [item["metadata"]["name"] for item in items] == made
            server.send_signal(signal.SIGKILL)
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        assert [item["metadata"]["name"] for item in (await api.get(WIDGETS))["items"]] == made


async def test_a_folder_that_has_lost_its_state_is_refused_unless_that_is_accepted(tmp_path: Path) -> None:
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
        await api.create(WIDGETS, widget("a"))
    for name in ("state.db", "state.mark"):
        (tmp_path / name).unlink()
    with pytest.raises(JournalError, match=r"is damaged: .*--accept-loss"):
        async with APIServer(config(tmp_path)):
            pass
    async with APIServer(replace(config(tmp_path), accept_loss=True)) as plane, client_of(plane) as api:
        assert (await api.get(WIDGETS))["items"] == []
    async with APIServer(config(tmp_path)):
        pass


async def test_writes_of_one_turn_share_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with APIServer(config(tmp_path)) as plane, client_of(plane) as api:
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
