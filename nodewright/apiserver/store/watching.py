"""What has changed for one watcher since it last looked? Cursors into the change logs."""

from __future__ import annotations

from collections.abc import Sequence

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.collection import Collection
from nodewright.apiserver.store.selection import Selection
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.values import ApiError, EventType, Obj, Resource, WatchEvent

MAX_POLL = 1000
"""Changes that one poll looks at, so that a watcher that lags behind can't hold up the others."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation on the bookmark that closes the initial events (KEP-3157)."""


class Watch:
    """A watcher's place in a collection. Made by `Store.watch`; costs nothing until it is polled."""

    def __init__(self, resource: Resource, collection: Collection, selection: Selection, position: int) -> None:
        self.resource = resource
        self._collection = collection
        self._selection = selection
        self._position = position
        self._initial: Sequence[WatchEvent] = ()

    def begin_with(self, events: Sequence[WatchEvent]) -> None:
        """Send these before any change; they come out of the polls in the same bounded portions."""
        self._initial = events

    @property
    def group_resource(self) -> str:
        """The name of the collection that is watched: what `Store.on_change` tells when there is something to poll."""
        return self._collection.name

    @property
    def ended(self) -> bool:
        """True once the kind is no longer served: poll what is left, then close the stream."""
        return self._collection.ended

    @property
    def pending(self) -> bool:
        """True if a poll would look at something: initial events, or changes that may concern this watcher."""
        return bool(self._initial) or self._position < self._collection.log.end

    def poll(self) -> list[WatchEvent]:
        """Give the events since the last poll, possibly none, at most MAX_POLL: poll again while `pending`.

        A change that moves an object into the selection is ADDED, one that moves it out DELETED.
        Raises ApiError 410 if changes were forgotten before this watcher saw them.
        """
        if self._initial:
            portion, self._initial = self._initial[:MAX_POLL], self._initial[MAX_POLL:]
            return list(portion)
        log = self._collection.log
        if not log.holds(self._position):
            raise ApiError.expired(f"too old resource version: the watch fell behind {log.floor}")
        changes = log.since(self._position, MAX_POLL)
        self._position += len(changes)
        return [event for change in changes if (event := self._event(change)) is not None]

    def _event(self, change: Change) -> WatchEvent | None:
        selection = self._selection
        if selection.namespace and change.namespace != selection.namespace:
            return None
        before = change.previous is not None and selection.accepts(change.previous)
        after = not change.removed and selection.accepts(change.obj)
        if after:
            return self._say("MODIFIED" if before else "ADDED", change.obj, change.revision)
        if not before:
            return None
        return self._say("DELETED", change.obj if change.removed else _left(change), change.revision)

    def _say(self, kind: EventType, obj: Obj, revision: int) -> WatchEvent:
        return WatchEvent(kind, as_served(self.resource, obj), str(revision))


def _left(change: Change) -> Obj:
    """The event for an object that leaves a watcher's selection: the last state that matched."""
    assert change.previous is not None
    metadata = {**change.previous["metadata"], "resourceVersion": str(change.revision)}
    return {**change.previous, "metadata": metadata}


def initial_events_end(resource: Resource, revision: int) -> WatchEvent:
    """Make the bookmark that tells a watcher that it has now seen all that was there."""
    bookmark = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(revision), "annotations": {INITIAL_EVENTS_END: "true"}},
    }
    return WatchEvent("BOOKMARK", bookmark, str(revision))
