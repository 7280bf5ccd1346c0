"""The writes of a move on one of its sides may meet somebody who was faster."""

from __future__ import annotations

from typing import Any, cast

from controllers.kernel.refs import MACHINE, Key, Ref
from nodewright.cli.moving.sides import Side
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

GONE = ApiError(404, "NotFound", 'machines "m" not found')


class Collected:
    """An API whose garbage collector takes the finalizer ``orphan`` off between a look and the write after it."""

    def __init__(self) -> None:
        self.deleted = False

    async def get(self, kind: object, key: object) -> dict[str, Any]:
        finalizers = {"finalizers": ["orphan"]} if self.deleted else {}
        return {"metadata": {"name": "m", "namespace": "default", "uid": "u-1", "resourceVersion": "1", **finalizers}}

    async def delete(self, *_: object) -> None:
        self.deleted = True

    async def merge_patch(self, *_: object, **__: object) -> None:
        raise GONE


async def test_an_object_that_a_garbage_collector_has_finished_is_removed() -> None:
    """Seen on a real API server: ``delete cluster`` ended between two objects of the cluster that it brought back."""
    api = Collected()
    await Side(cast("KubeClient", api), "the source").remove(Ref(MACHINE, Key("default", "m"), "u-1"))
    assert api.deleted
