"""What does the store do after a write? The layers that watch every commit, and the steps they asked for."""

from __future__ import annotations

import logging

from nodewright.apiserver.store import draining, garbage
from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.deleting import Deleter
from nodewright.apiserver.store.disruption import BUDGET, Budgets
from nodewright.apiserver.store.draining import Drainer
from nodewright.apiserver.store.event_expiry import EventExpiry
from nodewright.apiserver.store.garbage import GarbageCollector
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.releasing import Releaser
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.work_queue import WorkQueue
from nodewright.apiserver.values import ApiError, Obj

_LOG = logging.getLogger("nodewright.apiserver")


class Housekeeper:
    """Does in small steps what a cluster's controllers would do: collect garbage, empty namespaces, count budgets.

    Event driven: a commit queues what it touches, and nothing is ever scanned to find work.
    """

    def __init__(self, kernel: Kernel, deleter: Deleter) -> None:
        self._queue = WorkQueue()
        self._clock = kernel.clock
        releaser = Releaser(kernel, deleter)
        self.budgets = Budgets(kernel, releaser, self._queue)
        self._garbage = GarbageCollector(kernel, deleter, releaser, self._queue)
        self._drainer = Drainer(kernel, deleter, releaser, self._queue)
        self._events = EventExpiry(kernel, kernel.options.event_ttl)
        self._layers = {
            garbage.DEPENDENT: self._garbage.look_at_dependent,
            garbage.OWNER: self._garbage.look_at_owner,
            draining.NAMESPACE: self._drainer.look_at_namespace,
            draining.CUSTOM_KIND: self._drainer.look_at_kind,
            BUDGET: self.budgets.refresh,
        }

    @property
    def pending(self) -> int:
        """How many steps wait (Events that will be due later are not counted)."""
        return len(self._queue)

    @property
    def due_seconds(self) -> float | None:
        """Seconds until a namespace begins to drain, None if none waits for its time."""
        due = self._drainer.next_due
        return None if due is None else max(0.0, (due - self._clock()).total_seconds())

    def note(self, collection: str, change: Change) -> None:
        """Hear of a commit."""
        self._garbage.note(collection, change)
        self._drainer.note(collection, change)
        self.budgets.note(collection, change)
        self._events.note(collection, change)

    def note_restored(self, key: ObjectKey, obj: Obj) -> None:
        """Hear of an object that was read from the journal."""
        self._garbage.note_restored(key, obj)
        self._drainer.note_restored(key, obj)
        self.budgets.note_restored(key)
        self._events.note_restored(key, obj)

    def run(self, limit: int) -> int:
        """Do at most `limit` steps; gives how many were done, so that 0 means that nothing is left for now.

        A step that fails is logged and left: one odd object must not stop the work for all others. Raises ApiError if
        the journal can't be written; the step is then still to do.
        """
        self._drainer.fall_due()
        done = self._events.expire(limit)
        while done < limit and (task := self._queue.pop()) is not None:
            try:
                self._layers[task.kind](task.key)
            except ApiError:
                self._queue.add(task.kind, task.key)
                raise
            except Exception:
                _LOG.exception("the %s of %s was not looked after", task.kind, "/".join(task.key))
            done += 1
        return done
