"""One process scales many Clusters, each by itself: what happens to one concerns no other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api import names
from api.selectors import parse
from controllers.autoscaler.options import AutoscalerOptions, ClusterChoice
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.each_cluster import EachCluster
from controllers.kernel.refs import CLUSTER, CONFIG_MAP, MACHINE, MACHINE_DEPLOYMENT, NODE, POD, Key, Ref, key_of
from nodewright.runtime.manager import Manager
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.cluster_wiring import for_each_cluster
from nodewright.runtime.telemetry.plan_metrics import PLAN_METRICS
from tests.runtime.country import IMPATIENT, Country, Elsewhere
from tests.runtime.replicas import pod_of, replica_set
from tests.runtime.test_autoscaler import QUICK, group, reconciles, scaling_active, size
from tests.runtime.test_workload_autoscaler import bound
from tests.runtime.town import Town

MANY = replace(QUICK, clusters=ClusterChoice(home=False))
NAMES = ("blue", "green", "red")


def with_many(town: Town, options: AutoscalerOptions = MANY) -> None:
    many = for_each_cluster((AutoscalerReconciler(options),))
    town.options = replace(town.options, reconcilers=(*wiring.reconcilers(), *many), bind_pods=True)


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    country = Country(town, tmp_path)
    with_many(town)
    return country


def each_cluster(manager: Manager) -> EachCluster:
    (found,) = (each for each in manager.reconcilers if isinstance(each, EachCluster))
    return found


def config_maps(town: Town) -> set[str]:
    return {body["metadata"]["name"] for body in town.objects(CONFIG_MAP)}


def kept(cluster: str) -> set[str]:
    return {f"{name}.default.{cluster}" for name in (names.AUTOSCALER_MEMORY, names.AUTOSCALER_STATUS)}


def shown() -> dict[str, float]:
    """Whether it is safe to scale, by cluster."""
    return {
        sample.labels["cluster"]: sample.value
        for family in PLAN_METRICS.collect()
        if family.name == "cluster_autoscaler_cluster_safe_to_autoscale"
        for sample in family.samples
    }


async def groups(town: Town, clusters: Iterable[str] = NAMES) -> None:
    for name in clusters:
        await group(town, name, 0, 10, cluster=name, cpus=4)


async def waits(plane: Elsewhere, pods: int, stack: AsyncExitStack) -> Any:
    """So many pods wait in the cluster."""
    there = await stack.enter_async_context(plane.scheduler())
    web = await replica_set(there, "web")
    for number in range(pods):
        await pod_of(there, web, f"web-{number}")
    return there


async def test_each_grows_for_its_own_pods_and_one_that_dies_is_frozen_alone_until_it_comes_back(
    country: Country,
) -> None:
    town = country.town
    async with country.elsewhere(*NAMES) as (blue, green, red), AsyncExitStack() as stack:
        await groups(town)
        async with town.controllers():
            await waits(green, 3, stack)
            async with blue.scheduler() as there:
                await pod_of(there, await replica_set(there, "web"), "web-0")
                await town.until(lambda: bound(blue) == 1)
            await town.until(lambda: bound(green) == 3)
            assert (size(town, "blue"), size(town, "green"), size(town, "red")) == (1, 1, 0)
            assert not country.nodes_in_management_cluster()
            await blue.stop()
            await town.until(lambda: scaling_active(town, "blue").get("reason") == "ConnectionDown")
            await town.until(lambda: shown().get("default/blue") == 0)
            await waits(red, 3, stack)
            await town.until(lambda: bound(red) == 3)
            assert (size(town, "blue"), country.hosts("blue")) == (1, 1)
            assert {name: shown()[f"default/{name}"] for name in ("green", "red")} == {"green": 1, "red": 1}
            await blue.start()
            await town.until(lambda: scaling_active(town, "blue").get("status") == "True")
            there = await stack.enter_async_context(blue.scheduler())
            for pod in blue.objects(POD):
                await there.delete(Ref(POD, key_of(pod)))
            await town.until(lambda: size(town, "blue") == 0 and not blue.objects(NODE))
            assert (size(town, "green"), size(town, "red")) == (1, 1)


async def test_a_cluster_that_hangs_delays_no_other(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue", "green") as (blue, green), AsyncExitStack() as stack:
        await groups(town, ("blue", "green"))
        async with town.controllers():
            await town.until(lambda: config_maps(town) >= kept("blue") | kept("green"))
            blue.hang()
            await waits(green, 3, stack)
            await town.until(lambda: bound(green) == 3)
            await town.until(lambda: scaling_active(town, "blue").get("reason") == "ConnectionDown")
            await town.until(lambda: not scaling_active(town, "green"))


async def test_clusters_come_and_go_and_what_was_kept_of_one_that_is_gone_goes_too(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (_blue,), town.controllers() as manager:
        await town.until(lambda: config_maps(town) == kept("blue"))
        async with country.elsewhere("green") as (green,), AsyncExitStack() as stack:
            await groups(town, ("green",))
            await waits(green, 1, stack)
            await town.until(lambda: bound(green) == 1)
            assert each_cluster(manager).made == {Key("default", "blue"), Key("default", "green")}
            await town.client.delete(Ref(MACHINE_DEPLOYMENT, Key("default", "green")))
            await town.until(lambda: not town.objects(MACHINE))
            await town.client.delete(Ref(CLUSTER, Key("default", "green")))
            await town.until(lambda: config_maps(town) == kept("blue"))
            await town.until(lambda: each_cluster(manager).made == {Key("default", "blue")})
            await town.until(lambda: "default/green" not in shown())
            await manager.workloads.sweep()
            assert manager.workloads.client_of(Key("default", "green")) is None


async def test_what_a_cluster_left_that_went_unseen_is_removed_at_the_start(country: Country) -> None:
    town = country.town
    for name in kept("green"):
        meta = {"name": name, "namespace": "kube-system"}
        await town.client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
    async with country.elsewhere("blue") as (_blue,), town.controllers():
        await town.until(lambda: config_maps(town) == kept("blue"))


async def test_only_clusters_with_the_labels_are_scaled_and_others_are_not_even_connected_to(
    country: Country,
) -> None:
    town = country.town
    with_many(town, replace(MANY, clusters=ClusterChoice(parse("tier=gold"), home=False)))
    town.options = replace(town.options, reconcilers=(town.options.reconcilers or ())[-1:])
    gold = {"metadata": {"labels": {"tier": "gold"}}}
    async with country.elsewhere("blue", "green") as (_blue, _green):
        await groups(town, ("blue", "green"))
        await town.client.merge_patch(Ref(CLUSTER, Key("default", "blue")), gold)
        async with town.controllers() as manager:
            await town.until(lambda: config_maps(town) == kept("blue"))
            assert manager.workloads.client_of(Key("default", "green")) is None
            await town.client.merge_patch(Ref(CLUSTER, Key("default", "green")), gold)
            await town.until(lambda: config_maps(town) == kept("blue") | kept("green"))
            await town.client.merge_patch(
                Ref(CLUSTER, Key("default", "blue")), {"metadata": {"labels": {"tier": None}}}
            )
            await town.until(lambda: each_cluster(manager).made == {Key("default", "green")})
            assert config_maps(town) == kept("blue") | kept("green"), "it is there, and somebody else may scale it"


async def test_beside_them_the_management_cluster_is_scaled_if_that_is_wanted(country: Country) -> None:
    town = country.town
    with_many(town, replace(QUICK, clusters=ClusterChoice()))
    town.options = replace(town.options, workloads=replace(IMPATIENT, unreachable_after=30.0, probe_timeout=10.0))
    async with country.elsewhere("blue") as (blue,), AsyncExitStack() as stack:
        await groups(town, ("blue",))
        await group(town, "near", 0, 4, cpus=4)
        async with town.controllers():
            await waits(blue, 1, stack)
            await pod_of(town, await replica_set(town, "web"), "web-0")
            await town.until(lambda: bound(blue) == 1 and (size(town, "near"), size(town, "blue")) == (1, 1))
            await town.until(lambda: {"", "default/blue"} <= shown().keys())
            seen = reconciles()
            await town.until(lambda: reconciles() > seen + 3)
            assert (size(town, "near"), size(town, "blue")) == (1, 1)


async def test_a_cluster_without_an_api_of_its_own_is_left_to_the_one_of_the_management_cluster(
    country: Country,
) -> None:
    town = country.town
    await country.cluster("blue")
    await groups(town, ("blue",))
    async with country.elsewhere("green") as (_green,), town.controllers() as manager:
        await pod_of(town, await replica_set(town, "web"), "web-0")
        await town.until(lambda: config_maps(town) == kept("green"))
        await asyncio.sleep(0)
        assert each_cluster(manager).made == {Key("default", "green")}
        assert size(town, "blue") == 0
