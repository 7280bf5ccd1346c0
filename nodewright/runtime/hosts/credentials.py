"""Secrets that providers ask for: logins and user data, read by name and held for a minute."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping

from api.names import BOOTSTRAP_SECRET_TYPE, HOST_FILES_SECRET_TYPE
from controllers.kernel.refs import SECRET, Key, Obj
from nodewright.runtime.kube.client import ObjectClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from providers.base.contract import Secrets
from providers.base.errors import ErrorClass, ProviderError

HELD = 60.0
"""Seconds. Many hosts are made with the same user data."""
_READ_ANEW = frozenset({BOOTSTRAP_SECRET_TYPE, HOST_FILES_SECRET_TYPE})
"""Types of one host's token, whose next host has another, and of files: a change that a new content brings is made
once.
"""


def secrets_by(client: ObjectClient) -> Callable[[str], Secrets]:
    """A reader for each namespace."""
    return lambda namespace: NamespaceSecrets(client, namespace)


class NamespaceSecrets:
    """As ``providers.base.contract.Secrets``. Each is read by its name: no right to list Secrets is needed."""

    def __init__(self, client: ObjectClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._held: dict[str, tuple[float, str, Mapping[str, bytes]]] = {}

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        found, data = await self._typed(name)
        if of_type and found != of_type:
            text = f"Secret {self._namespace}/{name} is not of the type {of_type}, and no other may be used there"
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
        return data

    async def _typed(self, name: str) -> tuple[str, Mapping[str, bytes]]:
        now = asyncio.get_running_loop().time()
        self._held = {each: known for each, known in self._held.items() if now - known[0] <= HELD}
        held = self._held.get(name)
        if held is not None:
            return held[1:]
        secret = await self._read(name)
        data = _data(secret, f"Secret {self._namespace}/{name}")
        kind = str(secret.get("type") or "")
        if kind not in _READ_ANEW:
            self._held[name] = (now, kind, data)
        return kind, data

    async def _read(self, name: str) -> Obj:
        title = f"Secret {self._namespace}/{name}"
        try:
            return await self._client.get(SECRET, Key(self._namespace, name))
        except ApiError as error:
            if error.not_found:
                raise ProviderError(ErrorClass.NOT_FOUND, f"{title} does not exist") from error
            if error.code in {401, 403}:
                text = f"{title} may not be read: {error.message}"
                raise ProviderError(ErrorClass.UNAUTHORIZED, text) from error
            raise ProviderError(ErrorClass.UNAVAILABLE, f"{title} can't be read: {error.reason}") from error
        except KubeError as error:
            raise ProviderError(ErrorClass.UNAVAILABLE, f"{title} can't be read: {error}") from error


def _data(secret: Obj, title: str) -> Mapping[str, bytes]:
    data = secret.get("data")
    try:
        pairs = data.items() if isinstance(data, Mapping) else ()
        return {str(key): base64.b64decode(str(value), validate=True) for key, value in pairs}
    except (binascii.Error, ValueError) as error:
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{title}: its data is not base64") from error
