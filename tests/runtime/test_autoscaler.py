"""The autoscaler at work: pending pods make a group grow from nothing, and it shrinks when they are gone."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import yaml

from api import names
from controllers.autoscaler.options import AutoscalerOptions, ShrinkOptions
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.conditions import find
from controllers.kernel.refs import CONFIG_MAP, EVENT, LEASE, MACHINE, MACHINE_DEPLOYMENT, NODE, POD, Key, Ref, key_of
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.options import utc_now
from nodewright.runtime.simulated.kubelets import USER_AGENT
from nodewright.runtime.telemetry import metrics
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds
from tests.runtime.replicas import pod_of, pods_on_nodes, replica_set
from tests.runtime.town import FAST, Town

QUICK = AutoscalerOptions(
    shrink=ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0), delay_after_failure=timedelta(0)),
    scan_interval=timedelta(seconds=0.2),
)


def with_autoscaler(town: Town, options: AutoscalerOptions = QUICK) -> None:
    town.options = replace(
        town.options, reconcilers=(*wiring.reconcilers(), AutoscalerReconciler(options)), bind_pods=True
    )


async def group(town: Town, name: str, least: int, most: int, *, cluster: str = "", **config: Any) -> None:
    labels = {"pool": name, **({"cluster.k8s.io/cluster-name": cluster} if cluster else {})}
    spec = {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": {**FAST, **config}}}
    bounds = {names.AUTOSCALER_MIN_ANNOTATION: str(least), names.AUTOSCALER_MAX_ANNOTATION: str(most)}
    body = {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default", "annotations": bounds, "labels": labels},
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
    await group(town, "workers", 0, 10, cpus=16)
    async with town.controllers():
        web = await replica_set(town, "web")
        for number in range(50):
            await pod_of(town, web, f"web-{number}")
        await town.until(lambda: pods_on_nodes(town) == 50)
        assert 4 <= size(town, "workers") <= 5
        for pod in town.objects(POD):
            with contextlib.suppress(ApiError):  # it was moved off a Node meanwhile, and nobody made it anew
                await town.client.delete(Ref(POD, key_of(pod)))
        await town.until(lambda: size(town, "workers") == 0 and not town.objects(MACHINE) and not town.objects(NODE))
    assert {body["metadata"]["name"] for body in town.objects(CONFIG_MAP)} >= {names.AUTOSCALER_MEMORY}


async def test_each_zone_gets_a_node_of_a_group_over_several_that_has_none(town: Town) -> None:
    """One Node each, and no other: what was expected of the MachineSet is what it did."""
    with_autoscaler(town, replace(QUICK, shrink=replace(QUICK.shrink, enabled=False)))
    await group(town, "workers", 0, 10, cpus=4)
    ref = Ref(MACHINE_DEPLOYMENT, Key("default", "workers"))
    await town.client.merge_patch(ref, {"spec": {"failureDomains": ["a", "b", "c"]}})
    async with town.controllers():
        web = await replica_set(town, "web")
        for zone in "abc":
            await pod_of(town, web, f"web-{zone}", nodeSelector={"topology.kubernetes.io/zone": zone})
        await town.until(lambda: pods_on_nodes(town) == 3)
        zones = [body["metadata"]["labels"]["topology.kubernetes.io/zone"] for body in town.objects(NODE)]
        assert (sorted(zones), size(town, "workers")) == (["a", "b", "c"], 3)


def told(town: Town) -> dict[str, Any]:
    """What the status ConfigMap says."""
    found = [body for body in town.objects(CONFIG_MAP) if body["metadata"]["name"] == names.AUTOSCALER_STATUS]
    return yaml.safe_load(found[0]["data"]["status"]) if found else {}


def reconciles() -> float:
    return sum(
        float(metrics.of(metrics.RECONCILES, "autoscaler", result)._value.get())
        for result in ("wait", "stale", "failed")
    )


def writes() -> float:
    """Requests of the autoscaler that change something."""
    return sum(
        sample.value
        for family in metrics.KUBE_REQUESTS.collect()
        for sample in family.samples
        if sample.labels["controller"] == "autoscaler" and sample.labels["verb"] not in {"list", "watch", "get"}
    )


def scaling_active(town: Town, name: str) -> dict[str, Any]:
    found = next(body for body in town.objects(MACHINE_DEPLOYMENT) if body["metadata"]["name"] == name)
    return dict(find((found.get("status") or {}).get("conditions"), "ScalingActive") or {})


def events(town: Town, reason: str) -> list[str]:
    return [event["involvedObject"]["name"] for event in town.objects(EVENT) if event["reason"] == reason]


async def test_at_rest_nothing_is_written(town: Town) -> None:
    with_autoscaler(town)
    await group(town, "workers", 2, 4, cpus=4)
    async with town.controllers():
        await pod_of(town, await replica_set(town, "web"), "web-0")
        await town.until(lambda: pods_on_nodes(town) == 1 and town.ready() == 2)
        await town.until(lambda: told(town).get("clusterWide", {}).get("scaleUp", {}).get("status") == "NoActivity")
        seen = reconciles()
        await town.until(lambda: reconciles() > seen + 3)
        before, seen = writes(), reconciles()
        await town.until(lambda: reconciles() > seen + 10)
        assert writes() == before
    (workers,) = told(town)["nodeGroups"]
    assert workers["name"] == "MachineDeployment/default/workers"
    assert workers["health"]["status"] == "Healthy"
    assert workers["health"]["cloudProviderTarget"] == 2
    assert workers["health"]["nodeCounts"]["registered"]["ready"] == 2


async def test_one_bad_group_is_told_its_field_and_the_others_go_on(town: Town) -> None:
    with_autoscaler(town)
    await group(town, "workers", 0, 4, cpus=4)
    await group(town, "broken", 0, 4, cpus=64)
    bad = {names.AUTOSCALER_MAX_ANNOTATION: "many"}
    await town.client.merge_patch(Ref(MACHINE_DEPLOYMENT, Key("default", "broken")), {"metadata": {"annotations": bad}})
    async with town.controllers():
        await pod_of(town, await replica_set(town, "web"), "web-0")
        await town.until(lambda: pods_on_nodes(town) == 1)
        await town.until(lambda: bool(scaling_active(town, "broken")))
        condition = scaling_active(town, "broken")
        assert condition["status"] == "False"
        assert names.AUTOSCALER_MAX_ANNOTATION in condition["message"]
        assert "'many'" in condition["message"]
        assert not scaling_active(town, "workers")
        await town.until(lambda: "broken" in events(town, "InvalidConfiguration"))
        good = {names.AUTOSCALER_MAX_ANNOTATION: "5"}
        ref = Ref(MACHINE_DEPLOYMENT, Key("default", "broken"))
        await town.client.merge_patch(ref, {"metadata": {"annotations": good}})
        await town.until(lambda: scaling_active(town, "broken")["status"] == "True")
    assert "web-0" in events(town, "TriggeredScaleUp")


async def test_a_pod_that_fits_nowhere_is_told_why(town: Town) -> None:
    with_autoscaler(town)
    await group(town, "workers", 0, 4, cpus=4)
    async with town.controllers():
        await pod_of(town, await replica_set(town, "web"), "huge", cpu="64")
        await town.until(lambda: "huge" in events(town, "NotTriggerScaleUp"))
        assert size(town, "workers") == 0
    (said,) = [event["message"] for event in town.objects(EVENT) if event["reason"] == "NotTriggerScaleUp"]
    assert "MachineDeployment/default/workers" in said
    assert "Insufficient cpu" in said


async def test_beside_a_live_cluster_autoscaler_it_does_nothing(town: Town) -> None:
    with_autoscaler(town)
    await group(town, "workers", 0, 4, cpus=4)
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": f"{utc_now():%Y-%m-%dT%H:%M:%S.%fZ}"}
    meta = {"namespace": "kube-system", "name": names.AUTOSCALER_LEASE}
    body = {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": meta, "spec": spec}
    await town.client.create(LEASE, body)
    async with town.controllers():
        await pod_of(town, await replica_set(town, "web"), "web-0")
        await town.until(lambda: names.AUTOSCALER_LEASE in events(town, "AnotherAutoscaler"))
        seen = reconciles()
        await town.until(lambda: reconciles() > seen + 3)
        assert size(town, "workers") == 0
        assert not told(town)
        gone = {"spec": {"holderIdentity": ""}}
        await town.client.merge_patch(Ref(LEASE, Key("kube-system", names.AUTOSCALER_LEASE)), gone)
        await town.until(lambda: pods_on_nodes(town) == 1)


async def test_in_a_process_of_its_own_it_takes_nobody_s_hosts_for_dead(town: Town) -> None:
    """The simulated cloud that it asks what hosts would be like is not the one in which they are."""
    await group(town, "workers", 1, 4, cpus=4)
    await group(town, "none", 0, 4, cpus=4)
    async with town.controllers():
        await town.until(lambda: town.ready() == 1)
        other = Worlds()
        apart = Town(town.plane, town.connection, town.client)
        apart.options = replace(
            town.options,
            reconcilers=(AutoscalerReconciler(QUICK),),
            registry=Registry.of(registration_for(other)),
            simulated_worlds=lambda: other.all,
        )
        before = town.plane.stats.count(user_agent=USER_AGENT)
        async with apart.controllers():
            await town.until(lambda: bool(other.all) and bool(told(town)))
            seen = reconciles()
            await town.until(lambda: reconciles() > seen + 3)
        assert town.plane.stats.count(user_agent=USER_AGENT) == before


async def test_killed_between_its_memory_and_the_new_size_it_adds_the_nodes_once(town: Town) -> None:
    with_autoscaler(town)
    await group(town, "workers", 0, 10, cpus=4)
    web = await replica_set(town, "web")
    for number in range(6):
        await pod_of(town, web, f"web-{number}")
    async with town.controllers() as manager:
        manager.controllers[-1]._executor._executor_deps = replace(
            manager.controllers[-1]._executor._executor_deps, writer=Dying(town.client)
        )
        await town.until(lambda: any(b["metadata"]["name"] == names.AUTOSCALER_MEMORY and "nodes" in b["data"]["memory"]
                                     for b in town.objects(CONFIG_MAP)))  # fmt: skip
    assert size(town, "workers") == 0
    async with town.controllers():
        await town.until(lambda: pods_on_nodes(town) == 6)
        assert size(town, "workers") == 2


class Dying:
    """A writer whose process ends before it sets a size."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def scale(self, target: Ref, replicas: int, resource_version: str = "") -> dict[str, Any]:
        raise NoAnswer("killed", sent=False)
