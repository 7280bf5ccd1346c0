"""The types of the built-in kinds: one table that openapi, patches, field ownership, pruning and protobuf all read.

The table lies in `builtin/<group>.<version>.types`, one block per type and one line per field:

    type Container
      2 image string
      6 ports []ContainerPort map=containerPort,protocol patch=merge:containerPort

A field has its protobuf number (`1.3` is field 3 of an embedded message with number 1), its name in JSON, its type and
then, in any order: `required`, `set`/`atomic`/`map=<keys>` (the x-kubernetes-list-type), `patch=<strategy>[:<key>]`
(strategic merge patch), `default=<json>`, `enum=<values>` (keys and values comma separated) and `pointer` (zero is not
the same as absent). `[]T` is a list, `{}T` a map with string keys. A type with `kind=<group>/<version>` is the root of
an object and also has apiVersion and kind; `atomic` on a type says that its owner owns it as a whole. Types of other
files are named with their file (`meta.v1.ObjectMeta`).

The rules are those of the Kubernetes API at version 1.36, taken from its OpenAPI documents, .proto files and Go types;
a test compares the table with the models of kubernetes_asyncio.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from nodewright.apiserver.values import Obj

NULLS_ARE_ABSENT = "x-nodewright-nulls-are-absent"
ALWAYS_THERE = "x-nodewright-always-there"

RELEASE = "1.36"
"""The Kubernetes release whose types the table holds; grows with it."""

_SCALARS: Mapping[str, Obj] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": {},
    "intstr": {"x-kubernetes-int-or-string": True},
    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "fieldsv1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "json": {"x-kubernetes-preserve-unknown-fields": True},
    "extra": {"type": "array", "items": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class TypeRef:
    """What a field holds: `name` is a scalar of the table or a qualified type; lists and maps have an `element`."""

    shape: str
    """"scalar", "message", "list" or "map"."""
    name: str = ""
    element: TypeRef | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a built-in type. `number` is its path of protobuf field numbers."""

    name: str
    number: tuple[int, ...]
    type: TypeRef
    required: bool = False
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    patch_strategies: tuple[str, ...] = ()
    patch_merge_key: str = ""
    default: Any = None
    enum: tuple[str, ...] = ()
    pointer: bool = False
    """Whether a zero value is something else than none at all."""


@dataclass(frozen=True, slots=True)
class Type:
    """One built-in type; `group_version` is set if it is the root of an object ("/v1", "apps/v1")."""

    name: str
    fields: Mapping[str, Field]
    group_version: str = ""
    atomic: bool = False

    @property
    def kind(self) -> str:
        """The last part of the qualified name."""
        return self.name.rpartition(".")[2]


def find(group: str, version: str, kind: str) -> Type | None:
    """Give the type of a built-in kind, or None if the table has none."""
    name = _kinds().get((f"{group}/{version}", kind))
    return None if name is None else get(name)


def names() -> Collection[str]:
    """Give the qualified names of all types."""
    return _blocks().keys()


@cache
def get(name: str) -> Type:
    """Give a type by its qualified name, as in "core.v1.PodSpec". Raises KeyError."""
    return _parse_type(name, _blocks()[name])


@cache
def schema(group: str, version: str, kind: str) -> Obj | None:
    """Give the structural schema of a whole built-in object, or None. Shared: do not change it.

    Enums and most defaults are not in it: the real server applies and checks those of built-in kinds in code. Bodies of
    these kinds are decoded by type, where null is the same as nothing: the mark NULLS_ARE_ABSENT says so. Structs that
    are no pointers are there in every object of the type, if only as {}: they have the mark ALWAYS_THERE.
    """
    root = find(group, version, kind)
    return None if root is None else {**type_schema(root.name), NULLS_ARE_ABSENT: True}


@cache
def type_schema(name: str) -> Obj:
    """Give the structural schema of one type, equal types sharing one dict. Recursive types end in "anything goes"."""
    return _type_schema(name, ())


