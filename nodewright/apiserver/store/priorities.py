"""How important is a Pod? The Priority admission plugin: priorityClassName becomes a number."""

from __future__ import annotations

from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.values import ApiError, Obj, Resource

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every cluster has, with their values."""


def resolve_priority(kernel: Kernel, resource: Resource, pod: Obj) -> None:
    """Set `spec.priority` of a new Pod by its class, or the default class, or 0. Replaces `pod["spec"]`.

    Raises ApiError 403 if there is no class of that name.
    """
    if resource.group_kind != "Pod":
        return
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    if name:
        found = kernel.state.collection(PRIORITY_CLASSES).get("", name)
        if found is None:
            text = f"no PriorityClass with name {name} was found"
            raise ApiError.forbidden(resource, pod["metadata"].get("name", ""), text)
    else:
        found = _default_class(kernel)
    chosen = {"priorityClassName": found["metadata"]["name"]} if found is not None else {}
    pod["spec"] = {**spec, **chosen, "priority": found.get("value", 0) if found is not None else 0}


def _default_class(kernel: Kernel) -> Obj | None:
    defaults = [c for c in kernel.state.collection(PRIORITY_CLASSES).scan("") if c.get("globalDefault")]
    return min(defaults, key=lambda c: int(c.get("value", 0)), default=None)
