"""What a change of a field does. Each field of ``MachineSpec`` says it in its declaration (``api/machine.py``).

``make generate`` writes what was declared to ``api/declared.py``, which needs no pydantic. Rollouts, propagation, the
hash of the host, the rules and the table in ``docs/api/machine.md`` are derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any


class Change(StrEnum):
    """What follows from a change of a field in a template. The values are text for people."""

    HOST = "new revision; the host becomes another one, in place or by replacement as its provider can"
    """Part of the revision and of the hash by which a host is compared with its Machine."""
    REVISION = "new revision; the host of an existing Machine stays as it is"
    """Part of the revision only. Fields that nobody knows are treated so."""
    NODE = "in place; goes on to the Node, key by key"
    """Merged into existing Machines and their Nodes: what others put there is kept."""
    IN_PLACE = "in place"
    """Copied to existing Machines as it is."""
    OWN = "belongs to one Machine; never taken from a template"
    """A MachineSet does not hand it on."""


class Absent(StrEnum):
    """What the hash of the host has for a field that is not given.

    A field that is added later is left out, or every host in the world would differ from its Machine after an update
    of the controllers. The others are those of the first release, whose hashes hosts carry.
    """

    LEFT_OUT = "left out"
    NULL = "null"
    EMPTY_TEXT = "empty text"


_INSTEAD: Mapping[Absent, Any] = {Absent.NULL: None, Absent.EMPTY_TEXT: ""}
EMPTY: tuple[Any, ...] = (None, {}, [], "")
"""Values that mean the same as no value."""
NOT_GIVEN: Any = object()
"""What ``Fields.meant`` answers for a value that means the same as none."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A mark in ``Annotated[...]``.

    ``hashed_as``: the hash of the host has, under this name, what the field was resolved to instead of its raw value.
    ``timeout``: a duration of the Machine's deletion; 0 and none mean never, for ever.
    ``empty_counts``: an object whose presence asks for something: ``{}`` is not the same as no value. Empty fields of
    it are left out, since an API server may fill them in.
    """

    change: Change
    hashed_as: str = ""
    absent: Absent = Absent.LEFT_OUT
    timeout: bool = False
    empty_counts: bool = False

    def __post_init__(self) -> None:
        if self.change is not Change.HOST and (self.hashed_as or self.absent is not Absent.LEFT_OUT):
            raise ValueError("only a field with Change.HOST is part of the hash of the host")
        if self.change is not Change.IN_PLACE and self.timeout:
            raise ValueError("a timeout of the deletion flows in place: declare it with Change.IN_PLACE")


@dataclass(frozen=True)
class Fields:
    """The behaviours of one model's fields by wire name, in the order of their declaration."""

    behaviours: Mapping[str, Behaviour]

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """Fields that are copied in place as they are."""
        return self._that(Change.IN_PLACE)

    @cached_property
    def in_place(self) -> tuple[str, ...]:
        """Fields that need no rollout; those that are merged key by key first."""
        return (*self._that(Change.NODE), *self.scalars)

    @cached_property
    def outside_revision(self) -> frozenset[str]:
        """Fields whose change makes no revision. A field that nobody knows makes one."""
        return frozenset((*self.in_place, *self.own))

    @cached_property
    def own(self) -> tuple[str, ...]:
        """Fields that no template hands on."""
        return self._that(Change.OWN)

    @cached_property
    def timeouts(self) -> tuple[str, ...]:
        """Durations of a deletion."""
        return tuple(name for name, behaviour in self.behaviours.items() if behaviour.timeout)

    def meant(self, name: str, value: Any) -> Any:
        """What a value asks for, NOT_GIVEN for nothing.

        With ``empty_counts`` ``{"mirror": ""}`` is ``{}``; without, ``{}`` is NOT_GIVEN.
        """
        behaviour = self.behaviours.get(name)
        if behaviour is not None and behaviour.empty_counts and isinstance(value, Mapping):
            return {key: each for key, each in value.items() if each not in EMPTY}
        return value if value not in EMPTY else NOT_GIVEN

    def host_part(self, spec: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
        """All that makes the host another one. ``resolved``: values by the ``hashed_as`` of their fields.

        ``{"failureDomain": "a"}`` with ``{"config": {}}`` gives
        ``{"config": {}, "configSource": None, "failureDomain": "a"}``.
        """
        part = dict(resolved)
        for name, behaviour in self.behaviours.items():
            if behaviour.change is not Change.HOST or behaviour.hashed_as:
                continue
            value = spec.get(name)
            if behaviour.absent is not Absent.LEFT_OUT:
                part[name] = _INSTEAD[behaviour.absent] if value is None else value
            elif self.meant(name, value) is not NOT_GIVEN:
                part[name] = self.meant(name, value)
        return part

    def _that(self, change: Change) -> tuple[str, ...]:
        return tuple(name for name, behaviour in self.behaviours.items() if behaviour.change is change)
