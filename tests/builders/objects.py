"""Builders of Kubernetes objects that read as sentences: ``machine("m-1").of(ms).ready().build()``.

A builder changes itself and returns itself; ``build()`` returns a fresh, deep-copied dict. Everywhere a builder takes
another object, it takes a builder or a dict. Defaults make a *valid* object: uid ``uid-<name>``, generation 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from api import names
from tests.builders.body import SIMULATED, Builder, as_dict, owner_reference
from tests.builders.machines import MachineBuilder, MachineDeploymentBuilder, MachineSetBuilder

__all__ = [
    "SIMULATED",
    "Builder",
    "ClusterBuilder",
    "MachineBuilder",
    "MachineClassBuilder",
    "MachineDeploymentBuilder",
    "MachineSetBuilder",
    "NodeBuilder",
    "as_dict",
    "cluster",
    "machine",
    "machine_class",
    "machine_deployment",
    "machine_set",
    "node",
    "owner_reference",
]


class ClusterBuilder(Builder):
    kind = "Cluster"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.spec["clusterNetwork"] = {
            "services": {"cidrBlocks": ["10.96.0.0/12"]},
            "pods": {"cidrBlocks": ["10.244.0.0/16"]},
            "serviceDomain": "cluster.local",
        }

    def paused(self) -> Self:
        self.spec["paused"] = True
        return self


class MachineClassBuilder(Builder):
    kind = "MachineClass"

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self.body["providerConfig"] = dict(SIMULATED)

    def provider_config(self, **config: Any) -> Self:
        self.body["providerConfig"] = {**SIMULATED, **config}
        return self


class NodeBuilder(Builder):
    api_version = "v1"
    kind = "Node"
    namespaced = False

    def of(self, machine_: Builder | Mapping[str, Any]) -> Self:
        """As the host of ``machine_`` registers it: same providerID, and the annotations that name its owner."""
        body = as_dict(machine_)
        meta = body["metadata"]
        self.provider_id(body["spec"].get("providerID") or f"simulated:///{meta['uid']}")
        self.annotated(names.NODE_MACHINE_ANNOTATION, f"{meta['namespace']}/{meta['name']}")
        return self.annotated(names.NODE_MACHINE_UID_ANNOTATION, meta["uid"])

    def provider_id(self, provider_id: str) -> Self:
        self.spec["providerID"] = provider_id
        return self

    def ready(self, since: float = 600) -> Self:
        return self.condition("Ready", "True", "KubeletReady", since=since)

    def not_ready(self, since: float = 60) -> Self:
        return self.condition("Ready", "False", "KubeletNotReady", since=since)

    def kubelet(self, version: str) -> Self:
        self.status.setdefault("nodeInfo", {})["kubeletVersion"] = version
        return self

    def address(self, address: str, type_: str = "InternalIP") -> Self:
        self.status.setdefault("addresses", []).append({"type": type_, "address": address})
        return self

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        self.spec.setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def cordoned(self) -> Self:
        """By a person."""
        self.spec["unschedulable"] = True
        return self

    def draining_for(self, machine_uid: str) -> Self:
        """Closed by us."""
        self.annotated(names.NODE_CORDONED_FOR_ANNOTATION, machine_uid)
        return self.cordoned().tainted(names.DRAINING_TAINT, machine_uid)


def machine(name: str, namespace: str = "default") -> MachineBuilder:
    return MachineBuilder(name, namespace)


def machine_set(name: str, namespace: str = "default") -> MachineSetBuilder:
    return MachineSetBuilder(name, namespace)


def machine_deployment(name: str, namespace: str = "default") -> MachineDeploymentBuilder:
    return MachineDeploymentBuilder(name, namespace)


def cluster(name: str, namespace: str = "default") -> ClusterBuilder:
    return ClusterBuilder(name, namespace)


def machine_class(name: str, namespace: str = "default") -> MachineClassBuilder:
    return MachineClassBuilder(name, namespace)


def node(name: str) -> NodeBuilder:
    return NodeBuilder(name)
