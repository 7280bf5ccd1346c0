"""Where a pod's claims let it go: bound volumes stay in their zone, unbound ones are made where their class allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.reading import spec_of
from api.selectors import Operator, Requirement
from controllers.scheduling.shapes import NodeTerm, Volume, node_terms, topology_terms

Claim = tuple[str, str]
"""Namespace and name of a PersistentVolumeClaim."""
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_ZONES_BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A claim that no Node can satisfy now, ``why`` in kube-scheduler's words. The lowest ``rank`` is reported."""

    why: str
    rank: int = 0


@dataclass(frozen=True, slots=True)
class VolumeBook:
    """Claims, volumes and storage classes by name, as core objects."""

    claims: Mapping[Claim, Mapping[str, Any]] = field(default_factory=dict)
    volumes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    storage_classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def resolve(self, claim: Claim) -> Volume | Unresolved:
        found = self.claims.get(claim)
        if found is None:
            return Unresolved(f'persistentvolumeclaim "{claim[1]}" not found')
        if found["metadata"].get("deletionTimestamp"):
            return Unresolved(f'persistentvolumeclaim "{claim[1]}" is being deleted')
        spec = spec_of(found)
        exclusive = "ReadWriteOncePod" in (spec.get("accessModes") or ())
        bound_to = spec.get("volumeName")
        if bound_to and _BIND_COMPLETED in (found["metadata"].get("annotations") or {}):
            volume = self.volumes.get(bound_to)
            if volume is None:
                return Unresolved(f'persistentvolume "{bound_to}" not found', 2)
            return _bound(volume, exclusive)
        return self._unbound(claim, spec, exclusive)

    def _unbound(self, claim: Claim, spec: Mapping[str, Any], exclusive: bool) -> Volume | Unresolved:
        name = spec.get("storageClassName")
        storage = self.storage_classes.get(name) if name is not None else self._default_class()
        if storage is None or storage.get("volumeBindingMode") != "WaitForFirstConsumer":
            return Unresolved("pod has unbound immediate PersistentVolumeClaims", 1)
        handle, provisioner = "/".join(claim), str(storage.get("provisioner", ""))
        if provisioner == _NO_PROVISIONER:
            terms = _available(self.volumes.values(), storage["metadata"]["name"])
            return Volume(handle, "", terms, exclusive=exclusive, bound=False)
        allowed = topology_terms(storage.get("allowedTopologies"))
        return Volume(handle, provisioner, allowed, exclusive=exclusive, bound=False)

    def _default_class(self) -> Mapping[str, Any] | None:
        marked = (
            each
            for each in self.storage_classes.values()
            if (each["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
        )
        return next(marked, None)


def _bound(volume: Mapping[str, Any], exclusive: bool) -> Volume:
    spec = spec_of(volume)
    csi = spec.get("csi") or {}
    required = (spec.get("nodeAffinity") or {}).get("required")
    labels = volume["metadata"].get("labels") or {}
    zones = tuple(
        Requirement(key, Operator.IN, tuple(sorted(set(labels[key].split(_ZONES_BETWEEN)))))
        for key in ZONE_LABELS
        if labels.get(key)
    )
    handle = str(csi.get("volumeHandle") or volume["metadata"]["name"])
    terms = node_terms(required)
    return Volume(handle, str(csi.get("driver", "")), terms, zones, exclusive)


def _available(volumes: Iterable[Mapping[str, Any]], storage_class: str) -> tuple[NodeTerm, ...] | None:
    """Where a volume of this class lies that nobody has claimed; None: one can be used everywhere."""
    terms: list[NodeTerm] = []
    for volume in volumes:
        spec = spec_of(volume)
        free = (volume.get("status") or {}).get("phase") == "Available" and not spec.get("claimRef")
        if not free or spec.get("storageClassName") != storage_class:
            continue
        required = node_terms((spec.get("nodeAffinity") or {}).get("required"))
        if required is None:
            return None
        terms.extend(required)
    return tuple(terms)
