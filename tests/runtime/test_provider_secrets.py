"""Secrets reach the providers that name them, each from its Machines' namespace, and nobody else's."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from controllers.kernel.refs import SECRET
from controllers.kernel.view import HostNeed
from nodewright.runtime.hosts import credentials
from nodewright.runtime.hosts.credentials import NamespaceSecrets
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.options import HostOptions
from providers.base.contract import ConfigKind, Registration, SecretRef, Secrets
from providers.base.errors import ErrorClass, ProviderError
from providers.base.registry import Registry
from tests.runtime.cloud_scene import CONFIG, SCHEMA, FakeCloud, scope_of, until
from tests.runtime.town import Town
from tests.runtime.virtual_time import now, virtual_time


def secret(name: str, **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "data": encoded}


async def test_a_secret_is_read_by_name(town: Town) -> None:
    await town.client.create(SECRET, secret("cloud", login="bob"))
    await town.client.create(SECRET, secret("other", login="eve"))
    assert await NamespaceSecrets(town.client, "default").read("cloud") == {"login": b"bob"}


async def test_a_secret_that_is_not_there_is_told_by_its_name(town: Town) -> None:
    with pytest.raises(ProviderError) as caught:
        await NamespaceSecrets(town.client, "default").read("cloud")
    assert caught.value.error_class is ErrorClass.NOT_FOUND
    assert "default/cloud" in caught.value.message


async def test_a_secret_of_another_type_than_is_asked_for_is_refused_also_when_it_is_held(town: Town) -> None:
    await town.client.create(SECRET, {**secret("files", key="x"), "type": "nodewright.dev/host-files"})
    await town.client.create(SECRET, secret("cloud", login="bob"))
    reader = NamespaceSecrets(town.client, "default")
    assert await reader.read("files", "nodewright.dev/host-files") == {"key": b"x"}
    await reader.read("cloud")
    with pytest.raises(ProviderError, match=r"Secret default/cloud is not of the type nodewright\.dev/host-files"):
        await reader.read("cloud", "nodewright.dev/host-files")


async def test_files_of_hosts_are_read_anew_each_time(town: Town) -> None:
    """A change of a host that another content is to come with is made once."""
    body = {**secret("files", key="first"), "type": "nodewright.dev/host-files"}
    await town.client.create(SECRET, body)
    reader = NamespaceSecrets(town.client, "default")
    assert await reader.read("files") is not await reader.read("files")


async def test_a_secret_is_held_for_a_while_and_read_again(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await town.client.create(SECRET, secret("cloud", login="bob"))
    reader = NamespaceSecrets(town.client, "default")
    await reader.read("cloud")
    await town.client.create(SECRET, secret("data", text="x"))
    before = await reader.read("cloud")
    assert await reader.read("cloud") is before
    monkeypatch.setattr(credentials, "HELD", -1.0)
    assert await reader.read("cloud") is not before


class NamespacedProvider:
    """A provider whose login is in the Secret ``cloud``."""

    def __init__(self) -> None:
        self.clouds: dict[str, FakeCloud] = {}
        self.registration = Registration(
            "fake",
            (ConfigKind("fake.dev/v1", "Fake", SCHEMA),),
            scope_of,
            self._open_without,
            lambda _config, namespace: (SecretRef(namespace, "cloud"),),
            self._open,
            list_pause=5.0,
        )

    def _open_without(self, _scope: str, _config: Mapping[str, Any]) -> Any:
        raise AssertionError("there are Secrets to read")

    def _open(self, scope: str, _config: Mapping[str, Any], secrets: Secrets) -> Any:
        self.secrets = secrets
        return self.clouds.setdefault(scope, FakeCloud())


class NoSecrets:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        raise AssertionError(name)


async def looked(directory: HostDirectory, *needs: HostNeed) -> None:
    changed: list[str] = []
    directory.listen(changed.append)
    for need in needs:
        while directory.look(need) is None:
            changed.clear()
            await until(lambda: bool(changed))


@virtual_time
async def test_two_namespaces_never_share_a_login() -> None:
    provider = NamespacedProvider()
    directory = HostDirectory(Registry.of(provider.registration), HostOptions())
    directory.read_secrets_by(NoSecrets)
    await looked(directory, HostNeed("u1", CONFIG, 5.0, namespace="blue"), HostNeed("u2", CONFIG, 5.0, namespace="red"))
    assert sorted(provider.clouds) == ["blue/a", "red/a"]
    assert provider.secrets.namespace == "red"  # type: ignore[attr-defined]
    await directory.close()


@virtual_time
async def test_a_provider_says_how_often_it_wants_to_be_listed() -> None:
    provider = NamespacedProvider()
    directory = HostDirectory(Registry.of(provider.registration), HostOptions())
    directory.read_secrets_by(NoSecrets)
    began = now()
    while now() - began < 60:
        directory.look(HostNeed("u1", CONFIG, 0.5, namespace="blue"))
        await asyncio.sleep(0.25)
    assert 10 <= provider.clouds["blue/a"].lists() <= 13
    await directory.close()
