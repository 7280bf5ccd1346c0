"""What the kubelet of a simulated host does for pods: they run once they are bound, and end when they are deleted.

Plain data; it knows no Kubernetes client. Nothing really runs, so that no container ever ends by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


def is_to_start(pod: Mapping[str, Any]) -> bool:
    """Bound to a Node, and no kubelet has taken it up yet."""
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    return _is_bound(pod) and phase == "Pending" and not is_to_end(pod)


def is_to_end(pod: Mapping[str, Any]) -> bool:
    """Its deletion waits for the kubelet's word that nothing of it runs any more."""
    return _is_bound(pod) and bool(pod["metadata"].get("deletionTimestamp"))


def running(pod: Mapping[str, Any], node: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The status of a pod that was started on ``node``; conditions of other types are not the kubelet's."""
    spec, since = pod.get("spec") or {}, now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    addresses = (node.get("status") or {}).get("addresses") or ()
    host = next((each["address"] for each in addresses if each.get("type") == "InternalIP"), "")
    first = spec.get("initContainers") or ()
    return {
        "phase": "Running",
        "startTime": since,
        **({"hostIP": host} if host else {}),
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": since} for each in _CONDITIONS],
        "containerStatuses": [_container(each, _runs(since)) for each in spec.get("containers") or ()],
        **({"initContainerStatuses": [_container(each, _initial(each, since)) for each in first]} if first else {}),
    }


def _is_bound(pod: Mapping[str, Any]) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def _container(container: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    names = {"name": container.get("name", ""), "image": container.get("image", ""), "imageID": ""}
    return {**names, "restartCount": 0, "ready": True, "started": "running" in state, "state": state}


def _initial(container: Mapping[str, Any], since: str) -> dict[str, Any]:
    """A sidecar runs on; the others are done."""
    if container.get("restartPolicy") == "Always":
        return _runs(since)
    return {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": since}}


def _runs(since: str) -> dict[str, Any]:
    return {"running": {"startedAt": since}}
