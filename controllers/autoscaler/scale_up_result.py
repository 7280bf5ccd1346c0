"""What growing comes to: new Nodes, the pods that they help, and the pods that are left with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.scheduling.shapes import PodInfo


@dataclass(frozen=True, slots=True)
class Helped:
    """``pods`` will find room on new Nodes of ``group``."""

    group: str
    pods: tuple[PodInfo, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """``pods`` stay pending. ``why``: group → why it does not help."""

    pods: tuple[PodInfo, ...]
    why: Mapping[str, str]
    gang: str = ""
    """Why the gang that they are of gets no Node at all."""


@dataclass(frozen=True, slots=True)
class Apart:
    """``added``: group → new Nodes. ``short`` have no room on them; ``why``: group → why it does not help."""

    added: Mapping[str, int]
    short: int
    why: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """``added``: group → new Nodes, never 0. ``skipped``: group → why it could not grow (any further)."""

    added: Mapping[str, int] = field(default_factory=dict)
    helped: tuple[Helped, ...] = ()
    left: tuple[Left, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    for_gangs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Gang \u2192 group \u2192 new Nodes, of those that got all they need."""
