"""The autoscaler at work: pending pods make a group grow from nothing, and it shrinks when they are gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from api import names
from controllers.autoscaler.options import AutoscalerOptions, ShrinkOptions
from controllers.autoscaler.room import AutoscalerRoom
from controllers.kernel.refs import CONFIG_MAP, MACHINE, MACHINE_DEPLOYMENT, NODE, POD, Ref, key_of
from nodewright.runtime import wiring
from tests.runtime.binder import pod_of, pods_on_nodes, replica_set, scheduler
from tests.runtime.town import FAST, Town

QUICK = AutoscalerOptions(
    shrink=ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0), delay_after_failure=timedelta(0)),
    scan_interval=timedelta(seconds=0.1),
)


def with_autoscaler(town: Town, options: AutoscalerOptions = QUICK) -> None:
    town.options = replace(town.options, rooms=(*wiring.rooms(), AutoscalerRoom(options)))


async def group(town: Town, name: str, least: int, most: int, **config: Any) -> None:
    labels = {"pool": name}
    spec = {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": {**FAST, **config}}}
    bounds = {names.AUTOSCALER_MIN_ANNOTATION: str(least), names.AUTOSCALER_MAX_ANNOTATION: str(most)}
    body = {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default", "annotations": bounds},
        "spec": {
            "replicas": least,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    await town.client.create(MACHINE_DEPLOYMENT, body)


def size(town: Town, name: str) -> int:
    found = next(body for body in town.objects(MACHINE_DEPLOYMENT) if body["metadata"]["name"] == name)
    return int(found["spec"]["replicas"])


async def test_a_group_grows_from_nothing_and_shrinks_to_its_minimum(town: Town) -> None:
    with_autoscaler(town)
    await group(town, "workers", 0, 10, cpus=4)
    async with town.controllers(), scheduler(town):
        web = await replica_set(town, "web")
        for number in range(8):
            await pod_of(town, web, f"web-{number}")
        await town.until(lambda: pods_on_nodes(town) == 8)
        assert 2 <= size(town, "workers") <= 3
        for pod in town.objects(POD):
            await town.client.delete(Ref(POD, key_of(pod)))
        await town.until(lambda: size(town, "workers") == 0 and not town.objects(MACHINE) and not town.objects(NODE))
    assert {body["metadata"]["name"] for body in town.objects(CONFIG_MAP)} >= {names.AUTOSCALER_MEMORY}
