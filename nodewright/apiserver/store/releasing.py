"""How do the store's own layers change an object? Owners and finalizers taken away, status written.

These are the writes that controllers of a real cluster would make; they go past admission, since they only take
away, or write what the store itself has computed.
"""

from __future__ import annotations

from nodewright.apiserver.store.deleting import Deleter
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.replacing import same_content
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.store.writing import is_released
from nodewright.apiserver.values import Obj, Resource


class Releaser:
    """Changes stored objects without a request."""

    def __init__(self, kernel: Kernel, deleter: Deleter) -> None:
        self._kernel = kernel
        self._deleter = deleter

    def set_owners(self, resource: Resource, key: ObjectKey, references: list[Obj]) -> None:
        """Give an object these ownerReferences."""
        obj = self._stored(resource, key)
        meta = {**obj["metadata"], "ownerReferences": references}
        if not references:
            del meta["ownerReferences"]
        self._kernel.put(resource, key, {**obj, "metadata": meta})

    def drop_finalizer(self, resource: Resource, key: ObjectKey, finalizer: str) -> None:
        """Take one finalizer away; the object goes if it was the last thing that held it."""
        obj = self._stored(resource, key)
        meta = dict(obj["metadata"])
        meta["finalizers"] = [name for name in meta.get("finalizers") or () if name != finalizer]
        if not meta["finalizers"]:
            del meta["finalizers"]
        self.settle(resource, key, {**obj, "metadata": meta})

    def settle(self, resource: Resource, key: ObjectKey, obj: Obj) -> None:
        """Store a new state, or remove the object if nothing in that state holds it any more."""
        if is_released(resource, obj):
            self._deleter.remove(resource, key)
        else:
            self._kernel.put(resource, key, {**obj, "metadata": dict(obj["metadata"])})

    def set_status(self, resource: Resource, key: ObjectKey, status: Obj) -> None:
        """Write a status, if it differs."""
        obj = self._stored(resource, key)
        new = {**obj, "status": status, "metadata": dict(obj["metadata"])}
        if not same_content(new, obj):
            self._kernel.put(resource, key, new)

    def _stored(self, resource: Resource, key: ObjectKey) -> Obj:
        found = self._kernel.state.find(key)
        assert found is not None, key
        return as_served(resource, found)
