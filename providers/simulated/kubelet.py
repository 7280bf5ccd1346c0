"""What the kubelet of a simulated host would say of itself: a Node as plain data. It knows no Kubernetes client.

The program's shell registers and updates these Nodes; see ``World.booted`` for the hosts that have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from providers.base.contract import HostRequest, HostState
from providers.simulated.config import SimulatedMachineConfig
from providers.simulated.hosts import SimulatedHost, provider_id_of

DEFAULT_KUBELET = "v1.34.0"
DEFAULT_RUNTIME = "containerd://2.1.0"
ZONE = "topology.kubernetes.io/zone"


def node_for(host: SimulatedHost, request: HostRequest, now: datetime) -> dict[str, Any]:
    """The Node of ``host``, which its kubelet registered for ``request``, as it is ``now``.

    Labels, annotations and taints are those of registration: the kubelet does not touch them afterwards, so whoever
    updates an existing Node takes only ``status`` from here. A kubelet that is down leaves Ready Unknown, as the node
    lifecycle controller would.
    """
    config = host.config_at(now)
    resources = capacity_of(config)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": host.name,
            "labels": {
                "kubernetes.io/hostname": host.name,
                **labels_of(config, host.zone),
                **request.node.labels,
            },
            "annotations": dict(request.node.annotations),
        },
        "spec": {
            "providerID": provider_id_of(host),
            **({"taints": _taints(request)} if request.node.taints else {}),
        },
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "addresses": [{"type": a.type, "address": a.address} for a in host.addresses()],
            "conditions": _conditions(host, now),
            "nodeInfo": _node_info(host, now),
        },
    }


def capacity_of(config: SimulatedMachineConfig) -> dict[str, str]:
    """Kubernetes resources of a host of that config."""
    return {
        "cpu": str(config.cpus),
        "memory": config.memory,
        "ephemeral-storage": config.storage,
        "pods": str(config.max_pods),
    }


def labels_of(config: SimulatedMachineConfig, zone: str) -> Mapping[str, str]:
    """The well-known labels that the kubelet and the cloud set, but for the host name."""
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": config.instance_type,
        "topology.kubernetes.io/region": config.cloud.name,
    }
    return {**labels, ZONE: zone} if zone else labels


def ready_since(host: SimulatedHost, now: datetime) -> datetime | None:
    """Since when the Node has been Ready; None while it is not."""
    if not host.kubelet_runs(now) or host.ready_at is None or now < host.ready_at:
        return None
    moments = [host.ready_at, host.update.done_at if host.update else None]
    return max(moment for moment in moments if moment is not None and moment <= now)


def _taints(request: HostRequest) -> list[dict[str, str]]:
    return [{"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})} for t in request.node.taints]


def _conditions(host: SimulatedHost, now: datetime) -> list[dict[str, str]]:
    since = ready_since(host, now)
    if since is not None:
        ready = _condition("Ready", "True", ("KubeletReady", "the simulated kubelet is ready"), since, now)
    elif host.kubelet_runs(now):
        ready = _condition(
            "Ready", "False", ("KubeletNotReady", "the container network is not ready yet"), host.running_at or now, now
        )
    else:
        silent_since = _silent_since(host, now)
        ready = _condition(
            "Ready",
            "Unknown",
            ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            silent_since,
            silent_since,
        )
    pressures = ("MemoryPressure", "DiskPressure", "PIDPressure")
    started = host.running_at or now
    beat = now if host.kubelet_runs(now) else _silent_since(host, now)
    return [*(_condition(p, "False", (f"KubeletHasNo{p}", ""), started, beat) for p in pressures), ready]


def _silent_since(host: SimulatedHost, now: datetime) -> datetime:
    """When the kubelet fell silent: the latest of the moments at which the host broke, stopped, or began to change."""
    moments = [host.fails_at, host.stopped_at, host.update.since if host.update and host.is_updating(now) else None]
    if host.state_at(now) is HostState.DELETING:
        moments.append(host.gone_at)
    past = [moment for moment in moments if moment is not None and moment <= now]
    return max(past, default=host.running_at or host.created_at)


def _condition(type_: str, status: str, why: tuple[str, str], since: datetime, heartbeat: datetime) -> dict[str, str]:
    return {
        "type": type_,
        "status": status,
        "reason": why[0],
        "message": why[1],
        "lastTransitionTime": _rfc3339(since),
        "lastHeartbeatTime": _rfc3339(heartbeat),
    }


def _node_info(host: SimulatedHost, now: datetime) -> dict[str, str]:
    versions = host.request_at(now).versions
    kubelet = versions.kubelet or DEFAULT_KUBELET
    runtime = versions.container_runtime.replace("/", "://", 1) if versions.container_runtime else DEFAULT_RUNTIME
    return {
        "kubeletVersion": kubelet if kubelet.startswith("v") else f"v{kubelet}",
        "kubeProxyVersion": kubelet if kubelet.startswith("v") else f"v{kubelet}",
        "containerRuntimeVersion": runtime if "://" in runtime else f"{runtime}://2.1.0",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "osImage": host.config_at(now).image,
        "kernelVersion": "6.12.0",
        "machineID": host.id,
        "systemUUID": host.request.identity.machine_uid,
        "bootID": f"{host.id}-{int((host.running_at or host.created_at).timestamp())}",
    }


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
