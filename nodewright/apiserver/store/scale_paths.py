"""Where are a kind's replicas? Reading and writing by the paths of its scale subresource."""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.store.metadata import invalid
from nodewright.apiserver.values import Cause, Obj, Resource


def read_path(obj: Obj, path: str) -> Any:
    """Give what a dotted path such as `.spec.replicas` points at, or None."""
    value: Any = obj
    for step in _steps(path):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def write_path(obj: Obj, path: str, value: Any) -> None:
    """Set what a path points at, in place, making the objects on the way."""
    *parents, last = _steps(path)
    for step in parents:
        obj = obj.setdefault(step, {})
    obj[last] = value


def scale_faults(resource: Resource, obj: Obj) -> list[Cause]:
    """Say what the scale subresource of a custom kind could not show: negative replicas, or no number."""
    if resource.scale is None or resource.builtin:
        return []
    found = []
    for path in (resource.scale.spec_replicas, resource.scale.status_replicas):
        replicas = read_path(obj, path)
        if replicas is not None and type(replicas) is not int:
            names = {str: "string", bool: "bool", float: "float64", dict: "map[string]interface {}"}
            kind = names.get(type(replicas), "[]interface {}")
            message = f"{path} accessor error: {replicas} is of the type {kind}, expected int64"
            found.append(invalid(path, "0", message))
        elif replicas is not None and replicas < 0:
            found.append(invalid(path, str(replicas), "should be a non-negative integer"))
    return found


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]
