"""A Cluster whose Secret names a hostile server says so, quotes nothing, and hurts nobody."""

from __future__ import annotations

import json as text
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from yarl import URL

from controllers.kernel.refs import CLUSTER
from nodewright.runtime.kube.servers import ServerPolicy, Tls
from providers.base.addresses import AddressPolicy
from tests.runtime.country import IMPATIENT, Country
from tests.runtime.hostile import MIB, SECRET_WORDS, Answer, Hostile, endless, head, json, says
from tests.runtime.town import Town

WORDS = SECRET_WORDS.encode()
PLAIN = replace(IMPATIENT, servers=ServerPolicy(Tls.PLAIN))


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    found = Country(town, tmp_path)
    town.options = replace(town.options, workloads=PLAIN)
    return found


def kubeconfig(server: str) -> bytes:
    return text.dumps(
        {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        }
    ).encode()


def lists(**items: Any) -> Answer:
    """Lists by plural; watches that stay open and say nothing are not needed."""

    def answer(target: str) -> Any:
        url = URL(target)
        if "watch" in url.query:
            return [head()]
        found = items.get(url.name, [])
        return json({"metadata": {"resourceVersion": "1"}, "items": found})(target)

    return answer


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, **more}


def pod(name: str, **more: Any) -> dict[str, Any]:
    found = named(name, **more)
    found["metadata"]["namespace"] = "default"
    return found


ANSWERS: dict[str, Answer] = {
    "redirect": says(WORDS, 302, "Location: http://127.0.0.1:1/" + SECRET_WORDS),
    "refusal": json({"kind": "Status", "code": 401, "reason": SECRET_WORDS, "message": SECRET_WORDS}, 401),
    "page": says(b"<html>" + WORDS, 200, "Content-Type: text/html"),
    "error page": says(b"<html>" + WORDS, 500, "Content-Type: text/html"),
    "no HTTP": lambda _: [WORDS + b"\r\n\r\n"],
    "endless": endless(b'{"items":[', b"{}," * MIB),
    "items": lists(nodes=5),
    "metadata": lists(nodes=[{"metadata": {"name": "n", "labels": {SECRET_WORDS: []}}}]),
    "nodes elsewhere refused": lambda target: lists()(target) if "/nodes" in target else says(WORDS, 403)(target),
}


async def _is_said(country: Country, answer: Answer, holds: Callable[[dict[str, Any]], bool]) -> None:
    async with Hostile(answer).serve() as server, country.elsewhere("green"), country.town.controllers():
        await country.cluster("evil")
        await country.secret("evil", kubeconfig(server.url))
        await country.machine_set("evil", 1)
        await country.machine_set("green", 1)
        await country.town.until(lambda: holds(country.said("evil")))
        await country.town.until(lambda: country.ready("green") == 1)
        (evil,) = [c for c in country.town.objects(CLUSTER) if c["metadata"]["name"] == "evil"]
        assert SECRET_WORDS not in text.dumps(evil)
        assert country.said("green")["status"] == "True"


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_what_it_answers_is_a_condition_of_that_cluster_alone(country: Country, answer: Answer) -> None:
    await _is_said(country, answer, lambda said: said.get("status") == "False" and said["reason"] == "Unreachable")


async def test_a_redirect_reaches_no_other_server(country: Country) -> None:
    async with Hostile(json({"items": [], "metadata": {}})).serve() as inner:
        answer = says(b"", 302, f"Location: {inner.url}/")
        await _is_said(country, answer, lambda said: said.get("status") == "False")
        assert inner.asked == []


async def test_an_address_that_is_refused_is_never_asked(country: Country) -> None:
    policy = ServerPolicy(Tls.PLAIN, AddressPolicy(loopback=False))
    country.town.options = replace(country.town.options, workloads=replace(PLAIN, servers=policy))
    async with Hostile(lists()).serve() as server, country.town.controllers():
        await country.cluster("evil")
        await country.secret("evil", kubeconfig(f"http://localhost:{urlsplit(server.url).port}"))
        await country.machine_set("evil", 1)
        await country.town.until(lambda: "--server-allow-cidrs" in country.said("evil").get("message", ""))
        assert server.asked == []


NESTED: dict[str, Any] = {
    "conditions": {"nodes": [named("n", status={"conditions": 5, "nodeInfo": [], "addresses": "a"})]},
    "provider id": {"nodes": [named("n", spec={"providerID": {"a": 1}, "taints": 7, "podCIDRs": 1})]},
    "containers": {"pods": [pod("p", spec={"nodeName": [1], "containers": "a", "volumes": {"a": 1}}, status={})]},
    "phase": {"pods": [pod("p", spec={"nodeName": "n", "containers": [1]}, status={"phase": [], "conditions": "x"})]},
    "leases": {"leases": [pod("n", spec={"renewTime": 5, "leaseDurationSeconds": "x"})]},
}


@pytest.mark.parametrize("items", NESTED.values(), ids=NESTED)
async def test_wrong_types_deep_inside_hurt_no_other_cluster(country: Country, items: dict[str, Any]) -> None:
    await _is_said(country, lists(**items), lambda said: bool(said.get("status")))
