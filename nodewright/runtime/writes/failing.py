"""How an object says that its controller can't reconcile it, or that a field of it is misspelt: a condition, or an
Event where its kind has none.

A fault of one object stays with that object: the condition names what is wrong, the next reconcile that succeeds takes
it away, and no other object's reconcile sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import PurePath
from traceback import extract_tb
from typing import Any

import structlog

from api.conditions import FIELDS_KNOWN, RECONCILED, Reason
from api.misspelt import near_misses
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import Condition, find, merge
from controllers.kernel.ownership import controller_uid
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Reconciler, clusters_served_by
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    Ref,
    generation_of,
    objects,
    ref_of,
    resource_version_of,
    status_of,
)
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.cache.shapes import levels_of
from nodewright.runtime.writes.executor import Executor

_log = structlog.get_logger("nodewright.shell")

KINDS_WITH_CONDITIONS = frozenset(
    {CLUSTER, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_CLASS, MACHINE_HEALTH_CHECK}
)
_NOTES = (RECONCILED, FIELDS_KNOWN)
"""Condition types that this module writes, for all kinds."""
_OURS = frozenset({"api", "controllers", "providers", "nodewright"})


class MalformedError(Exception):
    """Parts of the object's spec are of a wrong type. ``faults``: ``path: must be ...``."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


def condition_of(error: Exception, controller: str) -> Condition:
    """The condition for a reconcile that raised. An exception's own text stays in the log: it may quote a Secret."""
    if isinstance(error, MalformedError):
        message = f"{error}. Nothing is done until the spec is corrected"
        return Condition(RECONCILED, "False", Reason.MALFORMED_SPEC, message)
    message = (
        f"The controller {controller} failed with {type(error).__name__} ({_place(error)}). It tries again with "
        "back-off; its log has the details. Other objects are not affected"
    )
    return Condition(RECONCILED, "False", Reason.RECONCILE_FAILED, message)


def saying(kind: Kind, obj: Obj, condition: Condition, now: datetime) -> tuple[Action, ...]:
    """What tells ``condition`` to whoever looks at ``obj``; nothing if it says so already."""
    target = ref_of(kind, obj)
    event = Event(target, "Warning", condition.reason, condition.message)
    if kind not in KINDS_WITH_CONDITIONS:
        return (event,)
    conditions = status_of(obj).get("conditions")
    before, generation = find(conditions, RECONCILED), generation_of(obj)
    if before is not None and (before.get("reason"), before.get("message")) == (condition.reason, condition.message):
        return ()
    patch = {"status": {"conditions": merge(conditions, (condition,), generation, now)}}
    why = f"reconciling {target} failed"
    return (Patch(target, patch, why, "status", resource_version_of(obj)), event)


def taking_back(kind: Kind, obj: Obj) -> tuple[Action, ...]:
    """The removal of the condition, once a reconcile has succeeded."""
    conditions = status_of(obj).get("conditions")
    if kind not in KINDS_WITH_CONDITIONS or find(conditions, RECONCILED) is None:
        return ()
    kept = [each for each in conditions or () if each.get("type") != RECONCILED]
    target = ref_of(kind, obj)
    return (Patch(target, {"status": {"conditions": kept}}, f"{target} is reconciled again", "status",
                  resource_version_of(obj)),)  # fmt: skip


