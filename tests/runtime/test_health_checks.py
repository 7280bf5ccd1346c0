"""MachineHealthChecks in the running program: heartbeats cost nothing, and a dead host is replaced."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from controllers.kernel.conditions import find
from controllers.kernel.refs import MACHINE, MACHINE_HEALTH_CHECK, NODE, Key, Obj, Ref, uid_of
from nodewright.controlplane.app.stats import WRITES
from nodewright.runtime import metrics
from tests.runtime.town import Town

MACHINES = 5
BEATS = 10


def _writes(town: Town) -> int:
    return sum(
        count
        for key, count in town.plane.stats.snapshot().items()
        if key.user_agent == "nodewright" and key.verb in WRITES
    )


async def _check(town: Town, **spec: Any) -> None:
    body = {
        "apiVersion": MACHINE_HEALTH_CHECK.api_version,
        "kind": "MachineHealthCheck",
        "metadata": {"name": "check", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"pool": "ms"}},
            "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "1s"}],
            **spec,
        },
    }
    await town.client.create(MACHINE_HEALTH_CHECK, body)


def _status(town: Town) -> Any:
    return town.objects(MACHINE_HEALTH_CHECK)[0].get("status") or {}


async def _sound(town: Town) -> None:
    await town.machine_set("ms", MACHINES)
    await _check(town)
    await town.until(lambda: town.ready() == MACHINES)
    await town.until(lambda: _status(town).get("currentHealthy") == MACHINES)


async def _beat(town: Town, node: Obj, number: int) -> None:
    """As a kubelet reports: the same conditions with another heartbeat."""
    beat = (datetime.now(UTC) + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{**c, "lastHeartbeatTime": beat} for c in node["status"]["conditions"]]
    kubelet = town.client.named("kubelet", "kubelet")
    await kubelet.patch_status(Ref(NODE, Key("", node["metadata"]["name"])), {"conditions": conditions})


def _versions(nodes: Iterable[Obj]) -> dict[str, str]:
    return {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in nodes}


def _rounds() -> float:
    """Of all rooms since the process began."""
    return sum(
        sample.value
        for family in metrics.REGISTRY.collect()
        for sample in family.samples
        if sample.name == "nodewright_rounds_total"
    )


async def test_heartbeats_wake_no_check_and_cost_no_write(town: Town) -> None:
    async with town.controllers() as manager:
        await _sound(town)
        await town.until(lambda: all(c.queue.idle and c.queue.next_due is None for c in manager.controllers))
        town.plane.stats.reset()
        before = _rounds()
        for number in range(BEATS):
            for node in town.objects(NODE):
                await _beat(town, node, number)
        await town.until(lambda: _versions(manager.cache.stores[NODE]) == _versions(town.objects(NODE)))
        assert all(controller.queue.idle for controller in manager.controllers)
        assert _rounds() == before, "a heartbeat is no news to any room"
        assert _writes(town) == 0


async def test_a_machine_whose_host_died_is_replaced(town: Town) -> None:
    async with town.controllers():
        await _sound(town)
        sick = town.objects(MACHINE)[0]
        others = {uid_of(machine) for machine in town.objects(MACHINE)} - {uid_of(sick)}
        (world,) = town.worlds.all.values()
        world.stop_host(uid_of(sick))
        await town.until(lambda: uid_of(sick) not in {uid_of(machine) for machine in town.objects(MACHINE)})
        await town.until(lambda: town.ready() == MACHINES)
        await town.until(lambda: _status(town).get("currentHealthy") == MACHINES)
        assert others < {uid_of(machine) for machine in town.objects(MACHINE)}
        allowed = find(_status(town)["conditions"], "RemediationAllowed")
        assert allowed is not None
        assert allowed["status"] == "True"
