"""What the store asks of the packages beside it: schemas, patches and field ownership.

Protocols, so that the store depends on signatures and not on how they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nodewright.apiserver.values import Cause, Obj, Resource


class Shape(Protocol):
    """A compiled structural schema. Each method leaves its arguments as they are."""

    def prune(self, obj: Obj, /) -> tuple[Obj, Sequence[str]]:
        """Give the object without unknown fields, and their paths."""
        ...

    def default(self, obj: Obj, /) -> Obj:
        """Give the object with the schema's defaults filled in."""
        ...

    def validate(self, obj: Obj, old: Obj | None, /) -> list[Cause]:
        """Say what is wrong; `old` is the state before an update, for transition rules."""
        ...


class CompileShape(Protocol):
    """Compiles a structural schema; raises ApiError or ValueError for one that is none."""

    def __call__(self, schema: Obj, /) -> Shape: ...


@dataclass(frozen=True, slots=True)
class Author:
    """The manager of a write, its operation and its time, as managedFields record it. `subresource` is "" for the
    object itself.
    """

    manager: str
    operation: str
    subresource: str
    now: str


class Ownership(Protocol):
    """Keeps metadata.managedFields."""

    def track(self, resource: Resource, old: Obj | None, new: Obj, writer: Author, /) -> Obj:
        """Give `new` with the changed fields owned by the writer."""
        ...

    def apply(self, resource: Resource, live: Obj | None, applied: Obj, writer: Author, force: bool, /) -> Obj:
        """Merge an applied configuration into the live object; raises ApiError 409 for fields of others."""
        ...


class Patching(Protocol):
    """Applies patches; raises ApiError 400 or 422 for bad ones. Never changes `current`."""

    def apply_json(self, current: Obj, patch: Any, /) -> Obj:
        """RFC 6902."""
        ...

    def apply_merge(self, current: Obj, patch: Any, /) -> Obj:
        """RFC 7386."""
        ...

    def apply_strategic(self, resource: Resource, current: Obj, patch: Any, /) -> Obj:
        """Kubernetes' strategic merge, for built-in kinds."""
        ...


@dataclass(frozen=True, slots=True)
class Seams:
    """All of them together, as a Store uses them."""

    compile_shape: CompileShape
    shape_of: Callable[[Resource], Shape | None]
    """Gives the compiled schema of a resource, built in or custom, or None if there is none."""
    ownership: Ownership
    patching: Patching
