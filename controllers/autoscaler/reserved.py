"""What kubelets keep from pods: allocatable is capacity less what is reserved for Kubernetes, the system, and eviction.

How a kubelet is set up is its bootstrap's business. What this goes by are the annotations by which machine-controller
is declared the same way, on the MachineDeployment or MachineSet or, above that, on its template. What nobody says is
not reserved: a Node of the group, once there is one, tells it exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from api import names
from controllers.kernel.refs import Obj, annotations_of
from controllers.scheduling.amounts import Quantities, ShapeError, quantities
from controllers.scheduling.shapes import EPHEMERAL_STORAGE, MEMORY

_SIGNALS = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}
"""Of eviction thresholds: those that kubelets take off what they offer."""
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%\Z")


def kubelet_settings(body: Obj) -> dict[str, str]:
    """By annotation."""
    template: Any = (body.get("spec") or {}).get("template")
    inner = template.get("metadata") if isinstance(template, Mapping) else None
    own = annotations_of({"metadata": inner}) if isinstance(inner, Mapping) else {}
    both = {**annotations_of(body), **own}
    return {key: text for key, text in both.items() if key.startswith(names.KUBELET_CONFIG_PREFIX)}


def allocatable(capacity: Quantities, settings: Mapping[str, str]) -> Quantities:
    """What is left for pods. Raises ShapeError naming the annotation that can't be read or leaves nothing."""
    left = dict(capacity)
    for key, part in _reservations(capacity, settings):
        for resource, amount in part.items():
            if resource in left:
                left[resource] -= amount
                if left[resource] <= 0:
                    raise ShapeError(_field(key), f"nothing is left of {resource} for pods")
    return left


def _reservations(capacity: Quantities, settings: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Decimal]]]:
    for key in (names.KUBE_RESERVED_ANNOTATION, names.SYSTEM_RESERVED_ANNOTATION):
        pairs = dict(_pairs(key, settings.get(key, ""), "="))
        yield key, quantities(pairs, _field(key))
    key = names.EVICTION_HARD_ANNOTATION
    for signal, text in _pairs(key, settings.get(key, ""), "<"):
        resource = _SIGNALS.get(signal)
        if resource is not None:
            yield key, {resource: _threshold(text, capacity.get(resource, Decimal(0)), key=key, signal=signal)}


def _threshold(text: str, capacity: Decimal, *, key: str, signal: str) -> Decimal:
    percent = _PERCENT.match(text)
    if percent:
        return capacity * Decimal(percent[1]) / 100
    return quantities({signal: text}, _field(key))[signal]


def _pairs(key: str, text: str, between: str) -> Iterator[tuple[str, str]]:
    for part in (each.strip() for each in text.split(",")):
        if part:
            name, found, value = part.partition(between)
            if not found or not name or not value:
                raise ShapeError(_field(key), f"{part!r} is not like name{between}quantity")
            yield name.strip(), value.strip()


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"
