"""Pods on the embedded control plane: bound where they fit, started by simulated kubelets, told why they wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.refs import NODE, POD, Key, Ref
from nodewright.apiserver.app.faults import Match
from nodewright.runtime.simulated import pods
from tests.runtime.town import Town

NO_NODES = "Unschedulable: no nodes available to schedule pods"


def pod(name: str, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [container], "initContainers": [{"name": "first", "image": "i"}]},
    }


def conditions(body: dict[str, Any]) -> dict[str, Any]:
    return {each["type"]: each for each in body["status"].get("conditions") or ()}


def running(town: Town) -> int:
    return sum(each["status"].get("phase") == "Running" for each in town.objects(POD))


def told(body: dict[str, Any]) -> str:
    scheduled = conditions(body).get("PodScheduled") or {}
    return f"{scheduled.get('reason')}: {scheduled.get('message')}"


async def test_pods_wait_for_nodes_and_then_run(town: Town) -> None:
    """The simulated hosts have two cores each."""
    town.options = replace(town.options, bind_pods=True)
    for index in range(5):
        await town.client.create(POD, pod(f"p-{index}"))
    async with town.controllers():
        await town.until(lambda: {told(each) for each in town.objects(POD)} == {NO_NODES})
        await town.machine_set("a", 2, cpus=2)
        await town.until(lambda: running(town) == 4)
        await town.until(lambda: sum("2 Insufficient cpu" in told(each) for each in town.objects(POD)) == 1)
        before = town.plane.stats.writes()
        found = await town.client.get(POD, Key("default", "p-0"))
        assert conditions(found)["PodScheduled"]["status"] == conditions(found)["Ready"]["status"] == "True"
        assert found["status"]["containerStatuses"][0]["state"]["running"]
        assert found["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert town.plane.stats.writes() == before, "nothing is left to write"
        await town.client.evict(Ref(POD, Key("default", "p-0"), found["metadata"]["uid"]))
        await town.until(lambda: running(town) == 4)
    assert sorted(Counter(each["spec"]["nodeName"] for each in town.objects(POD)).values()) == [2, 2]


async def test_pods_of_another_cluster_s_nodes_are_nobodys_to_start(town: Town) -> None:
    """Only Nodes of simulated hosts have kubelets here."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}, "spec": {"providerID": "cloud://1"}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4", "pods": "10"}}
    await town.client.create(NODE, {**node, "status": ready})
    await town.client.create(POD, pod("p-0"))
    town.options = replace(town.options, bind_pods=True)
    async with town.controllers():
        await town.until(lambda: town.objects(POD)[0]["spec"].get("nodeName") == "real")
        await town.machine_set("a", 1, cpus=2)
        await town.client.create(POD, pod("p-1", cpu="2"))
        await town.client.create(POD, pod("p-2", cpu="2"))
        await town.until(lambda: running(town) == 1)
    assert {each["spec"]["nodeName"]: each["status"]["phase"] for each in town.objects(POD)}["real"] == "Pending"


def bound(name: str, node: str) -> dict[str, Any]:
    made = pod(name, cpu="100m")
    return {**made, "spec": {**made["spec"], "nodeName": node}}


async def test_what_an_api_server_takes_to_answer_holds_up_no_pod(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only decisions take a share of the time; kubelets decide nothing. With this share one would be the last."""
    monkeypatch.setattr(pods, "_SHARE", 1_000_000)
    town.plane.faults.delay(0.1, Match(verb="patch", resource="pods", subresource="status"), times=3)
    async with town.controllers():
        await town.machine_set("a", 1)
        await town.until(lambda: town.ready() == 1)
        node = town.objects(NODE)[0]["metadata"]["name"]
        for count in (1, 2, 3):
            await town.client.create(POD, bound(f"p-{count}", node))
            await town.until(lambda: running(town) == len(town.objects(POD)))


async def test_without_the_binder_pods_stay_where_they_are(town: Town) -> None:
    async with town.controllers():
        await town.client.create(POD, pod("p-0"))
        await town.machine_set("a", 1)
        await town.until(lambda: town.ready() == 1)
        await town.client.create(POD, bound("p-1", town.objects(NODE)[0]["metadata"]["name"]))
        await town.until(lambda: running(town) == 1)
    assert [each["status"]["phase"] for each in town.objects(POD)] == ["Pending", "Running"]
