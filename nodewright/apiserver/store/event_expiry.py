"""Which Events are old enough to go? Events live for a while after their last change, as with --event-ttl."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import NamedTuple

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.values import Obj


class _Lease(NamedTuple):
    due: datetime
    key: ObjectKey
    revision: str


class EventExpiry:
    """Removes Events that nobody has changed for their time to live."""

    def __init__(self, kernel: Kernel, ttl: timedelta) -> None:
        self._kernel = kernel
        self._ttl = ttl
        self._leases: deque[_Lease] = deque()

    def note(self, collection: str, change: Change) -> None:
        """Start the time of an Event that was written."""
        if collection == "events" and not change.removed:
            self.note_restored(ObjectKey(collection, change.namespace, change.name), change.obj)

    def note_restored(self, key: ObjectKey, obj: Obj) -> None:
        """Start the time of an Event."""
        if key.collection == "events":
            due = self._kernel.clock() + self._ttl
            self._leases.append(_Lease(due, key, obj["metadata"]["resourceVersion"]))

    def expire(self, limit: int) -> int:
        """Remove at most `limit` Events whose time is over; gives how many."""
        removed = 0
        now = self._kernel.clock() if self._leases else None
        while now is not None and removed < limit and self._leases and self._leases[0].due <= now:
            lease = self._leases.popleft()
            event = self._kernel.state.find(lease.key)
            if event is not None and event["metadata"]["resourceVersion"] == lease.revision:
                self._kernel.state.remove(lease.key)
                removed += 1
        return removed
