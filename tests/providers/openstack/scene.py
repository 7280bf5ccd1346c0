"""A config of the test cloud's project, Secrets in memory, and the provider that works with both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from providers.base.contract import Host, HostRequest, Provider
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import registration
from providers.openstack.config import API_VERSION, KIND
from tests.providers.openstack.fake_cloud import FakeCloud

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

USER_DATA = (
    "#cloud-config\nfqdn: $(MACHINE_NAME)\nlabels: $(NODE_LABELS)\njoin: very-secret-join-token\nkeep: $(OTHER)\n"
)


class HeldSecrets:
    """As ``providers.base.contract.Secrets``, by name."""

    def __init__(self, secrets: Mapping[str, Mapping[str, bytes]]) -> None:
        self.secrets = dict(secrets)

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        if name not in self.secrets:
            raise ProviderError(ErrorClass.NOT_FOUND, f"Secret test/{name} does not exist")
        return self.secrets[name]


def provider_with(**secrets: Mapping[str, bytes]) -> Provider:
    """One that may read these Secrets."""
    opened = registration.open_with_secrets
    assert opened is not None
    return opened("", CONFIG, HeldSecrets(secrets))


def provider_of(cloud: FakeCloud, user_data: bytes = USER_DATA.encode()) -> Provider:
    return provider_with(cloud={"clouds.yaml": cloud.login()}, data={"userData": user_data})


async def refused(provider: Provider, wanted: HostRequest) -> ProviderError:
    """What a creation is refused with."""
    with pytest.raises(ProviderError) as caught:
        await provider.create(wanted)
    return caught.value


async def gone(provider: Provider, host: Host) -> None:
    """Delete it, and look until nothing is left."""
    await provider.delete(host)
    while await provider.list():
        pass
