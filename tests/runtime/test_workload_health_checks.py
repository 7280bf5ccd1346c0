"""A MachineHealthCheck over Machines of several clusters: sick ones are replaced, lost ones are left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controllers.kernel.conditions import find
from controllers.kernel.refs import MACHINE, MACHINE_HEALTH_CHECK, NODE, Key, Obj, Ref, uid_of
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from tests.runtime.country import Country, Elsewhere
from tests.runtime.town import Town

EACH = 3
"""Machines of each cluster: few enough that any number of them may fail by chance."""
LONG_AGO = "2026-01-01T00:00:00Z"
SIGNALS = [
    {"type": "Ready", "status": "Unknown", "timeout": "1s"},
    {"type": "KernelDeadlock", "status": "True", "timeout": "1h"},
]


@pytest.fixture
def country(town: Town, tmp_path: Path) -> Country:
    return Country(town, tmp_path)


async def _check(town: Town) -> None:
    spec = {"selector": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}, "unhealthyConditions": SIGNALS}
    body = {"apiVersion": MACHINE_HEALTH_CHECK.api_version, "kind": "MachineHealthCheck", "spec": spec}
    await town.client.create(MACHINE_HEALTH_CHECK, {**body, "metadata": {"name": "check", "namespace": "default"}})


def _healthy(town: Town) -> int:
    return int((town.objects(MACHINE_HEALTH_CHECK)[0].get("status") or {}).get("currentHealthy") or 0)


def _allowed(town: Town) -> dict[str, Any]:
    status = town.objects(MACHINE_HEALTH_CHECK)[0].get("status") or {}
    return dict(find(status.get("conditions"), "RemediationAllowed") or {})


def _uids(machines: list[Obj]) -> set[str]:
    return {uid_of(machine) for machine in machines}


async def _replaced(country: Country, cluster: str) -> None:
    """The host of one of its Machines dies, and another Machine takes its place."""
    town, before = country.town, country.machines(cluster)
    for world in town.worlds.all.values():
        if any(host.machine_uid == uid_of(before[0]) for host in world.hosts()):
            world.stop_host(uid_of(before[0]))
    await town.until(lambda: uid_of(before[0]) not in _uids(country.machines(cluster)))
    await town.until(lambda: country.ready(cluster) == EACH)
    assert _uids(before[1:]) < _uids(country.machines(cluster)), "no other one was"


async def _deadlocked_meanwhile(blue: Elsewhere) -> None:
    """Its API runs for a while where nobody of us looks, and hears of a Node's trouble."""
    apart = Elsewhere(blue.name, blue.folder)
    await apart.start()
    name = apart.objects(NODE)[0]["metadata"]["name"]
    said = {"type": "KernelDeadlock", "status": "True", "reason": "X", "lastTransitionTime": LONG_AGO}
    conditions = [*apart.objects(NODE)[0]["status"]["conditions"], said]
    async with KubeClient(await load_kubeconfig([apart.running.kubeconfig_path]), "tests") as client:
        await client.patch_status(Ref(NODE, Key("", name)), {"conditions": conditions})
    await apart.stop()


async def test_a_dead_host_of_a_cluster_with_its_own_api_is_replaced(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue"), town.controllers():
        await _check(town)
        await country.machine_set("blue", EACH)
        await town.until(lambda: _healthy(town) == EACH)
        await _replaced(country, "blue")
        await town.until(lambda: _healthy(town) == EACH)
        assert _allowed(town)["status"] == "True"


async def test_no_machine_of_a_lost_cluster_is_replaced_and_clocks_begin_anew_when_it_is_back(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,), town.controllers():
        await _check(town)
        await country.machine_set("blue", EACH)
        await town.machine_set("home", EACH)
        await town.until(lambda: _healthy(town) == 2 * EACH)
        before = _uids(country.machines("blue"))
        await blue.stop()
        await town.until(lambda: "Cluster default/blue can't be followed" in _allowed(town)["message"])
        await _replaced(country, "home")
        await town.until(lambda: _healthy(town) == EACH)
        await _deadlocked_meanwhile(blue)
        await blue.start()
        await town.until(lambda: _healthy(town) == 2 * EACH - 1)
        assert (_allowed(town)["status"], _allowed(town)["message"]) == ("True", "")
        assert _uids(country.machines("blue")) == before
        said = [c["type"] for m in country.machines("blue") for c in m["status"]["conditions"]]
        assert "HealthCheckSucceeded" not in said, "the hour of the deadlock begins now"


async def test_a_check_whose_machines_are_all_lost_says_so_and_a_restart_says_nothing(country: Country) -> None:
    town = country.town
    async with country.elsewhere("blue") as (blue,):
        async with town.controllers():
            await _check(town)
            await country.machine_set("blue", EACH)
            await town.until(lambda: _healthy(town) == EACH)
            await blue.stop()
            await town.until(lambda: _allowed(town)["reason"] == "ConnectionDown")
            assert not any(m["metadata"].get("deletionTimestamp") for m in town.objects(MACHINE))
            await blue.start()
            await town.until(lambda: _allowed(town)["status"] == "True" and _healthy(town) == EACH)
        before = town.objects(MACHINE_HEALTH_CHECK)[0]["metadata"]["resourceVersion"]
        async with town.controllers() as manager:
            site = next(c for c in manager.controllers if c.reconciler.kind == MACHINE_HEALTH_CHECK)
            await town.until(lambda: manager.workloads.look(blue.key) is not None)
            await town.until(lambda: site.queue.idle and site.queue.next_due is None)
        assert town.objects(MACHINE_HEALTH_CHECK)[0]["metadata"]["resourceVersion"] == before
