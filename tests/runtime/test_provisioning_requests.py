"""ProvisioningRequests at work: Nodes come for them all at once, their pods take the room, and a part is never left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import provisioning_names
from controllers.autoscaler.backoff import Pauses
from controllers.autoscaler.options import AutoscalerOptions, HealthOptions, ShrinkOptions
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.conditions import find
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_DEPLOYMENT,
    NODE,
    POD,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    Key,
    Kind,
    Ref,
)
from controllers.provisioningrequest.options import Limits, ProvisioningOptions
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from nodewright.runtime.settings import wiring
from tests.runtime.test_autoscaler import group, size
from tests.runtime.town import Town

QUICK = AutoscalerOptions(
    shrink=ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0), delay_after_failure=timedelta(0)),
    health=HealthOptions(pauses=Pauses(timedelta(seconds=1), timedelta(seconds=1))),
    scan_interval=timedelta(seconds=0.2),
    provisioning_requests=True,
)
SOON = ProvisioningOptions(Limits(first_pause=timedelta(hours=1)))


def with_requests(town: Town, options: AutoscalerOptions = QUICK) -> None:
    reconcilers = (*wiring.reconcilers(), AutoscalerReconciler(options), ProvisioningRequestReconciler(options, SOON))
    town.options = replace(town.options, reconcilers=reconcilers, bind_pods=True)


async def request(town: Town, name: str, count: int, cpu: str = "3") -> None:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    template = {"metadata": {"labels": {"job": name}}, "spec": {"containers": [container]}}
    await town.client.create(
        POD_TEMPLATE, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": meta, "template": template}
    )
    sets = [{"podTemplateRef": {"name": name}, "count": count}]
    spec = {"provisioningClassName": provisioning_names.ATOMIC_SCALE_UP, "podSets": sets}
    body = {
        "apiVersion": provisioning_names.PROVISIONING_API_VERSION,
        "kind": "ProvisioningRequest",
        "metadata": meta,
        "spec": spec,
    }
    await town.client.create(PROVISIONING_REQUEST, body)


async def consumer(town: Town, of: str, name: str, cpu: str = "3") -> None:
    annotations = {
        provisioning_names.CONSUME_REQUEST_ANNOTATION: of,
        provisioning_names.CLASS_NAME_ANNOTATION: provisioning_names.ATOMIC_SCALE_UP,
    }
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    await town.client.create(
        POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
    )


def said(town: Town, name: str, condition: str) -> tuple[str, str]:
    found = next((each for each in town.objects(PROVISIONING_REQUEST) if each["metadata"]["name"] == name), {})
    told: Any = find((found.get("status") or {}).get("conditions"), condition) or {}
    return told.get("status", ""), told.get("reason", "")


async def test_nodes_come_and_the_pods_take_them(town: Town) -> None:
    with_requests(town)
    for name in ("left", "right"):
        await group(town, name, 0, 3, cpus=4)
    async with town.controllers():
        await request(town, "job", 5)
        await town.until(lambda: said(town, "job", "Provisioned") == ("True", "CapacityIsProvisioned"))
        assert size(town, "left") + size(town, "right") == 5
        (found,) = town.objects(PROVISIONING_REQUEST)
        booked = set(found["status"]["provisioningClassDetails"][provisioning_names.BOOKED_NODES_DETAIL].split())
        assert booked == {node["metadata"]["name"] for node in town.objects(NODE)}
        for number in range(5):
            await consumer(town, "job", f"job-{number}")
        await town.until(lambda: said(town, "job", "BookingExpired") == ("True", "CapacityBookingConsumed"))
        assert {pod["spec"]["nodeName"] for pod in town.objects(POD)} == booked
        assert size(town, "left") + size(town, "right") == 5, "no second scale-up"


@pytest.mark.slow
async def test_a_stock_out_leaves_nothing_behind(town: Town) -> None:
    with_requests(town)
    await group(town, "left", 0, 3, cpus=4)
    await group(town, "right", 0, 3, cpus=4, cloud={"name": "small", "zones": {"z": 1}})
    async with town.controllers():
        await request(town, "job", 5)
        await town.until(lambda: said(town, "job", "Provisioned")[1] == "ProvisioningInProgress")
        await town.until(lambda: said(town, "job", "Provisioned")[1] == "CapacityIsNotFound")
        await town.until(lambda: not town.objects(MACHINE) and not town.objects(NODE))
        assert (size(town, "left"), size(town, "right")) == (0, 0)
    assert town.hosts() == 0


@pytest.mark.slow
async def test_who_deletes_a_request_half_way_gives_the_nodes_back(town: Town) -> None:
    with_requests(town)
    await group(town, "left", 0, 3, cpus=4, bootSeconds=0.5)
    async with town.controllers():
        await request(town, "job", 3)
        await town.until(lambda: size(town, "left") == 3)
        await town.client.delete(Ref(PROVISIONING_REQUEST, Key("default", "job")))
        await town.until(lambda: size(town, "left") == 0 and not town.objects(MACHINE))


async def test_the_older_version_is_served_with_the_same_fields(town: Town) -> None:
    await request(town, "job", 2)
    older = Kind("autoscaling.x-k8s.io", "v1beta1", "ProvisioningRequest", "provisioningrequests")
    found = await town.client.get(older, Key("default", "job"))
    assert found["apiVersion"] == "autoscaling.x-k8s.io/v1beta1"
    assert found["spec"]["podSets"] == [{"podTemplateRef": {"name": "job"}, "count": 2}]
    assert town.objects(MACHINE_DEPLOYMENT) == []


@pytest.mark.slow
async def test_a_thousand_small_requests_are_served_by_one_loop(town: Town) -> None:
    """Within the minute that ``until`` waits."""
    with_requests(town, replace(QUICK, scan_interval=timedelta(seconds=2)))
    await group(town, "wide", 20, 40, cpus=64, memory="512Gi")
    async with town.controllers():
        await town.until(lambda: town.ready() == 20)
        for start in range(0, 1000, 50):
            await asyncio.gather(*(request(town, f"job-{start + n}", 2, cpu="500m") for n in range(50)))
        await town.until(
            lambda: all(
                (find((each.get("status") or {}).get("conditions"), "Provisioned") or {}).get("status") == "True"
                for each in town.objects(PROVISIONING_REQUEST)
            )
        )
        assert size(town, "wide") == 20, "there was room for all of them"
