"""What decides whether a pod may be moved: its owner, its data on the Node, its annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.reading import spec_of
from controllers.scheduling.shapes import Keeping

MIRROR = "kubernetes.io/config.mirror"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
KEEPING_ANNOTATIONS = (MIRROR, SAFE_TO_EVICT, SAFE_LOCAL_VOLUMES, DAEMON_SET_POD)

_REPLICATED = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
_DEFAULT_GRACE = 30


def controller_of(meta: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner that is marked as the controller; an absent mark is no mark."""
    owners = meta.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller") is True), None)


def keeping_of(pod: Mapping[str, Any]) -> Keeping:
    meta, spec = pod["metadata"], spec_of(pod)
    annotations = meta.get("annotations") or {}
    owner = controller_of(meta)
    kind = owner.get("kind", "") if owner else ""
    grace = spec.get("terminationGracePeriodSeconds")
    return Keeping(
        mirror=MIRROR in annotations,
        daemon_set=kind == "DaemonSet" or annotations.get(DAEMON_SET_POD) == "true",
        replicated=kind in _REPLICATED,
        finished=(pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
        safe_to_evict=str(annotations.get(SAFE_TO_EVICT, "")),
        local_volumes=_local_volumes(spec, annotations),
        grace=grace if isinstance(grace, int) else _DEFAULT_GRACE,
    )


def _local_volumes(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> tuple[str, ...]:
    given_up = {name.strip() for name in annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")}
    return tuple(
        str(volume.get("name"))
        for volume in spec.get("volumes") or ()
        if volume.get("name") not in given_up and _dies_with_node(volume)
    )


def _dies_with_node(volume: Mapping[str, Any]) -> bool:
    if "hostPath" in volume:
        return volume["hostPath"] is not None
    return "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"
