"""Which shape the objects of each kind have, and the door through which each object comes into the cache.

What an API server has let through may still be of wrong types: a field that the schema of its version did not know, an
object stored under an older schema, or the answer of a workload cluster that somebody else runs. Readers rely on types,
so a part of a wrong type is left out here, as an API server itself does with malformed metadata of custom resources.

Parts of what a person asked for (all but ``metadata`` and ``status``) are not left out in silence: the faults are kept
beside the object, and its own controller says so in a condition instead of acting on what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import structlog

from api.misspelt import Level, levels
from controllers.kernel.refs import POD, Kind, Obj
from nodewright.apiserver.openapi import builtins
from nodewright.crds import load_crds
from nodewright.runtime.cache import shape
from nodewright.runtime.cache.shape import GONE, Fields, Shape
from nodewright.runtime.cache.slimming import slim
from nodewright.runtime.telemetry import metrics

_log = structlog.get_logger("nodewright.cache")

_SCALARS: Mapping[str, Shape] = {
    "string": shape.STRING,
    "bytes": shape.STRING,
    "time": shape.STRING,
    "microtime": shape.STRING,
    "bool": shape.BOOLEAN,
    "int32": shape.INTEGER,
    "int64": shape.INTEGER,
    "double": shape.NUMBER,
    "quantity": shape.QUANTITY,
    "intstr": shape.INT_OR_STRING,
    "extra": shape.List(shape.STRING),
    "raw": Fields(dict),
    "fieldsv1": Fields(dict),
}
_SYSTEM = ("metadata", "status")
"""Parts that machines write: what is wrong with them is mended by the next write."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """``faults``: ``path: must be ...`` for each part of the spec that was left out."""

    obj: dict[str, Any]
    faults: tuple[str, ...] = ()


def is_named(kind: Kind, obj: Any) -> bool:
    """Whether ``obj`` is an object at all: what has no name can be in no cache. Counted if it is not."""
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if isinstance(meta, dict) and all(isinstance(meta.get(field, ""), str) for field in _IDENTITY) and meta.get("name"):
        return True
    metrics.of(metrics.MALFORMED, kind.name).inc()
    _log.warning("object without a readable name passed over", kind=kind.name)
    return False


_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def admit(kind: Kind, obj: dict[str, Any]) -> Admitted:
    """The object as it is kept: slimmed, and without parts of a wrong type. It may be the same one, changed."""
    wanted = shape_of(kind)
    if obj.get("kind", kind.name) != kind.name:
        obj["kind"] = kind.name  # it came by the path of its kind; what it says of itself decides nothing
    if not isinstance(obj.get("apiVersion", ""), str):
        obj["apiVersion"] = kind.api_version
    try:
        slimmed = slim(kind, obj)
    except (AttributeError, TypeError, ValueError):
        slimmed = obj
    if wanted.fits(slimmed):
        return Admitted(slimmed)
    faults: list[str] = []
    repaired = wanted.repair(slimmed, "", faults)
    if repaired is GONE or not faults:
        return Admitted(slimmed if repaired is GONE else repaired)
    metrics.of(metrics.MALFORMED, kind.name).inc()
    meta = repaired["metadata"]
    _log.warning(
        "fields of a wrong type left out",
        kind=kind.name, namespace=meta.get("namespace", ""), name=meta["name"], fields=faults,
    )  # fmt: skip
    mine = tuple(fault for fault in faults if not fault.startswith(_SYSTEM)) if kind.group in _own() else ()
    return Admitted(slim(kind, repaired) if kind == POD else repaired, mine)


@cache
def shape_of(kind: Kind) -> Shape:
    """ANY below ``metadata`` for a kind that neither we nor Kubernetes define."""
    schema = _own().get(kind.group, {}).get(kind.name)
    if schema is not None:
        return Fields(lambda: {**_top(schema), "metadata": _builtin("meta.v1.ObjectMeta")})
    found = builtins.find(kind.group, kind.version, kind.name)
    if found is not None:
        return _builtin(found.name)
    return Fields(lambda: {"metadata": _builtin("meta.v1.ObjectMeta")})


def _top(schema: Obj) -> dict[str, Shape]:
    return {name: shape.shape_of_schema(each) for name, each in schema.get("properties", {}).items()}


@cache
def levels_of(kind: Kind) -> tuple[Level, ...]:
    """Where objects of the kind keep fields that its schema does not know; () for kinds that are not ours."""
    return tuple(levels(_own().get(kind.group, {}).get(kind.name, {})))


@cache
def _own() -> Mapping[str, Mapping[str, Obj]]:
    """The schemas of our CustomResourceDefinitions by group and kind."""
    found: dict[str, dict[str, Obj]] = {}
    for crd in load_crds():
        spec = crd["spec"]
        version = next(each for each in spec["versions"] if each["storage"])
        found.setdefault(spec["group"], {})[spec["names"]["kind"]] = version["schema"]["openAPIV3Schema"]
    return found


@cache
def _builtin(name: str) -> Shape:
    def fields() -> Mapping[str, Shape]:
        kind = builtins.get(name)
        inner = {field.name: _of_field(field.type) for field in kind.fields.values()}
        return {"apiVersion": shape.STRING, "kind": shape.STRING, **inner} if kind.group_version else inner

    return Fields(fields)


def _of_field(ref: builtins.TypeRef) -> Shape:
    if ref.element is not None:
        element = _of_field(ref.element)
        return shape.List(element) if ref.shape == "list" else shape.Map(element)
    return _SCALARS.get(ref.name, shape.ANY) if ref.shape == "scalar" else _builtin(ref.name)
