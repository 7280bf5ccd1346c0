"""Calls to two API servers, as values: what a conversation about bootstrap data asks for, and how it may end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from controllers.kernel.refs import Key, Ref

Place = Literal["machines", "nodes"]
"""Which API server: that of the Machine, or that of its Node."""


@dataclass(frozen=True, slots=True)
class Get:
    """Sent the object, or None."""

    place: Place
    key: Key


@dataclass(frozen=True, slots=True)
class Post:
    """Sent the object, or None if one of its name is there."""

    place: Place
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A merge patch. Sent the object, or None if it is gone or has changed since."""

    place: Place
    target: Ref
    patch: Mapping[str, Any]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete it if it still has the uid. Sent None."""

    place: Place
    target: Ref


Call = Get | Post | Change | Drop


@dataclass(frozen=True, slots=True)
class Refused:
    """It can't be; ``reason`` is that of a condition."""

    reason: str
    message: str
