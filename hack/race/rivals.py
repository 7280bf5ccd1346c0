"""The two programs of the race, each as its users run it: Karpenter with NodePool and kwok, ours with groups."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml

from api import names
from hack.children import Children, free_ports
from hack.program import Kubectl, Run
from hack.race import parts
from hack.race.instances import MOST_CPUS, ZONES, Instance
from nodewright.crds import load_crds
from nodewright.runtime.simulated.kubelets import USER_AGENT

CALM = 30
"""Seconds that a Node is not needed before it may go: what Karpenter's own suite sets as ``consolidateAfter``."""
MOST_NODES = 2000
KEPT_MIB = 10
"""Memory that a Node of Karpenter's provider keeps from pods; with it, a pod of 64 GiB fits no Node of 64 GiB."""
STAGES = ("node/fast/node-initialize.yaml", "pod/fast/pod-ready.yaml", "pod/fast/pod-delete.yaml")
"""What kwok plays: what the simulated kubelets of the other side do. Those send no heartbeats either."""


class Rival(Protocol):
    """A program at work between ``start`` and ``stop``, with what plays the kubelets of its Nodes.

    ``agents``: how their User-Agents begin. ``has_machines``: it makes Machines of MachineDeployments.
    """

    name: str
    agents: tuple[str, str]
    has_machines: bool

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def drift(self) -> None:
        """Another template for all Nodes, so that each is to be replaced."""

    @property
    def pids(self) -> Sequence[int]: ...


class Karpenter:
    """Of a pinned module, with kwok, which plays the kubelets of its Nodes."""

    agents = ("karpenter", "kwok")
    has_machines = False

    def __init__(self, folder: Path, kubectl: Kubectl) -> None:
        self._sources, version = parts.module("karpenter")
        self.name = f"Karpenter {version}"
        self._kubectl = kubectl
        self._children = Children(folder)

    def start(self) -> None:
        """Its kinds, a NodePool of everything below 32 CPUs, kwok and itself."""
        for folder in (self._sources / "pkg/apis/crds", self._sources / "kwok/apis/crds"):
            self._kubectl("apply", "--server-side", "-f", str(folder))
        self._kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        self._kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": _pool()}))
        self._children.__enter__()
        kubeconfig = str(self._kubectl.kubeconfig)
        stages = parts.module("kwok")[0] / "kustomize/stage"
        flags = (
            f"--kubeconfig={kubeconfig}",
            *(f"--config={stages / stage}" for stage in STAGES),
            "--node-lease-duration-seconds=0",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        )
        self._children.start("kwok", [str(parts.ensure("kwok")), *flags])
        metrics, health = free_ports(2)
        settings = {
            "KUBECONFIG": kubeconfig,
            "SYSTEM_NAMESPACE": "kube-system",
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": str(metrics),
            "HEALTH_PROBE_PORT": str(health),
            "CPU_REQUESTS": "2000",
        }
        self._children.start("karpenter", [str(parts.ensure("karpenter"))], {**os.environ, **settings})
        self._children.until_it_answers("karpenter", f"http://127.0.0.1:{health}/readyz", 60)

    def stop(self) -> None:
        self._children.__exit__(None, None, None)

    def drift(self) -> None:
        """An annotation, as in Karpenter's own suite (drift_performance_test.go)."""
        patch = {"spec": {"template": {"metadata": {"annotations": {"race": "drift"}}}}}
        self._kubectl("patch", "nodepool", "default", "--type=merge", f"--patch={json.dumps(patch)}")

    @property
    def pids(self) -> Sequence[int]:
        return [self._children.pid(name) for name in ("karpenter", "kwok")]


def _pool() -> list[dict[str, Any]]:
    """As the suite of Karpenter makes it: a NodePool without limits, disruption without a budget."""
    requirements = [
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.kwok.sh/instance-size", "operator": "Lt", "values": [str(MOST_CPUS)]},
    ]
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template = {"spec": {"expireAfter": "Never", "requirements": requirements, "nodeClassRef": reference}}
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": f"{CALM}s",
        "budgets": [{"nodes": "100%"}],
    }
    return [
        {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {"disruption": disruption, "template": template},
        },
    ]


class Nodewright:
    """All controllers, the simulated provider, its kubelets and the autoscaler in one process."""

    name = "Nodewright"
    agents = ("nodewright", USER_AGENT)
    has_machines = True

    def __init__(self, folder: Path, kubectl: Kubectl, offered: Sequence[Instance]) -> None:
        self._kubectl = kubectl
        self._offered = offered
        self._run = Run(
            folder,
            kubectl,
            "--controllers=*,autoscaler",
            "--no-leader-elect",
            "--expander=price",
            "--scan-interval=1s",
            f"--scale-down-unneeded-time={CALM}s",
            f"--scale-down-delay-after-add={CALM}s",
            f"--max-scale-down-parallelism={MOST_NODES}",
            f"--max-drain-parallelism={MOST_NODES}",
            "--consolidation-enabled",
            "--enable-proactive-scaleup",
            "--scheduler-scoring-strategy=LeastAllocated",
            "--max-nodes-per-scaleup=2000",
            "--log-level=warning",
        )

    def start(self) -> None:
        """Its kinds, and a group of each instance in each zone."""
        self._create(load_crds())
        self._kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        self._create([_prices(self._offered), *(_group(each, zone) for each in self._offered for zone in ZONES)])
        self._run.start()

    def stop(self) -> None:
        self._run.stop()

    def drift(self) -> None:
        """Another version of the kubelet in the template of each group."""
        patch = {"spec": {"template": {"spec": {"versions": {"kubelet": "1.36.1"}}}}}
        groups = [_group_name(each, zone) for each in self._offered for zone in ZONES]
        self._kubectl("patch", "machinedeployments", *groups, "--type=merge", f"--patch={json.dumps(patch)}")

    @property
    def pids(self) -> Sequence[int]:
        return [self._run.pid]

    def _create(self, items: Sequence[dict[str, Any]]) -> None:
        self._kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _prices(offered: Sequence[Instance]) -> dict[str, Any]:
    table = {"nodes": {each.name: each.price for each in offered}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nodewright-autoscaler-prices", "namespace": "kube-system"},
        "data": {"prices": yaml.safe_dump(table)},
    }


def _group_name(each: Instance, zone: str) -> str:
    return f"{each.name}-{zone}"


def _group(each: Instance, zone: str) -> dict[str, Any]:
    name = _group_name(each, zone)
    config = {
        "apiVersion": "simulated.nodewright.dev/v1alpha1",
        "kind": "SimulatedMachineConfig",
        "cpus": each.cpus,
        "memory": f"{each.memory * 1024 - KEPT_MIB}Mi",
        "maxPods": each.pods,
        "instanceType": each.name,
        "bootSeconds": 0,
        "joinSeconds": 0,
        "deleteSeconds": 0,
        "cloud": {"zones": dict.fromkeys(ZONES, MOST_NODES * 2)},
    }
    labels = {"group": name}
    spec = {"providerConfig": {"value": config}, "versions": {"kubelet": "1.36.0"}, "failureDomain": zone}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MachineDeployment",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {
                names.AUTOSCALER_MIN_ANNOTATION: "0",
                names.AUTOSCALER_MAX_ANNOTATION: str(MOST_NODES),
            },
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
