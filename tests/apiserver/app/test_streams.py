"""Watches: what is seen, when a stream ends, and what it costs."""

from __future__ import annotations

import asyncio

import pytest

from nodewright.apiserver.app import APIServer, APIServerConfig, Limits
from nodewright.apiserver.app.rendering import EventLines
from nodewright.apiserver.values import WatchEvent
from tests.apiserver.app.client import WIDGETS, Client, client_of
from tests.kubectl.manifests import WIDGET_CRD, widget
from tests.kubectl.manifests import WIDGETS as CRD_NAME

CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD_NAME}"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def version(api: Client) -> str:
    found: str = (await api.get(WIDGETS))["metadata"]["resourceVersion"]
    return found


async def test_changes_are_seen_in_order(api: Client) -> None:
    async with api.watch(WIDGETS, f"resourceVersion={await version(api)}") as events:
        await api.create(WIDGETS, widget("a"))
        await api.patch(f"{WIDGETS}/a", {"spec": {"size": 6}})
        await api("DELETE", f"{WIDGETS}/a")
        assert await events.seen(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_goes_on_where_the_last_one_ended(api: Client) -> None:
    made = await api.create(WIDGETS, widget("a"))
    await api.patch(f"{WIDGETS}/a", {"spec": {"size": 6}})
    async with api.watch(WIDGETS, f"resourceVersion={made['metadata']['resourceVersion']}") as events:
        assert await events.seen(1) == [("MODIFIED", "a")]


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Client) -> None:
    await api.create(WIDGETS, widget("a"))
    async with api.watch(WIDGETS) as events:
        assert await events.seen(1) == [("ADDED", "a")]


async def test_initial_events_are_closed_by_a_marked_bookmark(api: Client) -> None:
    await api.create(WIDGETS, widget("a"))
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(WIDGETS, query) as events:
        assert await events.seen(1) == [("ADDED", "a")]
        mark = await events.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["metadata"]["resourceVersion"] == await version(api)


async def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(api: Client) -> None:
    query = f"labelSelector=tier%3Dgold&resourceVersion={await version(api)}"
    async with api.watch(WIDGETS, query) as events:
        await api.create(WIDGETS, widget("a"))
        await api.patch(f"{WIDGETS}/a", {"metadata": {"labels": {"tier": "gold"}}})
        await api.patch(f"{WIDGETS}/a", {"metadata": {"labels": {"tier": "tin"}}})
        assert await events.seen(2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_version_that_is_too_old_is_told_by_an_error_event(api: Client) -> None:
    async with api.watch(WIDGETS, "resourceVersion=1") as events:
        event = await events.next()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.next() is None


async def test_a_version_of_the_future_sends_the_client_back_to_a_list(api: Client) -> None:
    async with api.watch(WIDGETS, "resourceVersion=999999999") as events:
        assert (await events.next())["object"]["code"] == 410


async def test_a_watch_ends_in_time_with_a_last_bookmark(api: Client) -> None:
    async with api.watch(WIDGETS, "timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=0") as events:
        mark = await events.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["resourceVersion"] == await version(api)
        assert await events.next() is None


async def test_a_watch_without_bookmarks_gets_none(api: Client) -> None:
    async with api.watch(WIDGETS, "timeoutSeconds=1&resourceVersion=0") as events:
        assert await events.next() is None


async def test_a_table_watch_names_its_columns_once(api: Client) -> None:
    async with api.watch(WIDGETS, f"resourceVersion={await version(api)}", Accept=TABLE) as events:
        await api.create(WIDGETS, widget("a"))
        await api.create(WIDGETS, widget("b"))
        first, second = [(await events.next())["object"] for _ in range(2)]
    assert [column["name"] for column in first["columnDefinitions"]][:2] == ["Name", "Size"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][0] == "b"


async def test_a_watch_ends_when_its_kind_is_withdrawn(api: Client) -> None:
    await api.create(WIDGETS, widget("a"))
    async with api.watch(WIDGETS, f"resourceVersion={await version(api)}") as events:
        await api("DELETE", CRD)
        assert (await events.next())["type"] in ("MODIFIED", "DELETED")
        while await events.next() is not None:
            pass


async def test_long_bursts_arrive_whole(api: Client) -> None:
    async with api.watch(WIDGETS, f"resourceVersion={await version(api)}") as events:
        names = [f"w-{number:04}" for number in range(300)]
        await asyncio.gather(*[api.create(WIDGETS, widget(name, extra={"text": "x" * 2000})) for name in names])
        seen = {name for _, name in await events.seen(300)}
    assert seen == set(names)


async def test_a_client_that_hangs_up_is_forgotten(plane: APIServer, api: Client) -> None:
    async with api.watch(WIDGETS, "resourceVersion=0"):
        assert plane.watches == 1
    async with asyncio.timeout(180):
        while plane.watches:
            await api.get("/version")


async def test_stopping_the_plane_ends_its_watches(limits: Limits) -> None:
    plane = APIServer(APIServerConfig(crds=(WIDGET_CRD,), limits=limits))
    await plane.__aenter__()
    async with client_of(plane) as api, api.watch(WIDGETS, "resourceVersion=0") as events:
        stopping = asyncio.create_task(plane.__aexit__(None, None, None))
        assert await events.next() is None
        await stopping


class TestRegularBookmarks:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(bookmark_seconds=0.02)

    async def test_an_idle_watch_learns_its_place(self, api: Client) -> None:
        async with api.watch(WIDGETS, "allowWatchBookmarks=true&resourceVersion=0") as events:
            before = await events.next()
            await api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "elsewhere"}})
            after = await events.next()
            while after["object"]["metadata"]["resourceVersion"] == before["object"]["metadata"]["resourceVersion"]:
                after = await events.next()
        assert {before["type"], after["type"]} == {"BOOKMARK"}
        assert after["object"]["kind"] == "Widget"


def test_an_event_is_serialised_once_for_all_watchers() -> None:
    lines, obj = EventLines(), {"kind": "Widget", "metadata": {"name": "a"}}
    first = lines.plain(WatchEvent("ADDED", obj, "1"))
    assert first == b'{"type":"ADDED","object":{"kind":"Widget","metadata":{"name":"a"}}}\n'
    assert lines.plain(WatchEvent("ADDED", obj, "1")) is first
    assert lines.plain(WatchEvent("MODIFIED", obj, "1")) is not first
    assert lines.plain(WatchEvent("ADDED", dict(obj), "1")) is not first


def test_what_is_kept_for_other_watchers_is_bounded() -> None:
    lines = EventLines(max_bytes=1000)
    for number in range(100):
        lines.plain(WatchEvent("ADDED", {"number": number, "text": "x" * 80}, "1"))
    assert 1 <= len(lines) <= 10
    lines.plain(WatchEvent("ADDED", {"text": "x" * 2000}, "1"))
    assert len(lines) == 0


async def test_a_watch_that_cannot_be_served_ends_with_an_error_and_not_with_a_hole(
    plane: APIServer, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise RuntimeError("boom")

    async with api.watch(WIDGETS, f"resourceVersion={await version(api)}") as events:
        monkeypatch.setattr(EventLines, "plain", fail)
        await api.create(WIDGETS, widget("a"))
        event = await events.next()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
        assert "boom" not in event["object"]["message"]
        assert await events.next() is None
    assert plane.watches == 0
