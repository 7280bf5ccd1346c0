"""Builders of MachineHealthChecks, and what a plan of theirs says."""

from __future__ import annotations

from typing import Any, Self

from api.remediation import template_kind
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE, MACHINE_HEALTH_CHECK, Key
from controllers.machinehealthcheck.observe import Observed
from controllers.machinehealthcheck.reconciler import MachineHealthCheckReconciler
from tests.builders import FakeView, machine, machine_set, node
from tests.builders.objects import Builder, MachineBuilder, NodeBuilder
from tests.builders.plans import patches

NODE_UNKNOWN_5M = {"type": "Ready", "status": "Unknown", "timeout": "5m"}


RECONCILER = MachineHealthCheckReconciler(frozenset({template_kind("RebootTemplate.remedy.example.com")}))


class CheckBuilder(Builder):
    kind = "MachineHealthCheck"

    def __init__(self, name: str = "check", namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.spec.update(
            {"selector": {"matchLabels": {"pool": "pool"}}, "unhealthyConditions": [dict(NODE_UNKNOWN_5M)]}
        )

    def having(self, **spec: Any) -> Self:
        self.spec.update(spec)
        return self

    def strategy(self, **strategy: Any) -> Self:
        self.spec.setdefault("remediationStrategy", {}).update(strategy)
        return self


def check(name: str = "check") -> CheckBuilder:
    return CheckBuilder(name)


POOL = machine_set("pool").replicas(5)


def member(name: str) -> MachineBuilder:
    """A Machine of the pool, linked to its Node ``node-<name>``."""
    return machine(name).of(POOL).ready()


def its_node(name: str, zone: str = "") -> NodeBuilder:
    found = node(f"node-{name}").of(member(name)).ready()
    return found.labelled({"topology.kubernetes.io/zone": zone}) if zone else found


def well(name: str, zone: str = "") -> list[Builder]:
    return [member(name), its_node(name, zone)]


def dark(name: str, zone: str = "", since: float = 400) -> list[Builder]:
    """A Machine whose Node has not been heard of for ``since`` seconds."""
    body = member(name).condition("Ready", "False", "NodeNotReady", since=since)
    return [body, its_node(name, zone).condition("Ready", "Unknown", "NodeStatusUnknown", since=since)]


def flat(*groups: list[Builder]) -> list[Builder]:
    return [obj for group in groups for obj in group]


def observed(view: FakeView, name: str = "check") -> Observed:
    found = RECONCILER.observe(Key("default", name), view, None)
    assert found is not None
    return found


def plan(*objects: Builder) -> Plan:
    return plan_on(FakeView(POOL, *objects))


def plan_on(view: FakeView, name: str = "check") -> Plan:
    return RECONCILER.plan(observed(view, name))


def marks(found: Plan) -> dict[str, dict[str, dict[str, Any]]]:
    """By Machine, its conditions that health checks write."""
    own = ("HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated")
    return {
        name: {c["type"]: c for c in patch.patch["status"]["conditions"] if c["type"] in own}
        for name, patch in patches(found, MACHINE, "status").items()
    }


def selected_for_deletion(found: Plan) -> list[str]:
    return sorted(name for name, said in marks(found).items() if "OwnerRemediated" in said)


def unhealthy(found: Plan) -> dict[str, str]:
    """Reasons by Machine that is newly called unhealthy."""
    said = {name: conditions.get("HealthCheckSucceeded") for name, conditions in marks(found).items()}
    return {name: c["reason"] for name, c in said.items() if c and c["status"] == "False"}


def status(found: Plan) -> dict[str, Any]:
    written = patches(found, MACHINE_HEALTH_CHECK, "status").get("check")
    return dict(written.patch.get("status") or {}) if written else {}


def allowed(found: Plan) -> tuple[str, str]:
    """Status and reason of RemediationAllowed, as written."""
    (said,) = [c for c in status(found)["conditions"] if c["type"] == "RemediationAllowed"]
    return said["status"], said["reason"]
