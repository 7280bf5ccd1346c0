"""Reading some objects by their names alone, as roles with resourceNames or with ``get`` only allow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from controllers.kernel.refs import CONFIG_MAP, SECRET, Key, Kind, Ref
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ApiError as ServerError
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.part import Part
from nodewright.runtime.cache.polled import Polled
from nodewright.runtime.cache.reflector import Reflector, ReflectorOptions, Source
from tests.runtime.town import Town

FAST = ReflectorOptions(backoff=0.01, longest_backoff=0.05, watch_seconds=1)
ONE, TWO = Key("default", "one"), Key("default", "two")


@asynccontextmanager
async def reflecting(source: Source, kind: Kind) -> AsyncIterator[Cache]:
    cache = Cache([kind])
    reflector = Reflector(source, cache, kind, FAST)
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 300)
        yield cache
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def body(kind: Kind, name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def held(cache: Cache, kind: Kind) -> dict[str, Any]:
    return {obj["metadata"]["name"]: obj.get("data") for obj in cache.stores[kind]}


async def test_several_objects_are_followed_by_name_and_no_other_is_held(town: Town) -> None:
    for name in ("one", "other"):
        await town.client.create(CONFIG_MAP, body(CONFIG_MAP, name))
    async with reflecting(Part(town.client, (ONE, TWO)), CONFIG_MAP) as cache:
        assert held(cache, CONFIG_MAP).keys() == {"one"}
        await town.client.create(CONFIG_MAP, body(CONFIG_MAP, "two", x="1"))
        await town.until(lambda: held(cache, CONFIG_MAP).keys() == {"one", "two"})
        for value in "234":
            for key in (ONE, TWO):
                await town.client.merge_patch(Ref(CONFIG_MAP, key), {"data": {"x": value}})
        await town.until(lambda: held(cache, CONFIG_MAP) == {"one": {"x": "4"}, "two": {"x": "4"}})
        await town.client.delete(Ref(CONFIG_MAP, ONE))
        await town.until(lambda: held(cache, CONFIG_MAP).keys() == {"two"})


async def test_every_request_names_one_object(town: Town) -> None:
    """Else a Role with resourceNames would refuse it."""
    asked: list[str] = []
    page = town.client.list_page

    async def noting(kind: Kind, limit: int = 500, continue_: str = "", namespace: str = "", name: str = "") -> Any:
        asked.append(name)
        return await page(kind, limit, continue_, namespace, name)

    town.client.list_page = noting  # type: ignore[method-assign]
    async with reflecting(Part(town.client, (ONE, TWO)), CONFIG_MAP):
        assert sorted(asked) == ["one", "two"]


async def test_a_secret_is_followed_by_get_alone(town: Town) -> None:
    """With list and watch refused, as under the role that is shipped."""
    for verb in ("list", "watch"):
        refused = ServerError(403, "Forbidden", "secrets is forbidden")
        town.plane.faults.answer(refused, Match(verb=verb, resource="secrets"), times=10_000)
    async with reflecting(Polled(town.client, ONE, 0.05), SECRET) as cache:
        assert held(cache, SECRET) == {}
        await town.client.create(SECRET, body(SECRET, "one", a="YQ=="))
        await town.until(lambda: held(cache, SECRET) == {"one": {"a": "YQ=="}})
        await town.client.merge_patch(Ref(SECRET, ONE), {"data": {"a": "Yg=="}})
        await town.until(lambda: held(cache, SECRET) == {"one": {"a": "Yg=="}})
        await town.client.delete(Ref(SECRET, ONE))
        await town.until(lambda: held(cache, SECRET) == {})


async def test_a_secret_that_may_not_be_read_is_not_taken_for_missing(town: Town) -> None:
    town.plane.faults.answer(ServerError(403, "Forbidden", "no"), Match(verb="get", resource="secrets"), times=10_000)
    cache = Cache([SECRET])
    reflector = Reflector(Polled(town.client, ONE, 0.05), cache, SECRET, FAST)
    task = asyncio.create_task(reflector.run())
    await town.until(lambda: bool(reflector.problem))
    assert not reflector.synced.is_set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