def pointing_out(kind: Kind, obj: Obj, now: datetime) -> tuple[Action, ...]:
    """What says that fields of ``obj`` are misspelt, or that they are no longer; nothing if it says so already.

    An object with a controlling owner has its fields from the owner's template: it is said there, once.
    """
    if kind not in KINDS_WITH_CONDITIONS:
        return ()
    conditions, target = status_of(obj).get("conditions"), ref_of(kind, obj)
    before = find(conditions, FIELDS_KNOWN)
    found = () if controller_uid(obj) else near_misses(obj, levels_of(kind))
    if not found:
        kept = [each for each in objects(conditions) if each.get("type") != FIELDS_KNOWN]
        why = f"every field of {target} is known again"
        return () if before is None else (_note(target, kept, why, obj),)
    text = "; ".join(map(str, found)) + " It has no effect as it is written"
    if before is not None and before.get("message") == text:
        return ()
    condition = Condition(FIELDS_KNOWN, "False", Reason.UNKNOWN_FIELD, text)
    merged = merge(conditions, (condition,), generation_of(obj), now)
    return (
        _note(target, merged, f"{target} has a misspelt field", obj),
        Event(target, "Warning", condition.reason, text),
    )


def _note(target: Ref, conditions: list[Any], why: str, obj: Obj) -> Patch:
    return Patch(target, {"status": {"conditions": conditions}}, why, "status", resource_version_of(obj))


def is_own_note(old: Obj, new: Obj) -> bool:
    """Whether the only change is what ``saying``, ``taking_back`` or ``pointing_out`` wrote."""
    before, after = ([find(status_of(obj).get("conditions"), note) for note in _NOTES] for obj in (old, new))
    if before == after:
        return False
    return _without_note(old) == _without_note(new)


def _without_note(obj: Obj) -> dict[str, Any]:
    status = status_of(obj)
    kept = [each for each in objects(status.get("conditions")) if each.get("type") not in _NOTES]
    meta = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": meta, "status": {**status, "conditions": kept}}


def _place(error: Exception) -> str:
    """File and line of ours that raised, for a report of the bug."""
    frames = [
        each for each in extract_tb(error.__traceback__) if any(part in _OURS for part in PurePath(each.filename).parts)
    ]
    if not frames:
        return "outside of the program's own code"
    last = frames[-1]
    parts = PurePath(last.filename).parts
    start = next(len(parts) - 1 - index for index, part in enumerate(reversed(parts)) if part in _OURS)
    return f"{'/'.join(parts[start:])}:{last.lineno}"


class Notes:
    """Writes and removes the condition, for one controller. A failure to write it ends nothing: the log has it too."""

    def __init__(
        self, reconciler: Reconciler[Any], cache: Cache, executor: Executor, now: Callable[[], datetime]
    ) -> None:
        self._reconciler = reconciler
        self._cache = cache
        self._executor = executor
        self._now = now
        self._by_event = clusters_served_by(reconciler) is not None
        """Conditions of a Cluster are its own controller's: two that write the same one would take it back in turns."""

    async def say(self, key: Key, error: Exception) -> None:
        """On the object itself, if it is there."""
        primary = self._cache.stores[self._reconciler.kind].get(key)
        if primary is None:
            return
        try:
            kind, condition = self._reconciler.kind, condition_of(error, self._reconciler.name)
            actions = saying(kind, primary, condition, self._now())
            if self._by_event:
                actions = (Event(ref_of(kind, primary), "Warning", condition.reason, condition.message),)
            if actions:
                await self._executor.execute(Plan(tuple((action,) for action in actions)))
        except Exception:
            _log.exception("condition not written", condition=RECONCILED)

    async def point_out(self, key: Key) -> bool:
        """Misspelt fields. False: it could not be written, and has to be tried again."""
        primary = None if self._by_event else self._cache.stores[self._reconciler.kind].get(key)
        actions = pointing_out(self._reconciler.kind, primary, self._now()) if primary is not None else ()
        return not actions or (await self._executor.execute(Plan(tuple((action,) for action in actions)))).ok

    async def take_back(self, key: Key) -> bool:
        """What was said of an earlier reconcile is over. False: it could not be written, and has to be tried again."""
        primary = None if self._by_event else self._cache.stores[self._reconciler.kind].get(key)
        actions = taking_back(self._reconciler.kind, primary) if primary is not None else ()
        return not actions or (await self._executor.execute(Plan((actions,)))).ok
