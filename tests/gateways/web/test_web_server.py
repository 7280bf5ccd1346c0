"""The web view over HTTP: who gets in, what a page of others can't do, and what each answer says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from api.names import AUTOSCALER_MAX_ANNOTATION, AUTOSCALER_MIN_ANNOTATION
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, Ref
from nodewright.cli.web.serving import web_server
from nodewright.gateways.cloudpool.listener import ListenerOptions
from nodewright.gateways.web.assets import POLICY
from nodewright.gateways.web.server import COOKIE, WebServer
from nodewright.gateways.web.source import Source
from tests.builders import Builder, machine, machine_deployment, machine_set
from tests.gateways.cloudpool.conftest import quiet_logs as quiet_logs  # noqa: PLC0414 - a fixture
from tests.gateways.cloudpool.conftest import town as town  # noqa: PLC0414 - a fixture
from tests.runtime.town import Town

JSON = {"Content-Type": "application/json"}


@dataclass
class Browser:
    server: WebServer
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(self.server.url + path, headers=headers) as answer:
            body = await answer.read()
            return answer.status, json.loads(body) if answer.content_type == "application/json" else body.decode()

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        data = json.dumps(body)
        async with self.session.post(self.server.url + path, data=data, headers={**JSON, **headers}) as answer:
            return answer.status, await answer.json()

    async def login(self) -> None:
        status, said = await self.post("/login", {"token": token_of(self.server)})
        assert status == 200, said

    async def events(self, wanted: str, found: Any) -> Any:
        """The first value of the event ``wanted`` for which ``found`` is true."""
        async with self.session.get(f"{self.server.url}/api/events") as stream, asyncio.timeout(180):
            name = ""
            async for line in stream.content:
                field, _, text = line.decode().rstrip("\n").partition(": ")
                name = text if field == "event" else name
                if field == "data" and name == wanted and found(value := json.loads(text)):
                    return value
        raise AssertionError(f"no such {wanted} was told")


def declared(builder: Builder | dict[str, Any]) -> dict[str, Any]:
    """As a person writes it."""
    obj = builder if isinstance(builder, dict) else builder.build()
    names = ("name", "namespace", "labels", "annotations", "ownerReferences")
    kept = {name: obj["metadata"][name] for name in names if name in obj["metadata"]}
    return {name: each for name, each in {**obj, "metadata": kept}.items() if name != "status"}


def token_of(server: WebServer) -> str:
    return server.link.partition("#token=")[2]


@asynccontextmanager
async def viewing(town: Town, **options: Any) -> AsyncIterator[Browser]:
    jar = aiohttp.CookieJar(unsafe=True)
    server = web_server(town.connection, ListenerOptions(port=0), **options)
    async with server, aiohttp.ClientSession(cookie_jar=jar) as session:
        yield Browser(server, session)


async def test_what_was_read_ahead_is_what_the_first_viewer_sees(town: Town) -> None:
    await town.client.create(MACHINE, declared(machine("m-0")))
    async with viewing(town) as browser:
        await asyncio.gather(browser.server.read_ahead(), browser.login())
        fleet = await browser.events("fleet", lambda value: value["total"])
    assert fleet["total"] == 1


async def test_the_link_is_good_once_and_nothing_is_told_without_it(town: Town) -> None:
    async with viewing(town) as browser:
        assert (await browser.get("/api/session"))[0] == 401
        assert (await browser.post("/login", {"token": "guessed"}))[0] == 403
        await browser.login()
        assert (await browser.get("/api/session"))[0] == 200
        status, said = await browser.post("/login", {"token": token_of(browser.server)})
        assert (status, "used already" in said["error"]) == (403, True)
        browser.session.cookie_jar.clear()
        assert (await browser.get("/api/machines"))[0] == 401


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(town: Town) -> None:
    async with viewing(town) as browser:
        data = json.dumps({"token": token_of(browser.server)})
        async with browser.session.post(f"{browser.server.url}/login", data=data, headers=JSON) as answer:
            cookie = answer.cookies[COOKIE]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_another_page_can_not_ask_through_the_browser(town: Town, headers: dict[str, str], status: int) -> None:
    async with viewing(town) as browser:
        await browser.login()
        assert (await browser.get("/api/machines", **headers))[0] == status
        assert (await browser.post("/login", {"token": "x"}, **headers))[0] == status


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/nothing.js", "/api/session", "/api/nothing", "/x"])
async def test_every_answer_has_the_policy(town: Town, path: str) -> None:
    async with viewing(town) as browser:
        await browser.login()
        async with browser.session.get(browser.server.url + path) as answer:
            assert answer.headers["Content-Security-Policy"] == POLICY
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/__init__.py", "/static/"]
)
async def test_only_the_pages_own_files_are_served(town: Town, path: str) -> None:
    async with viewing(town) as browser, browser.session.get(browser.server.url + path) as answer:
        assert answer.status == 404


async def test_a_change_is_told_to_who_looks(town: Town) -> None:
    async with viewing(town) as browser:
        await browser.login()
        waiting = asyncio.create_task(browser.events("fleet", lambda fleet: fleet["total"] == 1))
        await town.client.create(MACHINE, declared(machine("m-0")))
        fleet = await waiting
        assert fleet["fields"] == ["namespace", "cluster", "owner", "zone", "version", "state"]
        assert [cell[-1] for cell in fleet["cells"]] == [1]
        assert fleet["unread"] == {}


async def test_a_list_is_shown_without_waiting_for_more(town: Town) -> None:
    """It brings all there is, so nothing is gathered; what a watch brings is, until the time is over."""
    await town.client.create(MACHINE_SET, declared(machine_set("web")))
    async with Source(town.client.named("test")) as source, asyncio.timeout(180):
        await town.until(lambda: not source.unread and bool(source.objects(MACHINE_SET)))
        await source.gather(3600)
        await town.client.create(MACHINE, declared(machine("web-1")))
        while not source.objects(MACHINE):
            await source.changes(source.version, 20)
        gathering = asyncio.create_task(source.gather(3600))
        await asyncio.sleep(0)
        assert not gathering.done()
        gathering.cancel()


async def test_problems_are_those_of_status(town: Town) -> None:
    sick = machine("m-0").pending("QuotaExceeded", "hosts: 2 of 2 are used").build()
    created = await town.client.create(MACHINE, declared(sick))
    ref = Ref(MACHINE, Key("default", "m-0"), created["metadata"]["uid"])
    await town.client.patch_status(ref, sick["status"])
    async with viewing(town) as browser:
        await browser.login()
        found = await browser.events("problems", lambda told: told.get("problems"))
        assert any(each["reason"] == "QuotaExceeded" for each in found["problems"])


async def test_each_view_answers_on_a_small_fleet(town: Town) -> None:
    deployment = await town.client.create(MACHINE_DEPLOYMENT, declared(machine_deployment("web")))
    await town.client.create(MACHINE_SET, declared(machine_set("web-1").of(deployment)))
    await town.client.create(MACHINE, declared(machine("m-0")))
    async with viewing(town) as browser:
        await browser.login()
        await browser.events("fleet", lambda fleet: fleet["total"] == 1 and fleet["counts"]["machinesets"] == 1)
        (row,) = (await browser.get("/api/machines?state=coming+up"))[1]["machines"]
        assert row["name"] == "m-0"
        assert (await browser.get("/api/machines?state=failed"))[1]["machines"] == []
        (rollout,) = (await browser.get("/api/rollouts"))[1]["rollouts"]
        assert (rollout["name"], len(rollout["lanes"])) == ("web", 1)
        assert (await browser.get("/api/deletions"))[1]["total"] == 0
        (group,) = (await browser.get("/api/sizes"))[1]["groups"]
        assert group["writers"][0]["manager"]
        assert (await browser.get("/api/accounts"))[0] == 200
        life = (await browser.get("/api/life?namespace=default&name=m-0"))[1]
        assert life["stages"][0]["name"] == "Host is made"
        tree = (await browser.get("/api/describe?kind=Machine&namespace=default&name=m-0"))[1]
        assert tree["object"]["name"] == "Machine/m-0"
        assert (await browser.get("/api/autoscaler"))[1]["groups"] == []


async def test_the_autoscaler_is_shown_whose_groups_are_like_the_hosts_of_their_provider(town: Town) -> None:
    """What hosts would be like is looked up in the loop of the server, the decision is made beside it."""
    group = declared(machine_deployment("pool"))
    group["metadata"]["annotations"] = {AUTOSCALER_MIN_ANNOTATION: "0", AUTOSCALER_MAX_ANNOTATION: "5"}
    await town.client.create(MACHINE_DEPLOYMENT, group)
    async with viewing(town) as browser:
        await browser.login()
        status, said = await browser.get("/api/autoscaler")
        assert (status, [each["max"] for each in said["groups"]]) == (200, [5])


async def test_what_is_not_there_or_makes_no_sense_is_said(town: Town) -> None:
    async with viewing(town) as browser:
        await browser.login()
        assert (await browser.get("/api/describe?kind=Machine&namespace=default&name=x"))[0] == 404
        assert (await browser.get("/api/describe?kind=Secret&namespace=default&name=x"))[0] == 400
        assert (await browser.get("/api/life?namespace=default&name=x"))[0] == 404
        assert (await browser.get("/api/machines?offset=-1"))[0] == 400
        assert (await browser.post("/api/plan", {"manifests": 3}))[0] == 400
        assert (await browser.post("/api/plan", {"manifests": "kind: ["}))[0] == 422
        assert (await browser.post("/login", [1]))[0] == 400


async def test_a_plan_is_made_and_nothing_is_written(town: Town) -> None:
    wanted = machine_deployment("web").replicas(2)
    async with viewing(town) as browser:
        await browser.login()
        status, plan = await browser.post("/api/plan", {"manifests": json.dumps(declared(wanted))})
        assert status == 200, plan
        assert {each["kind"] for each in plan["objects"]} >= {"MachineDeployment", "MachineSet", "Machine"}
    assert (await town.client.list_page(MACHINE_DEPLOYMENT)).items == []


async def test_with_tokens_of_viewers_each_is_asked_for_one(town: Town) -> None:
    assert town.connection.tokens is not None or town.connection.client_key
    async with viewing(town, own_tokens=True) as browser:
        assert browser.server.link == browser.server.url
        status, said = await browser.post("/login", {"token": "of-nobody"})
        assert (status, "does not let you in" in said["error"]) == (403, True)
        assert (await browser.get("/api/session"))[0] == 401


async def test_who_logs_out_is_out(town: Town) -> None:
    async with viewing(town) as browser:
        await browser.login()
        await browser.post("/logout", {})
        assert (await browser.get("/api/session"))[0] == 401


async def test_a_gateway_writes_nothing(town: Town) -> None:
    """The whole surface: what is not GET is the login, the logout and the dry run."""
    async with viewing(town) as browser:
        await browser.login()
        for method in ("PUT", "PATCH", "DELETE"):
            async with browser.session.request(method, f"{browser.server.url}/api/machines") as answer:
                assert answer.status == 405


def test_the_page_names_nothing_of_another_host() -> None:
    from nodewright.gateways.web.assets import FOLDER  # noqa: PLC0415

    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path.name
        assert "innerHTML" not in text, path.name
        assert "insertAdjacentHTML" not in text, path.name
