"""Write ``api/views.py``: frozen typed views of what people ask for, with the defaults of the models.

Part of ``python -m hack.crds``. A type that no reader of ``api.reading.Reading`` fits is left as it is (``Any``).
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import AwareDatetime
from pydantic.fields import FieldInfo

from api.controlplane import ControlPlaneSpec
from api.durations import DURATION_PATTERN, parse_duration
from api.machinedeployment import MachineDeploymentSpec
from api.machinehealthcheck import MachineHealthCheckSpec, RemediationTemplate
from api.machineset import MachineSetSpec, MachineTemplateSpec
from api.meta import FailureDomains, LabelSelector
from api.model import Model

VIEWED: tuple[type[Model], ...] = (MachineSetSpec, MachineDeploymentSpec, MachineHealthCheckSpec, ControlPlaneSpec)
"""Models that have a view; the models in them have one too."""
RAW: tuple[type[Model], ...] = (MachineTemplateSpec, LabelSelector, RemediationTemplate)
"""Models that have a reader of their own: it reports their faults."""
HEADER = '''"""Generated from the models of api/ by ``make generate``; edits are overwritten.

Each view has the fields of its model with their defaults. ``read`` never raises: see ``api/reading.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api.reading import Reading
'''
LONGEST = 120


@dataclass(frozen=True)
class Leaf:
    """One field of a view: its type, its default as source, and the expression that reads it."""

    name: str
    annotation: str
    default: str
    read: str


def module(viewed: tuple[type[Model], ...] = VIEWED) -> str:
    """The text of ``api/views.py``: inner views stand before those that have them."""
    seen: dict[type[Model], str] = {}
    for model in viewed:
        _write(model, seen)
    return "\n\n".join([HEADER, *seen.values()])


def _write(model: type[Model], seen: dict[type[Model], str]) -> None:
    for field in model.model_fields.values():
        inner = _nested(field)
        if inner is not None and inner not in seen:
            _write(inner, seen)
    leaves = [_leaf(name, field) for name, field in model.model_fields.items()]
    lines = ["@dataclass(frozen=True, slots=True)", f"class {model.__name__}View:"]
    lines += [f'    """``{model.__name__}`` of ``{model.__module__.replace(".", "/")}.py``."""', ""]
    lines += [f"    {leaf.name}: {leaf.annotation} = {leaf.default}" for leaf in leaves]
    lines += ["", "    @classmethod", f"    def read(cls, found: Reading) -> {model.__name__}View:"]
    lines.append("        return cls(")
    lines += [line for leaf in leaves for line in _argument(leaf)]
    seen[model] = "\n".join([*lines, "        )", ""])


def _argument(leaf: Leaf) -> Iterator[str]:
    line = f"            {leaf.name}={leaf.read},"
    if len(line) <= LONGEST:
        yield line
        return
    call, _, arguments = leaf.read.partition("(")
    yield f"            {leaf.name}={call}("
    yield f"                {arguments.removesuffix(')')}"
    yield "            ),"


def _leaf(name: str, field: FieldInfo) -> Leaf:
    alias, inner = f'"{field.alias}"', _nested(field)
    if inner is not None:
        return _inner(name, alias, inner, field)
    type_, metadata, optional = _plain(field)
    kind, reader, more = _kind(type_, metadata)
    if kind == "Any":
        return Leaf(name, "Any", "None", f"found.raw({alias})")
    default = _default(field, kind)
    annotation = f"{kind} | None" if optional or default == "None" else kind
    return Leaf(name, annotation, default, f"found.{reader}({', '.join([alias, default, *more])})")


def _inner(name: str, alias: str, inner: type[Model], field: FieldInfo) -> Leaf:
    view = f"{inner.__name__}View"
    if field.default is None:
        return Leaf(name, f"{view} | None", "None", f"found.optional({alias}, {view}.read)")
    return Leaf(name, view, f"{view}()", f"{view}.read(found.child({alias}))")


def _kind(type_: Any, metadata: list[Any]) -> tuple[str, str, list[str]]:
    """The type in the view, the reader's name and its further arguments."""
    patterns = {getattr(mark, "pattern", None) for mark in metadata}
    if get_origin(type_) is Literal:
        known = ", ".join(f'"{text}"' for text in get_args(type_))
        return "str", "choice", [f"({known},)" if len(get_args(type_)) == 1 else f"({known})"]
    if type_ is bool:
        return "bool", "flag", []
    if type_ is int:
        low = next((mark.ge for mark in metadata if isinstance(mark, annotated_types.Ge)), 0)
        high = next((mark.le for mark in metadata if isinstance(mark, annotated_types.Le)), 2**63 - 1)
        return "int", "count", [str(low), str(high)]
    if type_ is str:
        return ("timedelta", "duration", []) if DURATION_PATTERN in patterns else ("str", "text", [])
    if type_ == int | str:
        return "int | str", "share", []
    if type_ is AwareDatetime:
        return "datetime", "time", []
    if type_ == get_args(FailureDomains)[0]:
        return "tuple[str, ...]", "domains", []
    return "Any", "raw", []


def _default(field: FieldInfo, kind: str) -> str:
    if field.is_required() or field.default is None:
        return "None"
    if kind == "timedelta":
        found = parse_duration(field.default)
        assert isinstance(found, timedelta)
        return f"timedelta(seconds={found.total_seconds():.0f})"
    return f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)


def _nested(field: FieldInfo) -> type[Model] | None:
    type_, _, _ = _plain(field)
    is_model = isinstance(type_, type) and issubclass(type_, Model)
    return type_ if is_model and not issubclass(type_, RAW) else None


def _plain(field: FieldInfo) -> tuple[Any, list[Any], bool]:
    """The type without ``Annotated`` and ``None``, the marks on the way to it, and whether None is allowed."""
    type_, marks, optional = field.annotation, list(field.metadata), False
    while True:
        arguments = get_args(type_)
        if hasattr(type_, "__metadata__"):
            marks += _flat(type_.__metadata__)
            type_ = arguments[0]
        elif get_origin(type_) in {Union, types.UnionType} and type(None) in arguments and len(arguments) == 2:
            optional, type_ = True, next(one for one in arguments if one is not type(None))
        else:
            return type_, marks, optional


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    """``Field(ge=0)`` holds its marks inside."""
    for mark in metadata:
        yield from mark.metadata if isinstance(mark, FieldInfo) else (mark,)
