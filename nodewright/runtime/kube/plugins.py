"""Log in through an exec plugin or an auth provider of a kubeconfig, by kubernetes_asyncio.

Imported only when a kubeconfig asks for it (see ``kubeconfig``).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_kube_config

from nodewright.runtime.kube.errors import ConfigurationError

MAX_AGE = 600.0
"""Seconds after which a plugin is asked again; clouds' tokens live for fifteen minutes and more."""
LOGIN_TIMEOUT = 60.0


class PluginLogin:
    """A token source that runs the plugin again after ``MAX_AGE`` or a 401.

    A client certificate from a plugin is taken once, at the start.
    """

    client_certificate: bytes = b""
    client_key: bytes = b""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._token = ""
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, kubeconfig: Path, context: str) -> PluginLogin:
        """Raises ConfigurationError if the plugin can't be run or gives nothing."""
        login = cls(kubeconfig, context)
        await login.token()
        return login

    async def token(self) -> str:
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._read_at > MAX_AGE:
                await self._log_in()
                self._read_at = now
            return self._token

    def reject(self) -> None:
        self._read_at = float("-inf")

    async def _log_in(self) -> None:
        configuration = Configuration()
        try:
            async with asyncio.timeout(LOGIN_TIMEOUT):
                await load_kube_config(str(self._kubeconfig), self._context, configuration, persist_config=False)
        except (ConfigException, OSError, TimeoutError) as error:
            text = "took too long" if isinstance(error, TimeoutError) else str(error)
            raise ConfigurationError(f"{self._kubeconfig}: login plugin of context {self._context}: {text}") from error
        value = configuration.api_key.get("BearerToken") or ""
        self._token = value.removeprefix("Bearer ").strip()
        if configuration.cert_file and configuration.key_file:
            self.client_certificate = await asyncio.to_thread(Path(configuration.cert_file).read_bytes)
            self.client_key = await asyncio.to_thread(Path(configuration.key_file).read_bytes)
        if not self._token and not self.client_certificate:
            raise ConfigurationError(f"{self._kubeconfig}: login plugin of context {self._context} gave no credentials")
