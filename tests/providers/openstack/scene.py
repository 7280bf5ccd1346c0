"""A config of the test cloud's project, and Secrets in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.config import API_VERSION, KIND

CONFIG: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "cloud": {"secretName": "cloud", "name": "demo"},
    "flavor": "m1.tiny",
    "image": "debian-12",
    "ports": [{"network": "nodes"}],
}
CHANGED: dict[str, Any] = {
    **CONFIG,
    "securityGroups": ["nodes"],
    "metadata": {"team": "blue"},
    "updates": {"rebuild": True},
}
IMPOSSIBLE: dict[str, Any] = {**CONFIG, "image": "of-yesterday"}


class HeldSecrets:
    """As ``providers.base.contract.Secrets``, by name."""

    def __init__(self, secrets: Mapping[str, Mapping[str, bytes]]) -> None:
        self.secrets = dict(secrets)

    async def read(self, name: str) -> Mapping[str, bytes]:
        if name not in self.secrets:
            raise ProviderError(ErrorClass.NOT_FOUND, f"Secret test/{name} does not exist")
        return self.secrets[name]
