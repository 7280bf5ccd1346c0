"""The tables of all other built-in kinds: Nodes, Namespaces, configuration, events, storage and access."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from nodewright.controlplane.table.layout import AGE, CREATED, NAME, Cells, Layout, boolean, number, text, wide
from nodewright.controlplane.table.wording import (
    NONE,
    UNKNOWN,
    age,
    at,
    condition,
    human_duration,
    joined,
    labels_text,
    name,
    since,
)
from nodewright.controlplane.values import Column, Obj

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def _node(obj: Obj, now: datetime) -> Cells:
    ready = condition(obj, "Ready")
    state = "Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"
    if at(obj, "spec", "unschedulable"):
        state += ",SchedulingDisabled"
    labels = at(obj, "metadata", "labels", default={})
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles = {role for role in (*roles, labels.get("kubernetes.io/role", "")) if role}
    info = at(obj, "status", "nodeInfo", default={})
    kernel = str(info.get("kernelVersion") or UNKNOWN)
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name(obj),
        state,
        joined(sorted(roles)) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _address(obj: Obj, kind: str) -> str:
    addresses = at(obj, "status", "addresses", default=())
    return next((str(a.get("address", "")) for a in addresses if a.get("type") == kind), NONE)


def _event(obj: Obj, now: datetime) -> Cells:
    """Fill the row of an event of either group: core/v1 and events.k8s.io/v1 name the same things differently."""
    target = at(obj, "involvedObject", default=None) or at(obj, "regarding", default={})
    first = since(_field(obj, "firstTimestamp", "deprecatedFirstTimestamp") or obj.get("eventTime"), now)
    last_seen = _field(obj, "lastTimestamp", "deprecatedLastTimestamp")
    last = since(last_seen, now) if last_seen else first
    count = _field(obj, "count", "deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    named = str(target.get("kind", "")).lower()
    if target.get("name"):
        named += f"/{target['name']}"
    source = _field(obj, "source", "deprecatedSource") or {}
    component = source.get("component") or _field(obj, "reportingComponent", "reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        named,
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        str(_field(obj, "message", "note") or "").strip(),
        first,
        count,
        name(obj),
    ]


def _field(obj: Obj, *names: str) -> Any:
    return next((obj[key] for key in names if obj.get(key)), None)


_EVENT: Final = Layout(
    (
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object", "What the event is about."),
        wide(text("Subobject")),
        wide(text("Source", "Who reported it.")),
        text("Message"),
        wide(text("First Seen")),
        wide(text("Count")),
        Column("Name", "string", "", NAME.description, "name", 1),
    ),
    _event,
)


def _namespace(obj: Obj, now: datetime) -> Cells:
    return [name(obj), at(obj, "status", "phase", default=""), age(obj, now)]


def _secret(obj: Obj, now: datetime) -> Cells:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _config_map(obj: Obj, now: datetime) -> Cells:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _lease(obj: Obj, now: datetime) -> Cells:
    return [name(obj), at(obj, "spec", "holderIdentity", default=""), age(obj, now)]


def _service(obj: Obj, now: datetime) -> Cells:
    ips = at(obj, "spec", "clusterIPs", default=())
    ports = joined(map(_port, at(obj, "spec", "ports", default=()))) or NONE
    kind = at(obj, "spec", "type", default="ClusterIP")
    return [
        name(obj),
        kind,
        ips[0] if ips else at(obj, "spec", "clusterIP", default=NONE) or NONE,
        _external(obj, str(kind)),
        ports,
        age(obj, now),
        labels_text(at(obj, "spec", "selector")),
    ]


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', 'TCP')}"


def _external(obj: Obj, kind: str) -> str:
    external = list(at(obj, "spec", "externalIPs", default=()))
    if kind == "ExternalName":
        return str(at(obj, "spec", "externalName", default=""))
    if kind == "LoadBalancer":
        ingress = at(obj, "status", "loadBalancer", "ingress", default=())
        return joined([*sorted({i.get("ip") or i.get("hostname", "") for i in ingress}), *external]) or "<pending>"
    return joined(external) or NONE


_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(stated: Any) -> str:
    return joined(short for mode, short in _MODES.items() if mode in (stated or ()))


def _phase(obj: Obj) -> str:
    return "Terminating" if at(obj, "metadata", "deletionTimestamp") else str(at(obj, "status", "phase", default=""))


def _volume(obj: Obj, now: datetime) -> Cells:
    claim = at(obj, "spec", "claimRef")
    return [
        name(obj),
        str(at(obj, "spec", "capacity", "storage", default="0")),
        _modes(at(obj, "spec", "accessModes")),
        at(obj, "spec", "persistentVolumeReclaimPolicy", default=""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        at(obj, "spec", "storageClassName", default=""),
        at(obj, "spec", "volumeAttributesClassName", default="<unset>"),
        at(obj, "status", "reason", default=""),
        age(obj, now),
        at(obj, "spec", "volumeMode", default="<unset>"),
    ]


def _claim(obj: Obj, now: datetime) -> Cells:
    volume = at(obj, "spec", "volumeName", default="")
    return [
        name(obj),
        _phase(obj),
        volume,
        str(at(obj, "status", "capacity", "storage", default="0")) if volume else "",
        _modes(at(obj, "status", "accessModes")) if volume else "",
        at(obj, "spec", "storageClassName", default=""),
        at(obj, "spec", "volumeAttributesClassName", default="<unset>"),
        age(obj, now),
        at(obj, "spec", "volumeMode", default="<unset>"),
    ]


def _quota(obj: Obj, now: datetime) -> Cells:
    hard, used = at(obj, "status", "hard", default={}), at(obj, "status", "used", default={})
    lines = {key: f"{key}: {used.get(key, 0)}/{hard[key]}" for key in sorted(hard)}
    requests = ", ".join(line for key, line in lines.items() if not key.startswith("limits"))
    limits = ", ".join(line for key, line in lines.items() if key.startswith("limits"))
    return [name(obj), requests, limits, age(obj, now)]


_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def _storage_class(obj: Obj, now: datetime) -> Cells:
    default = at(obj, "metadata", "annotations", _DEFAULT_CLASS) == "true"
    return [
        f"{name(obj)} (default)" if default else name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _priority_class(obj: Obj, now: datetime) -> Cells:
    policy = obj.get("preemptionPolicy", "")
    return [name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now), policy]


def _attachment(obj: Obj, now: datetime) -> Cells:
    return [
        name(obj),
        at(obj, "spec", "attacher", default=""),
        at(obj, "spec", "source", "persistentVolumeName", default=""),
        at(obj, "spec", "nodeName", default=""),
        bool(at(obj, "status", "attached")),
        age(obj, now),
    ]


def _created(obj: Obj, _: datetime) -> Cells:
    return [name(obj), at(obj, "metadata", "creationTimestamp", default="")]


def _binding(obj: Obj, now: datetime) -> Cells:
    role = f"{at(obj, 'roleRef', 'kind', default='')}/{at(obj, 'roleRef', 'name', default='')}"
    subjects = obj.get("subjects") or ()
    named = {
        kind: ", ".join(str(s.get("name", "")) for s in subjects if s.get("kind") == kind) for kind in ("User", "Group")
    }
    accounts = [s for s in subjects if s.get("kind") == "ServiceAccount"]
    spelled = ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in accounts)
    return [name(obj), role, age(obj, now), named["User"], named["Group"], spelled]


def _signing_request(obj: Obj, now: datetime) -> Cells:
    expiration = at(obj, "spec", "expirationSeconds")
    state = "Denied" if condition(obj, "Denied") else "Approved" if condition(obj, "Approved") else "Pending"
    state += ",Failed" if condition(obj, "Failed") else ""
    state += ",Issued" if at(obj, "status", "certificate") else ""
    return [
        name(obj),
        age(obj, now),
        at(obj, "spec", "signerName", default="") or NONE,
        at(obj, "spec", "username", default=""),
        NONE if expiration is None else human_duration(expiration),
        state,
    ]


_BINDING: Final = Layout(
    (NAME, text("Role"), AGE, wide(text("Users")), wide(text("Groups")), wide(text("ServiceAccounts"))), _binding
)
_ONLY_CREATED: Final = Layout((NAME, CREATED), _created)
_RBAC: Final = "rbac.authorization.k8s.io"
_VOLUME_COLUMNS: Final = (text("StorageClass"), text("VolumeAttributesClass"))

LAYOUTS: Final = {
    ("", "Node"): Layout(
        (
            NAME,
            text("Status"),
            text("Roles"),
            AGE,
            text("Version", "Version of the kubelet."),
            wide(text("Internal-IP")),
            wide(text("External-IP")),
            wide(text("OS-Image")),
            wide(text("Kernel-Version")),
            wide(text("Container-Runtime")),
        ),
        _node,
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "Namespace"): Layout((NAME, text("Status"), AGE), _namespace),
    ("", "Secret"): Layout((NAME, text("Type"), text("Data", "How many entries it has."), AGE), _secret),
    ("", "ConfigMap"): Layout((NAME, text("Data", "How many entries it has."), AGE), _config_map),
    ("coordination.k8s.io", "Lease"): Layout((NAME, text("Holder"), AGE), _lease),
    ("", "Service"): Layout(
        (
            NAME,
            text("Type"),
            text("Cluster-IP"),
            text("External-IP"),
            text("Port(s)"),
            AGE,
            wide(text("Selector")),
        ),
        _service,
    ),
    ("", "PersistentVolume"): Layout(
        (
            NAME,
            text("Capacity"),
            text("Access Modes"),
            text("Reclaim Policy"),
            text("Status"),
            text("Claim"),
            *_VOLUME_COLUMNS,
            text("Reason"),
            AGE,
            wide(text("VolumeMode")),
        ),
        _volume,
    ),
    ("", "PersistentVolumeClaim"): Layout(
        (
            NAME,
            text("Status"),
            text("Volume"),
            text("Capacity"),
            text("Access Modes"),
            *_VOLUME_COLUMNS,
            AGE,
            wide(text("VolumeMode")),
        ),
        _claim,
    ),
    ("", "ResourceQuota"): Layout((NAME, text("Request"), text("Limit"), AGE), _quota),
    ("", "LimitRange"): _ONLY_CREATED,
    ("storage.k8s.io", "StorageClass"): Layout(
        (
            NAME,
            text("Provisioner"),
            text("ReclaimPolicy"),
            text("VolumeBindingMode"),
            text("AllowVolumeExpansion"),
            AGE,
        ),
        _storage_class,
    ),
    ("storage.k8s.io", "VolumeAttachment"): Layout(
        (
            NAME,
            Column("Attacher", "string", "", "Attacher of the object.", "name"),
            text("PV"),
            text("Node"),
            boolean("Attached"),
            AGE,
        ),
        _attachment,
    ),
    ("scheduling.k8s.io", "PriorityClass"): Layout(
        (NAME, number("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy")), _priority_class
    ),
    (_RBAC, "Role"): _ONLY_CREATED,
    (_RBAC, "ClusterRole"): _ONLY_CREATED,
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("certificates.k8s.io", "CertificateSigningRequest"): Layout(
        (NAME, AGE, text("SignerName"), text("Requestor"), text("RequestedDuration"), text("Condition")),
        _signing_request,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _ONLY_CREATED,
}
