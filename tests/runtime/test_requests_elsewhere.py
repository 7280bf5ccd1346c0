"""ProvisioningRequests of workload clusters: read there, answered there, served from that cluster's own groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api import provisioning_names
from controllers.autoscaler.options import AutoscalerOptions, ClusterChoice
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.conditions import find
from controllers.kernel.refs import EVENT, NODE, PROVISIONING_REQUEST, Key, Kind
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.cluster_wiring import for_each_cluster
from tests.runtime.country import IMPATIENT, Country, Elsewhere
from tests.runtime.test_autoscaler import group, size
from tests.runtime.test_many_clusters import waits
from tests.runtime.test_provisioning_requests import QUICK, SOON, request
from tests.runtime.test_workload_autoscaler import bound, explained
from tests.runtime.town import Town

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
MANY = replace(QUICK, clusters=ClusterChoice(home=False))
ONE = replace(QUICK, cluster=Key("default", "blue"))


def serving(town: Town, options: AutoscalerOptions) -> None:
    scaling = (AutoscalerReconciler(options), ProvisioningRequestReconciler(options, SOON))
    workloads = replace(IMPATIENT, unreachable_after=10.0, probe_timeout=5.0, missing_pause=0.2)
    town.options = replace(
        town.options,
        reconcilers=(*wiring.reconcilers(), *for_each_cluster(scaling)),
        bind_pods=True,
        workloads=workloads,
    )


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    return Country(town, tmp_path)


async def install(there: KubeClient) -> None:
    (crd,) = (each for each in load_crds() if each["metadata"]["name"] == "provisioningrequests.autoscaling.x-k8s.io")
    await there.create(CRD, crd)


async def ask(there: KubeClient, name: str, count: int) -> None:
    town: Any = SimpleNamespace(client=there)
    await request(town, name, count)


@asynccontextmanager
async def with_crd(plane: Elsewhere) -> AsyncIterator[KubeClient]:
    async with plane.scheduler() as there:
        await install(there)
        yield there


def said(plane: Elsewhere, name: str, condition: str) -> tuple[str, str]:
    found = next((each for each in plane.objects(PROVISIONING_REQUEST) if each["metadata"]["name"] == name), {})
    told: Any = find((found.get("status") or {}).get("conditions"), condition) or {}
    return told.get("status", ""), told.get("reason", "")


@pytest.mark.parametrize("options", [MANY, ONE], ids=["many", "one"])
async def test_nodes_of_its_own_groups_come_and_it_is_answered_where_it_was_made(
    country: Country, options: AutoscalerOptions
) -> None:
    town = country.town
    serving(town, options)
    async with country.elsewhere("blue", "green") as (blue, green):
        for name in ("blue", "green"):
            await group(town, name, 0, 3, cluster=name, cpus=4)
        async with with_crd(blue) as there, town.controllers():
            await ask(there, "job", 2)
            await town.until(lambda: said(blue, "job", "Provisioned") == ("True", "CapacityIsProvisioned"))
            assert (size(town, "blue"), size(town, "green")) == (2, 0)
            (found,) = blue.objects(PROVISIONING_REQUEST)
            booked = set(found["status"]["provisioningClassDetails"][provisioning_names.BOOKED_NODES_DETAIL].split())
            assert booked == {node["metadata"]["name"] for node in blue.objects(NODE)}
            assert not green.objects(NODE)
            assert not town.objects(PROVISIONING_REQUEST), "it is nowhere else"
            await ask(there, "more", 2)
            await town.until(lambda: said(blue, "more", "Provisioned") == ("False", "CapacityIsNotFound"))
            assert size(town, "green") == 0, "there would be room in another cluster's group"


async def test_a_cluster_without_the_definition_is_scaled_all_the_same_and_says_what_is_missing(
    country: Country,
) -> None:
    """And once it is there, requests are served without a restart."""
    town = country.town
    serving(town, MANY)
    async with country.elsewhere("blue") as (blue,), AsyncExitStack() as stack:
        await group(town, "blue", 0, 4, cluster="blue", cpus=4)
        async with town.controllers():
            there = await waits(blue, 1, stack)
            await town.until(lambda: bound(blue) == 1)
            assert country.said("blue")["status"] == "True"
            await town.until(lambda: bool(_missing(town)))
            assert "provisioningrequests.autoscaling.x-k8s.io" in _missing(town)[0]
            assert "nodewright install" in _missing(town)[0]
            assert "asks for 1 Node" in await asyncio.to_thread(explained, town, "md", "blue")
            await install(there)
            await ask(there, "job", 1)
            await town.until(lambda: said(blue, "job", "Provisioned")[0] == "True")


def _missing(town: Town) -> list[str]:
    return [e["message"] for e in town.objects(EVENT) if e["reason"] == "CustomResourceDefinitionMissing"]
