"""Clusters and MachineDeployments of lab hosts that join by themselves, and what is asked of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from api.names import TOKEN_MACHINE_UID_LABEL
from hack import binaries
from hack.hosts import cluster, files
from hack.hosts.lab import Lab
from hack.hosts.mirror import PROGRAMS, Mirror
from hack.hosts.provider.provider import API_VERSION, KIND
from hack.program import CommandFailed, Kubectl

VERSION = binaries.kubernetes_version()
T = TypeVar("T")
BEFORE = binaries.kubernetes_version(binaries.PREVIOUS)


def programs(*, older: bool = False) -> dict[str, Path]:
    """kubelet and kubeadm, of the version before with ``older``."""
    return {name: binaries.ensure(name, *([binaries.PREVIOUS] if older else [])) for name in PROGRAMS}


def broken(folder: Path) -> dict[str, Path]:
    """kubelet and kubeadm of VERSION; the kubelet prints its version, and ends at once when it is to run."""
    kubelet = folder / "broken-kubelet"
    prints = f'[ "$1" != --version ] || {{ echo "Kubernetes {VERSION}"; exit 0; }}'
    kubelet.write_text(f"#!/bin/sh\n{prints}\necho it is broken\nexit 1\n")
    kubelet.chmod(0o755)
    return {**programs(), "kubelet": kubelet}


def joining_cluster(mirror: Mirror, name: str = "here", *, older: bool = False) -> dict[str, Any]:
    """Where its hosts get kubelet and kubeadm from; all else the cluster says of itself."""
    bootstrap = {
        "archives": mirror.archives(programs(older=older)),
        "files": [files.CONTAINERD_FILE],
        "nodeRegistration": {"ignorePreflightErrors": [cluster.NO_CGROUP_2]},
    }
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"bootstrap": bootstrap},
    }


def deployment(lab: Lab, name: str, replicas: int, *, cluster_name: str = "here") -> dict[str, Any]:
    labels = {"set": name, "cluster.k8s.io/cluster-name": cluster_name}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"set": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "providerConfig": {"value": {"apiVersion": API_VERSION, "kind": KIND, "lab": str(lab.folder)}},
                    "versions": {"kubelet": VERSION.removeprefix("v")},
                    "metadata": {"labels": {"pool.example/name": name}},
                    "taints": [{"key": "pool.example/only", "value": name, "effect": "NoSchedule"}],
                },
            },
        },
    }


def pause_pod(name: str, node: str) -> dict[str, Any]:
    """One that runs on ``node``, whoever may not, from the image that lab hosts have."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": files.PAUSE_IMAGE, "imagePullPolicy": "Never"}],
        },
    }


def until(holds: Callable[[], bool], seconds: float = 300.0) -> None:
    """Ask again, also where kubectl fails: the only API server of a cluster of hosts may be away for a moment.

    Raises AssertionError, if kubectl failed last with what it said.
    """
    deadline = time.monotonic() + seconds
    while True:
        why = "it did not come to that"
        try:
            if holds():
                return
        except CommandFailed as failure:
            why = str(failure)
        assert time.monotonic() < deadline, why
        time.sleep(0.2)


def heard(ask: Callable[[], T], seconds: float = 300.0) -> T:
    """What a command of kubectl gives, once it ends well. Raises AssertionError with what it said."""
    found: list[T] = []

    def has_answered() -> bool:
        found.append(ask())
        return True

    until(has_answered, seconds)
    return found[-1]


def apply(kubectl: Kubectl, obj: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", stdin=json.dumps(obj))


def items(kubectl: Kubectl, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(kubectl("get", kind, "-o", "json"))["items"]
    return found


def secrets_to_join(kubectl: Kubectl) -> list[str]:
    """Tokens of ours and bootstrap data that are there."""
    found = json.loads(kubectl("get", "secrets", "-A", "-l", TOKEN_MACHINE_UID_LABEL, "-o", "json"))["items"]
    return [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in found]
