"""Storage: volumes, claims and their drivers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nodewright.controlplane.table.builtin.basics import age, deleting, items, text_of
from nodewright.controlplane.table.printer import UNSET, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class_name(obj: Obj) -> str:
    annotations = part(obj, "metadata", "annotations")
    named: str = annotations.get(_CLASS_ANNOTATION) or part(obj, "spec").get("storageClassName") or ""
    return named


def _phase(obj: Obj) -> str:
    return "Terminating" if deleting(obj) else part(obj, "status").get("phase", "")


def _volume(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    claim = part(spec, "claimRef")
    return [
        name_of(obj),
        text_of(part(spec, "capacity").get("storage"), "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_name(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        part(obj, "status").get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        text_of(part(status, "capacity").get("storage"), "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class_name(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(obj: Obj, now: datetime) -> list[Any]:
    annotations = part(obj, "metadata", "annotations")
    default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        name_of(obj) + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attachment(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("attacher", ""),
        part(spec, "source").get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        bool(part(obj, "status").get("attached")),
        age(obj, now),
    ]


def _csi_node(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(items(part(obj, "spec"), "drivers")), age(obj, now)]


def _csi_driver(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    audiences = [request.get("audience", "") for request in items(spec, "tokenRequests")]
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) if audiences else UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        age(obj, now),
    ]


_CSI_DRIVER = (
    "Name | AttachRequired:boolean | PodInfoOnMount:boolean | StorageCapacity:boolean | TokenRequests"
    " | RequiresRepublish:boolean | Modes | Age"
)
_ATTACHMENT = columns("Name | Attacher | PV | Node | Attached:boolean | Age")
_ATTACHMENT[1]["format"] = "name"

PRINTERS = {
    ("v1", "PersistentVolume"): Printer(
        columns(
            "Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass"
            " | VolumeAttributesClass | Reason | Age | +VolumeMode"
        ),
        _volume,
    ),
    ("v1", "PersistentVolumeClaim"): Printer(
        columns(
            "Name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age"
            " | +VolumeMode"
        ),
        _claim,
    ),
    ("storage.k8s.io/v1", "StorageClass"): Printer(
        columns("Name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age"), _storage_class
    ),
    ("storage.k8s.io/v1", "VolumeAttachment"): Printer(_ATTACHMENT, _attachment),
    ("storage.k8s.io/v1", "CSINode"): Printer(columns("Name | Drivers:integer | Age"), _csi_node),
    ("storage.k8s.io/v1", "CSIDriver"): Printer(columns(_CSI_DRIVER), _csi_driver),
}
