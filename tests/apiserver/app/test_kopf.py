"""kopf as a client: an operator sees what there is, what changes and what goes."""

from __future__ import annotations

import asyncio
from typing import Any

import kopf

from nodewright.apiserver.app import APIServer
from tests.apiserver.app.client import WIDGETS, Client
from tests.kubectl.manifests import GROUP, widget


async def test_an_operator_sees_objects_come_change_and_go(plane: APIServer, api: Client) -> None:
    registry, seen, changed = kopf.OperatorRegistry(), [], asyncio.Event()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=plane.url, ca_path=str(plane.ca_path), token=plane.token, scheme="Bearer")

    @kopf.on.event(GROUP, "v1", "widgets", registry=registry)
    async def event(type: str | None, name: str, **_: Any) -> None:
        seen.append((type, name))
        changed.set()

    async def until(*expected: tuple[str | None, str]) -> None:
        async with asyncio.timeout(180):
            while not set(expected) <= set(seen):
                changed.clear()
                await changed.wait()

    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    stop = asyncio.Event()
    await api.create(WIDGETS, widget("old"))
    operator = asyncio.create_task(
        kopf.operator(registry=registry, settings=settings, clusterwide=True, stop_flag=stop, standalone=True)
    )
    try:
        await until((None, "old"))
        await api.create(WIDGETS, widget("new"))
        await api.patch(f"{WIDGETS}/new", {"spec": {"size": 9}})
        await api("DELETE", f"{WIDGETS}/new")
        await until(("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "new"))
        plane.faults.cut_watches()
        await api.create(WIDGETS, widget("after"))
        await until(("ADDED", "after"))
    finally:
        stop.set()
        await operator
    assert plane.stats.writes(user_agent="kopf") == 0
