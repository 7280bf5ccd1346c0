"""Faults that tests ask for, and the counts by which they judge."""

from __future__ import annotations

import aiohttp
import pytest

from nodewright.apiserver.app import APIServer
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.app.stats import RequestKey, Stats
from nodewright.apiserver.values import ApiError
from tests.apiserver.app.client import WIDGETS, Client
from tests.kubectl.manifests import WIDGETS as RESOURCE
from tests.kubectl.manifests import widget

CREATES = Match(verb="create", resource=RESOURCE)


async def test_the_nth_matching_request_is_refused(plane: APIServer, api: Client) -> None:
    plane.faults.answer(ApiError.too_many_requests("slow down", 3), CREATES, nth=2)
    await api.create(WIDGETS, widget("a"))
    refused = await api("POST", WIDGETS, widget("b"))
    assert (refused.status, refused.headers["Retry-After"]) == (429, "3")
    assert refused.json["details"]["retryAfterSeconds"] == 3
    await api.create(WIDGETS, widget("b"))
    assert plane.faults.hits == 1
    assert not plane.faults.active


async def test_several_in_a_row_are_refused_and_others_are_not(plane: APIServer, api: Client) -> None:
    plane.faults.answer(ApiError.internal("boom"), CREATES, times=2)
    assert (await api("GET", WIDGETS)).status == 200
    assert [(await api("POST", WIDGETS, widget("a"))).status for _ in range(3)] == [500, 500, 201]


async def test_a_fault_finds_its_object_by_name(plane: APIServer, api: Client) -> None:
    await api.create(WIDGETS, widget("a"))
    await api.create(WIDGETS, widget("b"))
    plane.faults.answer(ApiError.expired("gone"), Match(name="b"))
    assert (await api("GET", f"{WIDGETS}/a")).status == 200
    assert (await api("GET", f"{WIDGETS}/b")).status == 410


async def test_an_answer_can_be_lost_after_the_write_took_place(plane: APIServer, api: Client) -> None:
    plane.faults.lose_answer(CREATES)
    with pytest.raises(aiohttp.ClientError):
        await api("POST", WIDGETS, widget("a"))
    assert (await api("GET", f"{WIDGETS}/a")).status == 200


async def test_a_delayed_request_is_served(plane: APIServer, api: Client) -> None:
    plane.faults.delay(0.01, CREATES)
    assert (await api("POST", WIDGETS, widget("a"))).status == 201


async def test_watches_can_be_cut_silently_or_with_an_error(plane: APIServer, api: Client) -> None:
    async with api.watch(WIDGETS, "resourceVersion=0") as events:
        assert plane.faults.cut_watches("pods") == 0
        assert plane.faults.cut_watches(RESOURCE) == 1
        assert await events.next() is None
    async with api.watch(WIDGETS, "resourceVersion=0") as events:
        plane.faults.cut_watches(error=ApiError.expired("too old"))
        assert (await events.next())["object"]["code"] == 410
        assert await events.next() is None


async def test_faults_can_be_forgotten(plane: APIServer, api: Client) -> None:
    plane.faults.answer(ApiError.internal("boom"), times=100)
    plane.faults.clear()
    assert (await api("GET", WIDGETS)).status == 200


async def test_requests_are_counted_by_client_verb_and_resource(plane: APIServer, api: Client) -> None:
    plane.stats.reset()
    await api("POST", WIDGETS, widget("a"), User_Agent="robot/1.2 (linux)")
    await api("PATCH", f"{WIDGETS}/a/status", {}, User_Agent="robot/1.2", Content_Type="application/merge-patch+json")
    await api("GET", WIDGETS, User_Agent="robot")
    assert plane.stats.snapshot() == {
        RequestKey("robot", "create", RESOURCE, ""): 1,
        RequestKey("robot", "patch", RESOURCE, "status"): 1,
        RequestKey("robot", "list", RESOURCE, ""): 1,
    }
    assert plane.stats.writes(user_agent="robot") == 2
    assert plane.stats.count(subresource="status") == 1
    assert plane.stats.count(verbs=("list", "watch")) == 1
    assert plane.stats.writes(user_agent="kubectl") == 0
    plane.stats.reset()
    assert plane.stats.snapshot() == {}


def test_strangers_cannot_fill_the_counters() -> None:
    stats = Stats()
    for number in range(10_050):
        stats.record(RequestKey(f"agent-{number}", "get", "pods", ""))
    assert len(stats.snapshot()) <= 10_001
    assert stats.count() == 10_050
