"""Objects of providers' own kinds, read by name beside the Machines, and their status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controllers.kernel.refs import Key, guessed_kind, ref_of
from nodewright.runtime.kube.client import ObjectClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from providers.base.contract import Objects
from providers.base.errors import ErrorClass, ProviderError


def objects_by(client: ObjectClient) -> Callable[[str], Objects]:
    """A reader for each namespace."""
    return lambda namespace: NamespaceObjects(client, namespace)


class NamespaceObjects:
    """As ``providers.base.contract.Objects``. Nothing is cached: what is read is what is there."""

    def __init__(self, client: ObjectClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read(self, api_version: str, kind: str, name: str) -> Mapping[str, Any]:
        try:
            return await self._client.get(guessed_kind(api_version, kind), Key(self._namespace, name))
        except KubeError as error:
            raise _provider_error(error, f"{kind} {self._namespace}/{name}", "read") from error

    async def report(self, obj: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
        target = ref_of(guessed_kind(str(obj["apiVersion"]), str(obj["kind"])), obj)
        version = str(obj["metadata"].get("resourceVersion") or "")
        try:
            return await self._client.patch_status(target, status, version)
        except KubeError as error:
            raise _provider_error(error, str(target), "written to") from error


def _provider_error(error: KubeError, title: str, verb: str) -> ProviderError:
    if isinstance(error, ApiError) and error.not_found:
        return ProviderError(ErrorClass.NOT_FOUND, f"{title} does not exist")
    if isinstance(error, ApiError) and error.code in {401, 403}:
        return ProviderError(ErrorClass.UNAUTHORIZED, f"{title} may not be {verb}: {error.message}")
    if isinstance(error, ApiError) and error.code == 409:
        return ProviderError(ErrorClass.CONFLICT, f"{title} was changed meanwhile")
    reason = error.reason if isinstance(error, ApiError) else error
    return ProviderError(ErrorClass.UNAVAILABLE, f"{title} can't be {verb}: {reason}")
