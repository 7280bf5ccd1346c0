"""What do all parts of the store share? State, registry, schemas, clock and uids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from nodewright.apiserver.store.metadata import timestamp
from nodewright.apiserver.store.registry import ResourceRegistry, collection_name
from nodewright.apiserver.store.seams import Author, Seams
from nodewright.apiserver.store.shaping import Shapes
from nodewright.apiserver.store.state import ObjectKey, State
from nodewright.apiserver.store.versions import as_served, as_stored
from nodewright.apiserver.values import ApiError, Obj, Resource, WriteOptions


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store behaves.

    `kubelets_confirm_deletes`: a bound Pod with a grace period stays, marked as deleting, until a delete with
    gracePeriodSeconds=0 confirms it, as with real kubelets. `log_length`: changes per kind that watches and pages
    can go back (at most twice as many are kept). `event_ttl`: how long Events stay (kube-apiserver --event-ttl).
    `namespace_grace`: how long a namespace stays as it is, Terminating, before its contents go (the namespace
    controller's namespaceDeletionGracePeriod), so that whoever deletes it may delete them too.
    """

    kubelets_confirm_deletes: bool = False
    log_length: int = 5_000
    event_ttl: timedelta = timedelta(hours=1)
    namespace_grace: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The shared parts. `clock` gives an aware datetime; `new_uid` never gives the same text twice."""

    state: State
    registry: ResourceRegistry
    shapes: Shapes
    seams: Seams
    clock: Callable[[], datetime]
    new_uid: Callable[[], str]
    options: StoreOptions

    def now(self) -> str:
        """Give the present as metav1.Time."""
        return timestamp(self.clock())

    def key(self, resource: Resource, namespace: str, name: str) -> ObjectKey:
        """Say where an object lies."""
        return ObjectKey(collection_name(resource), namespace if resource.namespaced else "", name)

    def find(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        """Give the stored object, or None."""
        return self.state.find(self.key(resource, namespace, name))

    def require(self, resource: Resource, namespace: str, name: str) -> Obj:
        """Give the stored object. Raises ApiError 404."""
        found = self.find(resource, namespace, name)
        if found is None:
            raise ApiError.not_found(resource, name)
        return found

    def put(self, resource: Resource, key: ObjectKey, obj: Obj) -> Obj:
        """Store an object that came in the version of `resource`; gives it back in that version."""
        stored = as_stored(resource, obj, self.registry.storage_version(resource))
        return as_served(resource, self.state.put(key, stored))

    def author(self, options: WriteOptions, operation: str, subresource: str) -> Author:
        """Say who writes, for managedFields."""
        return Author(options.field_manager or "unknown", operation, subresource, self.now())
