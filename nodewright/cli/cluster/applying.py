"""Server-side apply, as ``kubectl apply --server-side`` does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from controllers.kernel.refs import Key, Kind
from nodewright.runtime.kube import client as kube

MANAGER = "nodewright"
_APPLY = "application/apply-patch+yaml"
"""YAML holds all of JSON, and JSON is what is sent: API servers before 1.34 know no other type for apply."""


class ApplyingClient(kube.KubeClient):
    """A client that can also apply."""

    async def apply(
        self, kind: Kind, key: Key, body: Mapping[str, Any], *, force: bool = False, dry_run: bool = False
    ) -> dict[str, Any]:
        """Make the fields of ``body`` so, owned by ``MANAGER``; the object comes to be if it is not there.

        Raises ApiError 409 if others own some of the fields, unless ``force``.
        """
        query = {"fieldManager": MANAGER, "force": "true" if force else "false", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        path = f"{kube._object_path(kind, key)}?{urlencode(query)}"
        return await self._object(kube._Call("apply", "PATCH", path, kind.plural, orjson.dumps(body), _APPLY))
