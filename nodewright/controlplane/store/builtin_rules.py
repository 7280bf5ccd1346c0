"""What does the server itself fill in and check for the built-in kinds?

Only what clients here can tell: the strategies of kubernetes/pkg/registry, without what needs a kubelet, a
scheduler or a network.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from nodewright.controlplane.store.metadata import invalid
from nodewright.controlplane.values import Cause, Obj, Resource

_PERCENT = re.compile(r"(100|[0-9]{1,2})%").fullmatch
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
MAX_DATA = 1024 * 1024
"""Bytes that the values of a Secret or ConfigMap may have together."""


def prepare_new(resource: Resource, obj: Obj) -> None:
    """Fill in what a new object of a built-in kind starts with. Changes `obj` in place, but nothing it shares."""
    prepare = _NEW.get(resource.group_kind)
    if prepare is not None:
        prepare(obj)


def prepare_changed(resource: Resource, obj: Obj, old: Obj) -> None:
    """Fill in what an update of a built-in kind may leave out. Changes `obj` in place, but nothing it shares."""
    if resource.group_kind == "Namespace":
        _label_namespace(obj)
    elif resource.group_kind == "Secret":
        _secret_data(obj)
        obj.setdefault("type", old.get("type", "Opaque"))


def faults(resource: Resource, obj: Obj, old: Obj | None) -> list[Cause]:
    """Say what is wrong with an object of a built-in kind, beyond its metadata."""
    check = _CHECKS.get(resource.group_kind)
    return check(obj, old) if check is not None else []


def _new_namespace(obj: Obj) -> None:
    spec = dict(obj.get("spec") or {})
    finalizers = list(spec.get("finalizers") or ())
    spec["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
    obj["spec"] = spec
    obj["status"] = {"phase": "Active"}
    _label_namespace(obj)


def _label_namespace(obj: Obj) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), NAMESPACE_LABEL: metadata["name"]}


def _new_pod(obj: Obj) -> None:
    spec = dict(obj.get("spec") or {})
    for field, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
    ):
        spec.setdefault(field, value)
    obj["spec"] = spec
    obj["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}


def _qos_class(spec: Obj) -> str:
    resources = [container.get("resources") or {} for container in spec.get("containers") or ()]
    requests = [entry.get("requests") or entry.get("limits") or {} for entry in resources]
    if not any(requests):
        return "BestEffort"
    limits = [entry.get("limits") or {} for entry in resources]
    exact = all(
        limit.get(name) is not None and request.get(name, limit[name]) == limit[name]
        for limit, request in zip(limits, requests, strict=True)
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if exact else "Burstable"


def _new_secret(obj: Obj) -> None:
    _secret_data(obj)
    obj.setdefault("type", "Opaque")


def _secret_data(obj: Obj) -> None:
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _new_pending(obj: Obj) -> None:
    obj["status"] = {"phase": "Pending"}


def _new_replicated(obj: Obj) -> None:
    obj["spec"] = {"replicas": 1, **(obj.get("spec") or {})}
    obj["status"] = {"replicas": 0}


_NEW: dict[str, Callable[[Obj], None]] = {
    "Namespace": _new_namespace,
    "Pod": _new_pod,
    "Secret": _new_secret,
    "PersistentVolume": _new_pending,
    "PersistentVolumeClaim": _new_pending,
    "Deployment.apps": _new_replicated,
    "ReplicaSet.apps": _new_replicated,
    "StatefulSet.apps": _new_replicated,
    "ReplicationController": _new_replicated,
}


def _secret_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    found = _data_faults(obj, old)
    if old is not None and obj.get("type") != old.get("type"):
        found.append(invalid("type", f'"{obj.get("type")}"', "field is immutable"))
    for key, value in (obj.get("data") or {}).items():
        if not _is_base64(value):
            found.append(invalid(f"data[{key}]", "<secret>", "must be base64"))
    return found


def _is_base64(value: Any) -> bool:
    if value is None:
        return True
    try:
        base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        return False
    return True


def _data_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    found: list[Cause] = []
    size = 0
    for field in ("data", "binaryData"):
        entries = obj.get(field) or {}
        if not isinstance(entries, dict):
            return [invalid(field, f'"{entries}"', "must be a map")]
        size += sum(len(str(value)) for value in entries.values())
        if old is not None and old.get("immutable") and entries != (old.get(field) or {}):
            found.append(Cause(field, "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"))
    if old is not None and old.get("immutable") and not obj.get("immutable"):
        message = "Forbidden: field is immutable when `immutable` is set"
        found.append(Cause("immutable", "FieldValueForbidden", message))
    if size > MAX_DATA:
        found.append(Cause("data", "FieldValueTooLong", f"Too long: may not be more than {MAX_DATA} bytes"))
    return found


def _node_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    if old is None:
        return []
    before, after = old.get("spec") or {}, obj.get("spec") or {}
    changed = before.get("providerID") and after.get("providerID") != before["providerID"]
    if not changed:
        return []
    message = 'Forbidden: node updates may not change providerID except from "" to valid'
    return [Cause("spec.providerID", "FieldValueForbidden", message)]


def _replica_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    replicas = (obj.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        return [invalid("spec.replicas", str(replicas), "must be greater than or equal to 0")]
    selector = (obj.get("spec") or {}).get("selector")
    if old is not None and selector != (old.get("spec") or {}).get("selector"):
        return [invalid("spec.selector", str(selector), "field is immutable")]
    return []


def _budget_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    del old
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return [invalid("spec", "{}", "minAvailable and maxUnavailable cannot be both set")]
    found = []
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        if value is None:
            continue
        if isinstance(value, str) and not _PERCENT(value):
            message = "a valid percent string must be a numeric string followed by an ending '%'"
            found.append(invalid(f"spec.{field}", f'"{value}"', message))
        elif isinstance(value, int) and value < 0:
            found.append(invalid(f"spec.{field}", str(value), "must be greater than or equal to 0"))
    return found


_CHECKS: dict[str, Callable[[Obj, Obj | None], list[Cause]]] = {
    "Secret": _secret_faults,
    "ConfigMap": _data_faults,
    "Node": _node_faults,
    "Deployment.apps": _replica_faults,
    "ReplicaSet.apps": _replica_faults,
    "StatefulSet.apps": _replica_faults,
    "PodDisruptionBudget.policy": _budget_faults,
}
