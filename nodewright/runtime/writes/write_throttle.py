"""Slow a key down that repeats its writes: a plan that never agrees with its own effect must not hammer the server.

Such a plan is a bug of its reconciler (or two writers fight for one field); what it costs is bounded here. A key that
gets on with its work writes something else in each reconcile: it is left alone up to a ceiling that no useful work
reaches. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from controllers.kernel.actions import Action, Create, CreateFromTemplate, Delete, Evict, Patch, Scale

K = TypeVar("K")

WINDOW = 10.0
"""Seconds."""
FREE = 30
"""Reconciles with writes of one key per window that cost nothing, whatever they write."""
CEILING = 300
"""Reconciles with writes of one key per window after which even new writes wait: 30 a second for ten seconds."""
PAUSE = 1.0
_MOST_KEYS = 50_000
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@dataclass(slots=True)
class _Window:
    """Writes of one key. ``seen``: what reconciles wrote after the free ones."""

    began: float
    reconciles: int = 0
    seen: set[int] = field(default_factory=set)


class WriteThrottle(Generic[K]):
    """``wrote`` tells how long the key should rest now, in seconds; 0 for all sound ones."""

    def __init__(self) -> None:
        self._windows: dict[K, _Window] = {}

    def wrote(self, key: K, now: float, what: Callable[[], int]) -> float:
        """``what``: a number for what the reconcile wrote (``content_of``), asked for after the free reconciles."""
        window = self._windows.get(key)
        if window is None or now - window.began >= WINDOW:
            if len(self._windows) >= _MOST_KEYS:
                self._windows.clear()
            window = self._windows[key] = _Window(now)
        window.reconciles += 1
        if window.reconciles <= FREE:
            return 0.0
        if window.reconciles > CEILING:
            return PAUSE
        content = what()
        if content in window.seen:
            return PAUSE
        window.seen.add(content)
        return 0.0

    def forget(self, key: K) -> None:
        self._windows.pop(key, None)


def content_of(actions: Iterable[Action]) -> int:
    """The same for reconciles that write the same to the same objects.

    Moments and resourceVersions do not count: a plan that writes only the time anew gets nowhere. Nor do Events and
    actions on hosts, which have limits of their own.
    """
    return hash(tuple(sorted(filter(None, map(_written, actions)))))


def _written(action: Action) -> str:
    match action:
        case Create(kind=kind, body=body) | CreateFromTemplate(kind=kind, body=body):
            return f"create {kind.plural} {_plain(body)}"
        case Patch(target=target, patch=patch, subresource=subresource):
            return f"patch {target} {target.uid} {subresource} {_plain(patch)}"
        case Scale(target=target, replicas=replicas):
            return f"scale {target} {target.uid} {replicas}"
        case Delete(target=target) | Evict(target=target):
            return f"{type(action).__name__} {target} {target.uid}"
        case _:
            return ""


def _plain(value: Any) -> str:
    """Text of it in which the order of keys and the moments are gone."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_plain(value[key])}" for key in sorted(value, key=str)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_plain, value)) + "]"
    return _MOMENT.sub("moment", value) if isinstance(value, str) else repr(value)
