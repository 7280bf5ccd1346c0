"""The pods of the scenarios, as Karpenter's own performance suite has them (test/suites/performance, v1.14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WIDE_CPUS = (
    240, 450, 650, 900, 1400, 1900, 2400, 2800, 3300, 3700, 2300, 900, 1300, 2800, 1800, 1850, 3300, 3800, 225, 450,
    700, 900, 1300, 1800, 2400, 2800, 3400, 3800, 3300, 2800,
)  # fmt: skip
"""Of the 30 Deployments of wide_deployments_test.go, in thousandths of a CPU."""
WIDE_MEMORY = (
    "300Mi", "400Mi", "700Mi", "1Gi", "2Gi", "4Gi", "8Gi", "4Gi", "16Gi", "10Gi", "64Gi", "30Gi", "32Gi", "32Gi",
    "30Gi", "20Gi", "30Gi", "300Mi", "500Mi", "750Mi", "1Gi", "2Gi", "4Gi", "8Gi", "16Gi", "32Gi", "28Gi", "64Gi",
    "13Gi", "24Gi",
)  # fmt: skip
WIDE_MOST, WIDE_FEWER, WIDE_PODS, WIDE_FEWER_PODS = 20, 10, 35, 30
"""20 Deployments of 35 pods and 10 of 30."""
WIDE_APART, WIDE_SPREAD = range(3), range(3, 6)
"""Which of them must not share a Node with themselves, and which are spread evenly over Nodes."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One Deployment: ``replicas`` pods of ``cpu`` and ``memory``. ``spread``: topology keys, one more at most."""

    name: str
    replicas: int
    cpu: str
    memory: str
    spread: tuple[str, ...] = ()
    apart: bool = False

    def body(self) -> dict[str, Any]:
        """The Deployment (apps/v1)."""
        labels = {"app": self.name}
        requests = {"cpu": self.cpu, "memory": self.memory}
        spec: dict[str, Any] = {
            "containers": [{"name": "app", "image": "example.com/app", "resources": {"requests": requests}}],
            "terminationGracePeriodSeconds": 0,
            "topologySpreadConstraints": [_constraint(key, labels) for key in self.spread],
        }
        if self.apart:
            term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }


def budget(name: str) -> dict[str, Any]:
    """PodDisruptionBudget (policy/v1) of the Deployment: a tenth of its pods may be missing."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": name}}},
    }


def _constraint(key: str, labels: dict[str, str]) -> dict[str, Any]:
    selector = {"matchLabels": labels}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}


def pair(each: int, *, spread: bool = False) -> Sequence[Workload]:
    """Two Deployments of ``each`` pods, small ones and large ones; the small ones spread over Nodes if asked."""
    keys = (HOSTNAME,) if spread else ()
    return (Workload("small", each, "900m", "3100Mi", keys), Workload("large", each, "3500m", "28Gi"))


def wide() -> Sequence[Workload]:
    """30 Deployments, each spread evenly over zones."""
    counts = (*(WIDE_PODS for _ in range(WIDE_MOST)), *(WIDE_FEWER_PODS for _ in range(WIDE_FEWER)))
    shapes = zip(counts, WIDE_CPUS, WIDE_MEMORY, strict=True)
    return [
        Workload(
            f"wide-{number}",
            count,
            f"{cpu}m",
            memory,
            (ZONE, HOSTNAME) if number in WIDE_SPREAD else (ZONE,),
            apart=number in WIDE_APART,
        )
        for number, (count, cpu, memory) in enumerate(shapes)
    ]
