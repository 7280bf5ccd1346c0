"""A deleted Namespace terminates before its contents go; cluster-info is public only if that was asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from nodewright.apiserver.app import APIServer, APIServerConfig
from tests.apiserver.app.client import Client, answers, client_of

SHOP = "/api/v1/namespaces/shop"
MAPS = f"{SHOP}/configmaps"
INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
FOREVER = 3600.0


@pytest.fixture
def grace() -> float:
    """Seconds that a deleted namespace keeps its contents."""
    return FOREVER


@pytest.fixture
async def shop(grace: float) -> AsyncIterator[Client]:
    """A plane with a namespace that has something in it."""
    config = APIServerConfig(namespace_grace_seconds=grace)
    async with APIServer(config) as plane, client_of(plane) as api:
        await api.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        await api.create(MAPS, {"metadata": {"name": "a"}})
        await api.create(MAPS, {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
        yield api


async def test_a_deleted_namespace_is_terminating_and_keeps_its_contents_for_a_moment(shop: Client) -> None:
    answer = await shop("DELETE", SHOP)
    assert answer.status == 200
    found = await shop.get(SHOP)
    assert found["metadata"]["deletionTimestamp"]
    assert (found["status"]["phase"], found["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])
    assert [item["metadata"]["name"] for item in (await shop.get(MAPS))["items"]] == ["a", "held"]
    # What `kubectl delete -f` of a file does whose first object is the Namespace.
    assert (await shop("DELETE", f"{MAPS}/a")).status == 200
    assert (await shop("DELETE", SHOP)).status == 200


async def test_nothing_is_created_in_a_namespace_that_terminates(shop: Client) -> None:
    await shop("DELETE", SHOP)
    answer = await shop("POST", MAPS, {"metadata": {"name": "late"}})
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert answer.json["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace shop is being terminated",
            "field": "metadata.namespace",
        }
    ]


@pytest.mark.parametrize("grace", [0.05])
async def test_its_contents_go_and_then_the_namespace_and_finalizers_are_waited_for(shop: Client) -> None:
    await shop("DELETE", SHOP)
    await answers(shop, f"{MAPS}/a", 404)
    held = await shop.get(f"{MAPS}/held")
    assert held["metadata"]["deletionTimestamp"]
    assert (await shop.get(SHOP))["status"]["phase"] == "Terminating"
    await shop.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}})
    await answers(shop, SHOP, 404)


async def test_cluster_info_is_public_if_asked_for_and_nothing_else_is() -> None:
    config = APIServerConfig(anonymous_cluster_info=True)
    async with APIServer(config) as plane, client_of(plane) as api, client_of(plane, token="") as nobody:
        assert (await nobody("GET", INFO)).status == 404
        made = await api.create(INFO.rpartition("/")[0], {"metadata": {"name": "cluster-info"}, "data": {"a": "b"}})
        assert await nobody.get(INFO) == made
        for method, path in (
            ("GET", INFO.rpartition("/")[0]),
            ("GET", f"{INFO.rpartition('/')[0]}/other"),
            ("GET", "/api/v1/namespaces/default/configmaps/cluster-info"),
            ("GET", f"{INFO}/status"),
            ("GET", "/apis"),
            ("PUT", INFO),
            ("PATCH", INFO),
            ("DELETE", INFO),
        ):
            answer = await nobody(method, path, None if method in ("GET", "DELETE") else {})
            assert answer.status == 401, (method, path)
    async with APIServer(config) as plane, client_of(plane, token="wrong") as stranger:
        assert (await stranger("GET", INFO)).status == 401


async def test_cluster_info_is_private_by_default(plane: APIServer) -> None:
    async with client_of(plane, token="") as nobody:
        assert (await nobody("GET", INFO)).status == 401


@pytest.mark.parametrize(("stated", "code"), [("0", 201), ("", 201), ("00", 201), ("abc", 201), ("7", 400)])
async def test_a_version_at_create_is_refused_only_if_it_names_a_state(api: Client, stated: str, code: int) -> None:
    body = {"metadata": {"name": "v", "resourceVersion": stated}}
    answer = await api("POST", "/api/v1/namespaces/default/configmaps", body)
    assert answer.status == code, answer.text
    if code == 201:
        assert int(answer.json["metadata"]["resourceVersion"]) > 0


async def test_an_update_at_version_zero_is_one_without_a_version(api: Client) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await api.create(path, {"metadata": {"name": "v"}})
    body = {"metadata": {"name": "v", "resourceVersion": "0"}, "data": {"a": "b"}}
    assert (await api("PUT", f"{path}/v", body)).status == 200
