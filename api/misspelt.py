"""Fields that no schema knows and that look very much like one that it knows.

Where a kind keeps unknown fields, for manifests of older families, a misspelt field is kept too and has no effect: the
host comes up with the default. Only a near miss is named; another unknown field may belong to an older family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any

ALIKE = 0.8
"""How alike two names have to be, as ``difflib`` measures it: ``verions`` and ``versions`` are 0.93."""
MOST = 5
"""Near misses named of one object."""
MOST_LOOKED_AT = 50
"""Unknown fields of a level that are compared: a comparison takes some 50 µs, and an object may hold 100,000 fields."""
_LONGEST = 80
"""Characters of a field's name that are compared and repeated."""


@dataclass(frozen=True, slots=True)
class Level:
    """An object of a schema that keeps unknown fields: its path below the root, and the fields that are known there.

    ``below``: fields of its objects to their path from here, as ``labels`` to ``metadata.labels``: a field that stands
    one level too high has no effect either. Names that several of its objects have are left out.
    """

    path: tuple[str, ...]
    known: frozenset[str]
    below: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NearMiss:
    """``path``: the field as it is written (``spec.template.spec.verions``); ``known``: the name that is meant."""

    path: str
    known: str

    def __str__(self) -> str:
        return f"{self.path} is not a known field; did you mean {self.known}?"


def levels(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Level]:
    """Levels of an ``openAPIV3Schema`` below its root at which unknown fields survive, those of ``status`` left out."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    if schema.get("x-kubernetes-preserve-unknown-fields") and path:
        yield Level(path, frozenset(properties), _below(properties))
    for name, child in properties.items():
        if isinstance(child, Mapping) and (path or name != "status"):
            yield from levels(child, (*path, name))


def _below(properties: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name, child in properties.items():
        inner = child.get("properties") if isinstance(child, Mapping) else None
        for field_name in inner if isinstance(inner, Mapping) else ():
            found.setdefault(field_name, []).append(f"{name}.{field_name}")
    return {name: paths[0] for name, paths in found.items() if len(paths) == 1}


def near_misses(obj: Mapping[str, Any], of: tuple[Level, ...]) -> tuple[NearMiss, ...]:
    """At most MOST near misses of an object, in the order of the levels. Total over any JSON."""
    found: list[NearMiss] = []
    for level in of:
        held = _at(obj, level.path)
        unknown = islice((name for name in held if name not in level.known), MOST_LOOKED_AT)
        for name in sorted(map(str, unknown)):
            meant = _meant(name[:_LONGEST], level)
            if meant and len(found) < MOST:
                found.append(NearMiss(".".join((*level.path, name[:_LONGEST])), meant))
    return tuple(found)


def _meant(name: str, level: Level) -> str:
    """The field that ``name`` looks like, here or one level below; "" if none does."""
    near = get_close_matches(name, level.known, n=1, cutoff=ALIKE)
    if near:
        return near[0]
    near = get_close_matches(name, level.below, n=1, cutoff=ALIKE)
    return level.below[near[0]] if near else ""


def _at(obj: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    here: Any = obj
    for part in path:
        here = here.get(part) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}
