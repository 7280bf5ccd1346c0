"""Tables of devices and of what claims them (resource.k8s.io), and of the classes of runtimes (node.k8s.io)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, text
from nodewright.apiserver.table.wording import age, at, name
from nodewright.apiserver.values import Obj


def _plain(obj: Obj, now: datetime) -> Cells:
    return [name(obj), age(obj, now)]


def _claim(obj: Obj, now: datetime) -> Cells:
    """Sum the state up as resourceClaimState of kubernetes/pkg/printers does."""
    deleted = bool(at(obj, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if at(obj, "status", "allocation") is not None:
        states.append("allocated")
        states += ["reserved"] if at(obj, "status", "reservedFor") else []
    elif not deleted:
        states.append("pending")
    return [name(obj), ",".join(states), age(obj, now)]


def _slice(obj: Obj, now: datetime) -> Cells:
    spec = [at(obj, "spec", *path, default="") for path in (("nodeName",), ("driver",), ("pool", "name"))]
    return [name(obj), *spec, age(obj, now)]


def _runtime_class(obj: Obj, now: datetime) -> Cells:
    return [name(obj), at(obj, "handler", default=""), age(obj, now)]


def _attributes_class(obj: Obj, now: datetime) -> Cells:
    return [name(obj), at(obj, "driverName", default=""), age(obj, now)]


LAYOUTS: Final = {
    ("resource.k8s.io", "DeviceClass"): Layout((NAME, AGE), _plain),
    ("resource.k8s.io", "ResourceClaim"): Layout((NAME, text("State"), AGE), _claim),
    ("resource.k8s.io", "ResourceClaimTemplate"): Layout((NAME, AGE), _plain),
    ("resource.k8s.io", "ResourceSlice"): Layout((NAME, text("Node"), text("Driver"), text("Pool"), AGE), _slice),
    ("node.k8s.io", "RuntimeClass"): Layout((NAME, text("Handler"), AGE), _runtime_class),
    ("storage.k8s.io", "VolumeAttributesClass"): Layout((NAME, text("DriverName"), AGE), _attributes_class),
}
