"""What of an object is kept: most of 150,000 pods is what no reconciler ever reads, and what all pods of a set share.

Of pods only the fields that are named here are kept, and equal parts are kept once. A reconciler that wants to read
another field of a pod adds it here. Of Machines all is kept but their managed fields, and equal parts once.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from controllers.kernel.refs import MACHINE, POD, Kind

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_METADATA = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "finalizers",
)  # fmt: skip
_SHARED_METADATA = ("labels", "annotations", "ownerReferences")
_SPEC = (
    "nodeName", "schedulerName", "priority", "priorityClassName", "restartPolicy", "terminationGracePeriodSeconds",
    "hostNetwork",
)  # fmt: skip
_SHARED_SPEC = (
    "affinity", "nodeSelector", "overhead", "readinessGates", "resources", "schedulingGates", "schedulingGroup",
    "tolerations", "topologySpreadConstraints",
)  # fmt: skip
_CONTAINER = ("name", "image", "resources", "ports", "restartPolicy")
_STATUS = ("phase", "reason", "nominatedNodeName")
_GRANTED = ("name", "resources", "allocatedResources")
_CONDITIONS = frozenset({"PodScheduled", "Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress"})
_MACHINE_METADATA = ("labels", "finalizers", "ownerReferences", "namespace")
_MACHINE_SPEC = ("clusterName", "versions", "providerConfig", "failureDomain", "taints", "configSource")
_MACHINE_STATUS = ("versions", "hostScope", "failureDomain")
_WORDS = ("type", "status", "reason")
_LONGEST_WORD = 64
_LOCAL = ("emptyDir", "hostPath")
_VOLUMES = (*_LOCAL, "persistentVolumeClaim", "ephemeral")
_MOST_SHARED_BYTES = 32 * 2**20
_LONGEST_SHARED = 8192
"""Bytes of a value that is looked for among those of other pods; pods of one template are far smaller."""
_PLAIN_MARSHAL = 2
"""The last version that writes no back references: equal values give equal bytes."""

Obj = Mapping[str, Any]


class _Known:
    """Values by their bytes, which are bounded; a full memory begins anew, and only costs sharing."""

    def __init__(self) -> None:
        self._values: dict[bytes, Any] = {}
        self._bytes = 0

    def once(self, packed: bytes, value: Any) -> Any:
        known = self._values.get(packed)
        if known is not None:
            return known
        if self._bytes + len(packed) > _MOST_SHARED_BYTES:
            self._values.clear()
            self._bytes = 0
        self._values[packed] = value
        self._bytes += len(packed)
        return value


_known = _Known()


def slim(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    """The object without what no reconciler reads; it may be the same one, changed."""
    meta = obj["metadata"]
    meta.pop("managedFields", None)
    annotations = meta.get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(LAST_APPLIED, None)
    if kind == MACHINE:
        return _machine(obj)
    if kind != POD:
        return obj
    try:
        return _pod(obj)
    except (AttributeError, TypeError, ValueError):  # not shaped like a pod: whoever reads it says so
        return obj


def _machine(machine: dict[str, Any]) -> dict[str, Any]:
    """The same with what all Machines of a set share kept once: half of what 10,000 of them take."""
    machine.update((name, sys.intern(text)) for name, text in machine.items() if isinstance(text, str))
    meta, spec, status = machine["metadata"], machine.get("spec"), machine.get("status")
    _shared_in(meta, _MACHINE_METADATA)
    if isinstance(spec, dict):
        _shared_in(spec, _MACHINE_SPEC)
    if isinstance(status, dict):
        _shared_in(status, _MACHINE_STATUS)
        conditions = status.get("conditions")
        for condition in conditions if isinstance(conditions, list) else ():
            _words_once(condition)
    return machine


def _shared_in(fields: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        value = fields.get(name)
        if value:
            fields[name] = _once(value)


def _words_once(condition: Any) -> None:
    if isinstance(condition, dict):
        for name in _WORDS:
            text = condition.get(name)
            if isinstance(text, str) and len(text) <= _LONGEST_WORD:
                condition[name] = sys.intern(text)


def _pod(pod: Obj) -> dict[str, Any]:
    meta, spec, status = pod["metadata"], pod.get("spec"), pod.get("status")
    slimmed: dict[str, Any] = {key: pod[key] for key in ("apiVersion", "kind") if key in pod}
    slimmed["metadata"] = {**_kept(meta, _METADATA), **_shared(_kept(meta, _SHARED_METADATA))}
    if spec is not None:
        slimmed["spec"] = {**_kept(spec, _SPEC), **_shared(_kept(spec, _SHARED_SPEC) | _containers(spec))}
        if "volumes" in spec:
            volumes = (each for each in spec["volumes"] or () if any(kind in each for kind in _VOLUMES))
            slimmed["spec"]["volumes"] = [_once(each) if _is_local(each) else each for each in volumes]
    if status is not None:
        slimmed["status"] = {**_kept(status, _STATUS), **_shared(_granted(status))}
        if "conditions" in status:
            conditions = status["conditions"] or ()
            slimmed["status"]["conditions"] = [each for each in conditions if each.get("type") in _CONDITIONS]
    return slimmed


def _kept(found: Obj, names: Iterable[str]) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError(f"{found!r} is not an object")
    return {name: found[name] for name in names if name in found}


def _containers(spec: Obj) -> dict[str, Any]:
    fields = _kept(spec, ("containers", "initContainers"))
    return {name: [_kept(each, _CONTAINER) for each in found or ()] for name, found in fields.items()}


def _granted(status: Obj) -> dict[str, Any]:
    fields = _kept(status, ("containerStatuses", "initContainerStatuses"))
    return {name: [_kept(each, _GRANTED) for each in found or ()] for name, found in fields.items()}


def _is_local(volume: Obj) -> bool:
    """Others, which name a claim of the pod's own, are not shared by many."""
    return any(kind in volume for kind in _LOCAL)


def _shared(fields: dict[str, Any]) -> dict[str, Any]:
    """The same, with values that are equal to earlier ones replaced by those."""
    for name, value in fields.items():
        if value:
            fields[name] = _once(value)
    return fields


def _once(value: Any) -> Any:
    packed = marshal.dumps(value, _PLAIN_MARSHAL)
    if len(packed) > _LONGEST_SHARED:
        return value
    return _known.once(packed, value)
