"""Core objects → shapes. Pods made from one template share one PodKind, so that thousands are read as fast as one."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any

from controllers.scheduling.amounts import ShapeError, quantities, whole
from controllers.scheduling.demand import claims_of, demand_of
from controllers.scheduling.keeping import KEEPING_ANNOTATIONS, controller_of, keeping_of
from controllers.scheduling.shapes import NodeShape, Owner, PodKind, PodShape, Taint
from controllers.scheduling.volumes import VolumeBook

Obj = Mapping[str, Any]

_ASKED = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "overhead", "resources", "priority")
_FINISHED = ("Succeeded", "Failed")
_PLAIN_MARSHAL = 2
"""The last version that writes no back references: equal values give equal bytes."""


class Reader:
    """Reads pods; interns what they share. ``book``: claims and volumes, None to leave them out.

    One Reader serves one picture of claims and volumes; kinds that it has read stay with it.
    """

    def __init__(self, book: VolumeBook | None = None) -> None:
        self._book = book
        self._kinds: dict[bytes, PodKind] = {}
        self._owners: dict[Owner, Owner] = {}

    @property
    def size(self) -> int:
        """Kinds that it holds."""
        return len(self._kinds)

    def pod(self, pod: Obj) -> PodShape:
        """Raises ShapeError naming the field that can't be read."""
        meta, spec = pod["metadata"], pod.get("spec") or {}
        found = controller_of(meta)
        owner = None
        if found is not None:
            owner = Owner(found.get("kind", ""), found.get("name", ""), found.get("uid", ""))
            owner = self._owners.setdefault(owner, owner)
        return PodShape(
            meta.get("namespace", ""),
            meta["name"],
            self._kind(pod),
            meta.get("uid", ""),
            spec.get("nodeName") or "",
            owner,
            meta.get("creationTimestamp") or "",
            meta.get("deletionTimestamp") or "",
        )

    def _kind(self, pod: Obj) -> PodKind:
        try:
            parts = _parts(pod)
        except (AttributeError, TypeError, KeyError):
            raise ShapeError("spec", "is not shaped like the spec of a Pod") from None
        if self._book is not None:
            parts.append(claims_of(pod))
        key = marshal.dumps(parts, _PLAIN_MARSHAL)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._read(pod)
        return kind

    def _read(self, pod: Obj) -> PodKind:
        meta, spec = pod["metadata"], pod.get("spec") or {}
        priority = spec.get("priority")
        try:
            demand = demand_of(pod, self._book)
        except (AttributeError, TypeError, KeyError):
            raise ShapeError("spec", "is not shaped like the spec of a Pod") from None
        return PodKind(
            demand,
            meta.get("namespace", ""),
            dict(meta.get("labels") or {}),
            keeping_of(pod),
            priority if isinstance(priority, int) else 0,
            bool(meta.get("deletionTimestamp")),
        )


def _parts(pod: Obj) -> list[Any]:
    """Everything of a pod that a PodKind is made of, and nothing that differs between pods of one template."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    annotations = meta.get("annotations")
    bound = bool(spec.get("nodeName"))
    return [
        meta.get("namespace"),
        meta.get("labels"),
        bool(meta.get("deletionTimestamp")),
        [(name, spec[name]) for name in _ASKED if name in spec],
        [(c.get("resources"), c.get("ports")) for c in spec.get("containers") or ()],
        "initContainers" in spec
        and [(c.get("resources"), c.get("ports"), c.get("restartPolicy")) for c in spec["initContainers"] or ()],
        bool(spec.get("schedulingGates")),
        bound and "containerStatuses" in status and _resized(spec, status),
        annotations and [annotations.get(name) for name in KEEPING_ANNOTATIONS],
        [(ref.get("kind"), ref.get("controller")) for ref in meta.get("ownerReferences") or ()],
        status.get("phase") in _FINISHED,
        spec.get("terminationGracePeriodSeconds"),
        "volumes" in spec
        and [_local(volume) for volume in spec["volumes"] or () if "emptyDir" in volume or "hostPath" in volume],
    ]


def _local(volume: Obj) -> tuple[Any, ...]:
    return volume.get("name"), volume.get("emptyDir"), bool(volume.get("hostPath"))


def _resized(spec: Obj, status: Obj) -> Any:
    """What running containers have, where that is not what they ask."""
    asked = {
        c.get("name"): (c.get("resources") or {}).get("requests")
        for field in ("containers", "initContainers")
        for c in spec.get(field) or ()
    }
    different = []
    for field in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(field) or ():
            applied, granted = (each.get("resources") or {}).get("requests"), each.get("allocatedResources")
            wanted = asked.get(each.get("name"))
            if applied not in (None, wanted) or granted not in (None, wanted):
                different.append((each.get("name"), applied, granted))
    if not different:
        return None
    resizes = (c for c in status.get("conditions") or () if c.get("type") == "PodResizePending")
    return different, [c.get("reason") for c in resizes]


def read_node(node: Obj, csi_node: Obj | None = None) -> NodeShape:
    """A Node as kube-scheduler sees it. Raises ShapeError naming the field."""
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    limits = {}
    for driver in ((csi_node or {}).get("spec") or {}).get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        if isinstance(count, int):
            limits[str(driver.get("name"))] = count
    return NodeShape(
        name=meta["name"],
        labels=meta.get("labels") or {},
        allocatable=whole(quantities(status.get("allocatable"), "status.allocatable")),
        taints=tuple(
            Taint(str(each.get("key", "")), str(each.get("value") or ""), str(each.get("effect", "")))
            for each in spec.get("taints") or ()
        ),
        unschedulable=spec.get("unschedulable") is True,
        volume_limits=tuple(sorted(limits.items())),
    )
