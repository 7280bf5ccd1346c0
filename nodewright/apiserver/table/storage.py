"""The tables of volumes, claims, storage classes and drivers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, boolean, number, text, wide
from nodewright.apiserver.table.wording import NONE, age, at, joined, name
from nodewright.apiserver.values import Column, Obj

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


def _class_name(obj: Obj) -> str:
    # The annotation is older than the field, and still comes before it.
    named = at(obj, "metadata", "annotations", _CLASS_ANNOTATION) or at(obj, "spec", "storageClassName")
    return str(named or "")


def _volume(obj: Obj, now: datetime) -> Cells:
    claim = at(obj, "spec", "claimRef")
    return [
        name(obj),
        str(at(obj, "spec", "capacity", "storage", default="0")),
        _modes(at(obj, "spec", "accessModes")),
        at(obj, "spec", "persistentVolumeReclaimPolicy", default=""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_name(obj),
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
        _class_name(obj),
        at(obj, "spec", "volumeAttributesClassName", default="<unset>"),
        age(obj, now),
        at(obj, "spec", "volumeMode", default="<unset>"),
    ]


_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _storage_class(obj: Obj, now: datetime) -> Cells:
    default = any(at(obj, "metadata", "annotations", key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{name(obj)} (default)" if default else name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attachment(obj: Obj, now: datetime) -> Cells:
    return [
        name(obj),
        at(obj, "spec", "attacher", default=""),
        at(obj, "spec", "source", "persistentVolumeName", default=""),
        at(obj, "spec", "nodeName", default=""),
        bool(at(obj, "status", "attached")),
        age(obj, now),
    ]


def _csi_node(obj: Obj, now: datetime) -> Cells:
    return [name(obj), len(at(obj, "spec", "drivers", default=())), age(obj, now)]


def _csi_driver(obj: Obj, now: datetime) -> Cells:
    requests = at(obj, "spec", "tokenRequests")
    return [
        name(obj),
        at(obj, "spec", "attachRequired", default=True),
        at(obj, "spec", "podInfoOnMount", default=False),
        at(obj, "spec", "storageCapacity", default=False),
        "<unset>" if requests is None else joined(request.get("audience", "") for request in requests),
        at(obj, "spec", "requiresRepublish", default=False),
        joined(at(obj, "spec", "volumeLifecycleModes", default=())) or NONE,
        age(obj, now),
    ]


_VOLUME_COLUMNS: Final = (text("StorageClass"), text("VolumeAttributesClass"))

LAYOUTS: Final = {
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
    ("storage.k8s.io", "CSINode"): Layout((NAME, number("Drivers"), AGE), _csi_node),
    ("storage.k8s.io", "CSIDriver"): Layout(
        (
            NAME,
            boolean("AttachRequired"),
            boolean("PodInfoOnMount"),
            boolean("StorageCapacity"),
            text("TokenRequests"),
            boolean("RequiresRepublish"),
            text("Modes"),
            AGE,
        ),
        _csi_driver,
    ),
}
