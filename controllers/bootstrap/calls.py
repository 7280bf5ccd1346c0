"""What a conversation about bootstrap data asks of the two API servers, one call after the other."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from controllers.kernel.refs import SECRET, Key, Kind, Obj, Ref, mapping

Place = Literal["machines", "nodes"]
"""Which API server: that of the Machine, or that of its Node."""


@dataclass(frozen=True, slots=True)
class Get:
    """Sent the object, or None."""

    place: Place
    key: Key
    kind: Kind = SECRET


@dataclass(frozen=True, slots=True)
class Post:
    """Sent the object, or None if one of its name is there."""

    place: Place
    body: Mapping[str, Any]
    kind: Kind = SECRET


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


def data_of(secret: Obj) -> dict[str, str]:
    """The data of a Secret as text; what can't be read is left out."""
    found: dict[str, str] = {}
    for name, value in mapping(secret.get("data")).items():
        try:
            found[name] = base64.b64decode(str(value), validate=True).decode()
        except (binascii.Error, ValueError):
            continue
    return found
