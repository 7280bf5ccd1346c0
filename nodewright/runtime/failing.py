"""How an object says that its controller can't reconcile it: a condition, or an Event where its kind has none.

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

from api.conditions import RECONCILED, Reason
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import Condition, find, merge
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Reconciler
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
    generation_of,
    objects,
    ref_of,
    resource_version_of,
    status_of,
)
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.executor import Executor

_log = structlog.get_logger("nodewright.shell")

KINDS_WITH_CONDITIONS = frozenset(
    {CLUSTER, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_CLASS, MACHINE_HEALTH_CHECK}
)
_OURS = frozenset({"api", "controllers", "providers", "nodewright"})


class MalformedError(Exception):
    """Parts of the object's spec are of a wrong type. ``faults``: ``path: must be ...``."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


def said_of(error: Exception, controller: str) -> Condition:
    """The condition for a reconcile that raised. An exception's own text stays in the log: it may quote a Secret."""
    if isinstance(error, MalformedError):
        message = f"{error}. Nothing is done until the spec is corrected"
        return Condition(RECONCILED, "False", Reason.MALFORMED_SPEC, message)
    message = (
        f"The controller {controller} failed with {type(error).__name__} ({_place(error)}). It tries again with "
        "back-off; its log has the details. Other objects are not affected"
    )
    return Condition(RECONCILED, "False", Reason.RECONCILE_FAILED, message)


def saying(kind: Kind, obj: Obj, said: Condition, now: datetime) -> tuple[Action, ...]:
    """What tells ``said`` to whoever looks at ``obj``; nothing if it says so already."""
    target = ref_of(kind, obj)
    event = Event(target, "Warning", said.reason, said.message)
    if kind not in KINDS_WITH_CONDITIONS:
        return (event,)
    conditions = status_of(obj).get("conditions")
    before, generation = find(conditions, RECONCILED), generation_of(obj)
    if before is not None and (before.get("reason"), before.get("message")) == (said.reason, said.message):
        return ()
    patch = {"status": {"conditions": merge(conditions, (said,), generation, now)}}
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


def is_own_note(old: Obj, new: Obj) -> bool:
    """Whether the only change is what ``saying`` or ``taking_back`` wrote."""
    before, after = (find(status_of(obj).get("conditions"), RECONCILED) for obj in (old, new))
    if before == after:
        return False
    return _without_note(old) == _without_note(new)


def _without_note(obj: Obj) -> dict[str, Any]:
    status = status_of(obj)
    kept = [each for each in objects(status.get("conditions")) if each.get("type") != RECONCILED]
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

    async def say(self, key: Key, error: Exception) -> None:
        """On the object itself, if it is there."""
        primary = self._cache.stores[self._reconciler.kind].get(key)
        if primary is None:
            return
        try:
            actions = saying(self._reconciler.kind, primary, said_of(error, self._reconciler.name), self._now())
            if actions:
                await self._executor.execute(Plan(tuple((action,) for action in actions)))
        except Exception:
            _log.exception("condition not written", condition=RECONCILED)

    async def take_back(self, key: Key) -> bool:
        """What was said of an earlier reconcile is over. False: it could not be written, and has to be tried again."""
        primary = self._cache.stores[self._reconciler.kind].get(key)
        actions = taking_back(self._reconciler.kind, primary) if primary is not None else ()
        return not actions or (await self._executor.execute(Plan((actions,)))).ok
