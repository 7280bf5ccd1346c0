"""Large answers and bodies leave nothing behind on a connection that stays open."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer, TestClient

from nodewright.apiserver.app.rendering import raw_answer
from tests.apiserver.app.client import Client

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_list_of_megabytes_arrives_whole_and_in_order(api: Client) -> None:
    text = {f"m{number:02}": f"{number:02}" * 50_000 for number in range(30)}
    for name, data in text.items():
        await api.create(MAPS, {"metadata": {"name": name}, "data": {"text": data}})
    for _ in range(2):  # the second one on the connection of the first
        found = (await api("GET", MAPS)).json["items"]
        assert {one["metadata"]["name"]: one["data"]["text"] for one in found if "text" in one["data"]} == text


@pytest.mark.parametrize("size", [1000, 1_000_000])
async def test_a_response_lets_go_of_its_body_once_it_is_sent(size: int) -> None:
    """aiohttp holds the last response of a connection until the next request."""
    made: list[web.Response] = []

    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        made.append(raw_answer(b"x" * size))
        return made[-1]

    async with RawTestServer(handler) as server, TestClient(server) as client:
        for method, arrives in (("GET", size), ("HEAD", 0), ("GET", size)):
            async with client.request(method, "/") as response:
                assert int(response.headers["Content-Length"]) == size
                assert await response.read() == b"x" * arrives
    assert [response.body for response in made] == [None] * 3
