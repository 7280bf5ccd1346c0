"""MachineHealthChecks in the running program: heartbeats cost nothing, and a dead host is replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api.remediation import template_kind
from controllers.kernel.conditions import find
from controllers.kernel.refs import MACHINE, MACHINE_HEALTH_CHECK, NODE, Key, Kind, Obj, Ref, guessed_kind, uid_of
from nodewright.apiserver.app.stats import WRITES
from nodewright.runtime.settings import wiring
from nodewright.runtime.telemetry import metrics
from tests.runtime.stub_server import until
from tests.runtime.town import Town

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
REBOOT = guessed_kind("remedy.example.com/v1", "Reboot")
TEMPLATE = guessed_kind("remedy.example.com/v1", "RebootTemplate")
LONG_AGO = "2026-01-01T00:00:00Z"
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
        if sample.name == "nodewright_reconciles_total"
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


async def test_a_machine_whose_host_hangs_is_rebooted_and_stays(town: Town) -> None:
    """From the signal over the Machine's status to the provider, and back by the health of its Node."""
    async with town.controllers():
        await town.machine_set("ms", MACHINES)
        await _check(town, remediationStrategy={"reboot": {"maxAttempts": 2, "timeout": "10m"}})
        await town.until(lambda: _status(town).get("currentHealthy") == MACHINES)
        before = {uid_of(machine) for machine in town.objects(MACHINE)}
        sick = town.objects(MACHINE)[0]
        (world,) = town.worlds.all.values()
        world.stop_host(uid_of(sick))
        await town.until(lambda: bool(_rebooted(town)))
        await town.until(lambda: _status(town).get("currentHealthy") == MACHINES)
        assert {uid_of(machine) for machine in town.objects(MACHINE)} == before
        host = world.host(uid_of(sick))
        assert host is not None
        assert host.reboot is not None
        assert host.reboot.number == 1


def _rebooted(town: Town) -> list[Obj]:
    found = [(m, find((m.get("status") or {}).get("conditions"), "HostRebooted")) for m in town.objects(MACHINE)]
    return [machine for machine, condition in found if condition is not None and condition["status"] == "True"]


def _crd(kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.name,
        "metadata": {"name": f"{plural}.remedy.example.com"},
        "spec": {
            "group": "remedy.example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


async def _says(town: Town, node: str, deadlock: bool) -> None:
    (body,) = [n for n in town.objects(NODE) if n["metadata"]["name"] == node]
    others = [c for c in body["status"]["conditions"] if c["type"] != "KernelDeadlock"]
    said = {"type": "KernelDeadlock", "status": str(deadlock), "reason": "X", "lastTransitionTime": LONG_AGO}
    await town.client.patch_status(Ref(NODE, Key("", node)), {"conditions": [*others, said]})


async def test_somebody_elses_object_stands_beside_a_sick_machine_as_long_as_it_is_sick(town: Town) -> None:
    template = {"apiVersion": TEMPLATE.api_version, "kind": TEMPLATE.name, "name": "reboot"}
    for kind in (REBOOT, TEMPLATE):
        await town.client.create(CRD, _crd(kind.name))
    inner = {"metadata": {"labels": {"a": "b"}}, "spec": {"retries": 1}}
    body = {**template, "metadata": {"name": "reboot", "namespace": "default"}, "spec": {"template": inner}}
    body.pop("name")
    await until(lambda: town.plane.store.resources.find(TEMPLATE.group, TEMPLATE.version, TEMPLATE.plural) is not None)
    await town.client.create(TEMPLATE, body)
    signal = {"type": "KernelDeadlock", "status": "True", "timeout": "1s"}
    kinds = frozenset({template_kind("RebootTemplate.remedy.example.com")})
    town.options = replace(town.options, reconcilers=wiring.reconcilers(template_kinds=kinds))
    async with town.controllers():
        await town.machine_set("ms", MACHINES)
        await _check(town, remediationTemplate=template, unhealthyConditions=[signal])
        await town.until(lambda: _status(town).get("currentHealthy") == MACHINES)
        sick = town.objects(MACHINE)[0]
        await _says(town, sick["status"]["nodeRef"]["name"], True)
        await town.until(lambda: bool(town.objects(REBOOT)))
        (reboot,) = town.objects(REBOOT)
        assert (reboot["metadata"]["name"], reboot["spec"]) == (sick["metadata"]["name"], {"retries": 1})
        assert reboot["metadata"]["labels"]["a"] == "b"
        await _says(town, sick["status"]["nodeRef"]["name"], False)
        await town.until(lambda: not town.objects(REBOOT))
        assert uid_of(sick) in {uid_of(machine) for machine in town.objects(MACHINE)}, "its owner was not asked"
