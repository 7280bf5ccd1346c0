"""What is wrong with an object of a built-in kind, beyond its types and its metadata?

The checks of kubernetes/pkg/apis/*/validation that clients of this program can run into, in their words. What isn't
checked here is accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from nodewright.apiserver.store.metadata import invalid
from nodewright.apiserver.store.names import qualified_name_faults
from nodewright.apiserver.store.selectors import object_selector_match
from nodewright.apiserver.values import Cause, Obj, Resource

MAX_DATA = 1024 * 1024
"""Bytes that the values of a Secret or ConfigMap may have together."""

_PERCENT = re.compile(r"[0-9]+%").fullmatch
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+").fullmatch
_NO_CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_NEGATIVE = "must be greater than or equal to 0"


def faults(resource: Resource, obj: Obj, old: Obj | None) -> list[Cause]:
    """Say what is wrong; `old` is the state before an update."""
    check = _CHECKS.get(resource.group_kind)
    return check(obj, old) if check is not None else []


def _pod_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("containers"):
        return [Cause("spec.containers", "FieldValueRequired", "Required value")]
    if old is not None and _fixed_part(spec) != _fixed_part(old.get("spec") or {}):
        message = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
            "negative)"
        )
        return [Cause("spec", "FieldValueForbidden", message)]
    return []


def _fixed_part(spec: Obj) -> Obj:
    """Give what an update of a Pod must leave as it is."""
    fixed = {k: v for k, v in spec.items() if k not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [{**container, "image": ""} for container in fixed[field]]
    return fixed


def _secret_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    found = _data_faults(obj, old)
    if old is not None and obj.get("type") != old.get("type"):
        found.append(invalid("type", f'"{obj.get("type")}"', "field is immutable"))
    return found


def _data_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    found: list[Cause] = []
    size = 0
    message = "Forbidden: field is immutable when `immutable` is set"
    for field in ("data", "binaryData"):
        entries = obj.get(field) or {}
        for key, value in entries.items():
            size += len(value)
            if not _CONFIG_KEY(key):
                found.append(invalid(f"{field}[{key}]", f'"{key}"', _NO_CONFIG_KEY))
        if old is not None and old.get("immutable") and entries != (old.get(field) or {}):
            found.append(Cause(field, "FieldValueForbidden", message))
    if old is not None and old.get("immutable") and not obj.get("immutable"):
        found.append(Cause("immutable", "FieldValueForbidden", message))
    if size > MAX_DATA:
        found.append(Cause("data", "FieldValueTooLong", f"Too long: may not be more than {MAX_DATA} bytes"))
    return found


def _node_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    found = []
    spec = obj.get("spec") or {}
    for index, taint in enumerate(spec.get("taints") or ()):
        path = f"metadata.taints[{index}]"
        key = taint.get("key", "")
        found += [invalid(f"{path}.key", f'"{key}"', fault) for fault in qualified_name_faults(key)]
        if taint.get("effect") not in _EFFECTS:
            listed = ", ".join(f'"{effect}"' for effect in _EFFECTS)
            message = f'Unsupported value: "{taint.get("effect") or ""}": supported values: {listed}'
            found.append(Cause(f"{path}.effect", "FieldValueNotSupported", message))
    before = ((old or {}).get("spec") or {}).get("providerID")
    if before and spec.get("providerID") != before:
        message = 'Forbidden: node updates may not change providerID except from "" to valid'
        found.append(Cause("spec.providerID", "FieldValueForbidden", message))
    return found


def _workload_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    found = []
    replicas = spec.get("replicas", 0)
    if replicas < 0:
        found.append(invalid("spec.replicas", str(replicas), _NOT_NEGATIVE))
    if selector is None:
        found.append(Cause("spec.selector", "FieldValueRequired", "Required value"))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is not None and not object_selector_match(selector)(labels):
        message = "`selector` does not match template `labels`"
        found.append(invalid("spec.template.metadata.labels", _compact(labels), message))
    if old is not None and selector != (old.get("spec") or {}).get("selector"):
        found.append(invalid("spec.selector", _compact(selector), "field is immutable"))
    return found


def _budget_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    del old
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return [invalid("spec", _compact(spec), "minAvailable and maxUnavailable cannot be both set")]
    found = []
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        if isinstance(value, str) and not _PERCENT(value):
            message = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            )
            found.append(invalid(f"spec.{field}", f'"{value}"', message))
        elif isinstance(value, str) and int(value[:-1]) > 100:
            found.append(invalid(f"spec.{field}", f'"{value}"', "must not be greater than 100%"))
        elif isinstance(value, int) and value < 0:
            found.append(invalid(f"spec.{field}", str(value), _NOT_NEGATIVE))
    return found


def _lease_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    del old
    found = []
    spec = obj.get("spec") or {}
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = str(spec["leaseDurationSeconds"])
        found.append(invalid("spec.leaseDurationSeconds", value, "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        found.append(invalid("spec.leaseTransitions", str(spec["leaseTransitions"]), _NOT_NEGATIVE))
    return found


def _event_faults(obj: Obj, old: Obj | None) -> list[Cause]:
    del old
    about = (obj.get("involvedObject") or obj.get("regarding") or {}).get("namespace") or ""
    namespace = obj["metadata"].get("namespace")
    if about == namespace or (not about and namespace in ("default", "kube-system")):
        return []
    return [invalid("involvedObject.namespace", f'"{about}"', "does not match event.namespace")]


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


_CHECKS: dict[str, Callable[[Obj, Obj | None], list[Cause]]] = {
    "Pod": _pod_faults,
    "Secret": _secret_faults,
    "ConfigMap": _data_faults,
    "Node": _node_faults,
    "Event": _event_faults,
    "Event.events.k8s.io": _event_faults,
    "Deployment.apps": _workload_faults,
    "ReplicaSet.apps": _workload_faults,
    "StatefulSet.apps": _workload_faults,
    "DaemonSet.apps": _workload_faults,
    "PodDisruptionBudget.policy": _budget_faults,
    "Lease.coordination.k8s.io": _lease_faults,
}
