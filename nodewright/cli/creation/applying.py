"""Apply objects of any kind: server-side, one after the other, as often as one likes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from controllers.kernel.refs import Key, Kind, Obj
from nodewright.cli.creation.objects import DEFAULT_NAMESPACE
from nodewright.cli.exits import CliError
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

SERVED_SECONDS = 30.0
"""How long a kind may take to be served after its CustomResourceDefinition was applied."""
_LOOK_SECONDS = 0.2


class Applier:
    """Remembers which kinds the server has."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._kinds: dict[tuple[str, str], Kind] = {}

    async def apply(self, obj: Obj) -> tuple[Kind, dict[str, Any]]:
        """The kind and the object as it is now. Raises CliError for what the server refuses, ApiError and NoAnswer
        for what may be otherwise later.
        """
        kind = await self._kind(str(obj["apiVersion"]), str(obj["kind"]))
        meta = obj["metadata"]
        namespace = str(meta.get("namespace") or DEFAULT_NAMESPACE) if kind.namespaced else ""
        key = Key(namespace, str(meta["name"]))
        body = {**obj, "metadata": {**meta, "namespace": namespace} if namespace else dict(meta)}
        try:
            return kind, await self._client.apply(kind, key, body)
        except ApiError as error:
            if error.ambiguous or error.code == 429:
                raise
            raise CliError(f"{kind.name} {key}: {error.message}", _hint(error)) from error

    async def _kind(self, api_version: str, name: str) -> Kind:
        deadline = time.monotonic() + SERVED_SECONDS
        while (api_version, name) not in self._kinds:
            group, _, version = api_version.rpartition("/")
            self._kinds |= {(api_version, kind.name): kind for kind in await self._served(group, version)}
            if (api_version, name) in self._kinds:
                break
            if time.monotonic() > deadline:
                text = f"the cluster does not serve {name} of {api_version}"
                raise CliError(text, "Apply its CustomResourceDefinition before it")
            await asyncio.sleep(_LOOK_SECONDS)
        return self._kinds[api_version, name]

    async def _served(self, group: str, version: str) -> Iterable[Kind]:
        try:
            found = await self._client.resources(group, version)
        except ApiError as error:
            if error.not_found:
                return ()
            raise
        return [
            Kind(group, version, str(each["kind"]), str(each["name"]), bool(each.get("namespaced")))
            for each in found
            if isinstance(each, Mapping) and each.get("kind") and "/" not in str(each.get("name", "/"))
        ]


def _hint(error: ApiError) -> str:
    if error.conflict:
        return "Somebody changed these fields since: put their values into the file, or take the fields out of it"
    if error.code == 404:
        return "Put its Namespace into the file before it"
    return "Correct the file and run the same command again"