def _type_schema(name: str, above: tuple[str, ...]) -> Obj:
    if name in above:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kind = get(name)
    properties: Obj = {}
    if kind.group_version:
        properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    for field in kind.fields.values():
        properties[field.name] = _field_schema(field, (*above, name))
    result: Obj = {"type": "object", "properties": properties}
    if kind.atomic:
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _field_schema(field: Field, above: tuple[str, ...]) -> Obj:
    result = _ref_schema(field.type, above)
    extra: Obj = {}
    if field.list_type and field.type.shape == "list":
        extra["x-kubernetes-list-type"] = field.list_type
        if field.list_map_keys:
            extra["x-kubernetes-list-map-keys"] = list(field.list_map_keys)
    elif field.list_type:
        extra["x-kubernetes-map-type"] = field.list_type
    if field.patch_strategies:
        extra["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategies)
    if field.patch_merge_key:
        extra["x-kubernetes-patch-merge-key"] = field.patch_merge_key
    if field.default is not None:
        extra["default"] = field.default
    if field.type.shape == "message" and not field.pointer:
        extra[ALWAYS_THERE] = True
    return {**result, **extra} if extra else result


def _ref_schema(ref: TypeRef, above: tuple[str, ...]) -> Obj:
    if ref.shape == "scalar":
        return _SCALARS[ref.name]
    if ref.element is None:
        return _type_schema(ref.name, above) if ref.name in above else type_schema(ref.name)
    element = _ref_schema(ref.element, above)
    if ref.shape == "list":
        return {"type": "array", "items": element}
    return {"type": "object", "additionalProperties": element}


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    """The roots of objects by group/version and kind."""
    found = ((name, _group_version(lines[0].split()[2:])) for name, lines in _blocks().items())
    return {(group_version, name.rpartition(".")[2]): name for name, group_version in found if group_version}


@cache
def _blocks() -> Mapping[str, list[str]]:
    """The lines of each type by its name; few of them are ever parsed in one process."""
    found: dict[str, list[str]] = {}
    folder = resources.files(__package__ or "").joinpath("builtin")
    for file in folder.iterdir():
        if file.name.endswith(".types"):
            module = file.name.removesuffix(".types")
            for block in file.read_text(encoding="utf-8").split("\n\n"):
                if block.lstrip().startswith("type "):
                    lines = block.strip("\n").split("\n")
                    found[f"{module}.{lines[0].split()[1]}"] = lines
    return found


def _group_version(words: Sequence[str]) -> str:
    return next((w.removeprefix("kind=") for w in words if w.startswith("kind=")), "")


def _parse_type(name: str, lines: list[str]) -> Type:
    words = lines[0].split()[2:]
    module = name.rpartition(".")[0]
    fields = [_parse_field(module, line.split(None, 3)) for line in lines[1:]]
    return Type(name, {f.name: f for f in fields}, _group_version(words), "atomic" in words)


def _parse_field(module: str, parts: list[str]) -> Field:
    number, name, type_text = parts[:3]
    marks: dict[str, Any] = {}
    for word in parts[3].split() if len(parts) > 3 else ():
        marks |= _parse_mark(f"{module}: field {name}", word)
    numbers = tuple(int(n) for n in number.split("."))
    return Field(name, numbers, _parse_ref(module, type_text), **marks)


def _parse_mark(at: str, word: str) -> dict[str, Any]:
    """Give the attributes of a Field that one word stands for."""
    key, _, value = word.partition("=")
    match key:
        case "required" | "pointer":
            return {key: True}
        case "set" | "atomic":
            return {"list_type": key}
        case "map":
            return {"list_type": "map", "list_map_keys": tuple(value.split(","))}
        case "patch":
            strategy, _, merge_key = value.partition(":")
            return {"patch_strategies": tuple(strategy.split("+")), "patch_merge_key": merge_key}
        case "default":
            return {"default": json.loads(value)}
        case "enum":
            return {"enum": tuple(value.split(","))}
        case _:
            raise ValueError(f"{at}: unknown mark {word!r}")


def _parse_ref(module: str, text: str) -> TypeRef:
    for prefix, shape in (("[]", "list"), ("{}", "map")):
        if text.startswith(prefix):
            return TypeRef(shape, element=_parse_ref(module, text.removeprefix(prefix)))
    if text in _SCALARS:
        return TypeRef("scalar", text)
    return TypeRef("message", text if "." in text else f"{module}.{text}")
