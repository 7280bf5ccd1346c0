"""A store in this process, asked as a cluster is: nothing listens, and what it holds is in no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, cast

import orjson

from controllers.kernel.refs import Key, Kind, Obj, Ref
from nodewright.apiserver.store import Store
from nodewright.apiserver.values import ApiError as StoreError
from nodewright.apiserver.values import DeleteOptions, ListOptions, PatchRequest, Resource, WriteOptions
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import ApiError
from nodewright.runtime.kube.requests import encoded, guarded

_MANAGER = "nodewright"


class StoreClient:
    """As ``nodewright.runtime.kube.client.ObjectClient``. Each write is in the journal when it returns."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        with _refusals():
            return _copy(self._store.get(self._resource(kind), key.namespace, key.name))

    async def list_page(
        self, kind: Kind, limit: int = 500, continue_: str = "", namespace: str = "", name: str = ""
    ) -> Page:
        options = ListOptions(limit=limit, continue_=continue_, field_selector=f"metadata.name={name}" if name else "")
        with _refusals():
            found = self._store.list(self._resource(kind), namespace, options)
            return Page([_copy(each) for each in found.items], found.resource_version, found.continue_)

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]:
        namespace = str(body["metadata"].get("namespace", "")) if kind.namespaced else ""
        return self._written(lambda: self._store.create(self._resource(kind), namespace, _copy(body), _OPTIONS).obj)

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        request = PatchRequest("merge", _copy(guarded(patch, target.uid, resource_version)), _OPTIONS)
        resource, key = self._resource(target.kind), target.key
        return self._written(
            lambda: self._store.patch(resource, key.namespace, key.name, request, subresource=subresource).obj
        )

    async def patch_status(self, target: Ref, status: Mapping[str, Any], resource_version: str = "") -> dict[str, Any]:
        return await self.merge_patch(
            target, {"status": status}, subresource="status", resource_version=resource_version
        )

    async def delete(
        self,
        target: Ref,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        resource_version: str = "",
    ) -> dict[str, Any]:
        options = DeleteOptions(
            cast(Literal["Background", "Foreground", "Orphan"], propagation),
            uid=target.uid,
            resource_version=resource_version,
            grace_seconds=grace_seconds,
        )
        resource, key = self._resource(target.kind), target.key
        return self._written(lambda: self._store.delete(resource, key.namespace, key.name, options))

    def _resource(self, kind: Kind) -> Resource:
        found = self._store.resources.find(kind.group, kind.version, kind.plural)
        if found is None:
            raise ApiError(404, "NotFound", f"{kind.plural} of {kind.group}/{kind.version} are not served here")
        return found

    def _written(self, write: Callable[[], Obj]) -> dict[str, Any]:
        with _refusals():
            written = write()
            self._store.flush()
            return _copy(written)


_OPTIONS = WriteOptions(field_manager=_MANAGER)


def _copy(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What the store holds belongs to it, and what is given to it is no longer the caller's."""
    copied: dict[str, Any] = orjson.loads(encoded(obj))
    return copied


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        status = error.status()
        raise ApiError(error.code, error.reason, error.message, status.get("details")) from error
