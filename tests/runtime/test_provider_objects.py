"""Objects of a provider's own kinds are read beside its Machines, and written only as they were read."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.refs import guessed_kind
from controllers.kernel.view import HostNeed
from nodewright.runtime.hosts.credentials import secrets_by
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.objects import NamespaceObjects, objects_by
from nodewright.runtime.hosts.options import HostOptions
from providers.base.contract import ConfigKind, Objects, Provider, Registration, Secrets
from providers.base.errors import ErrorClass, ProviderError
from providers.base.registry import Registry
from tests.runtime.cloud_scene import CONFIG, SCHEMA, FakeCloud, scope_of, until
from tests.runtime.town import Town

API, KIND = "ssh.nodewright.dev/v1alpha1", "SSHHostPool"
POOL: dict[str, Any] = {
    "apiVersion": API,
    "kind": KIND,
    "metadata": {"name": "racks", "namespace": "default"},
    "spec": {
        "secretName": "key",
        "hosts": [{"name": "h1", "address": "10.0.0.1", "hostKeys": ["ssh-ed25519 AAAA"]}],
    },
}


async def test_an_object_is_read_by_name_and_its_status_merged(town: Town) -> None:
    await town.client.create(guessed_kind(API, KIND), POOL)
    objects = NamespaceObjects(town.client, "default")
    read = await objects.read(API, KIND, "racks")
    assert read["spec"]["hosts"][0]["port"] == 22
    first = await objects.report(read, {"total": 1, "hosts": {"h1": {"state": "Free"}}})
    second = await objects.report(first, {"hosts": {"h1": {"state": "Claimed", "claim": "{}"}}})
    assert second["status"] == {"total": 1, "hosts": {"h1": {"state": "Claimed", "claim": "{}"}}}


async def test_a_status_is_not_written_over_that_of_somebody_else(town: Town) -> None:
    await town.client.create(guessed_kind(API, KIND), POOL)
    objects = NamespaceObjects(town.client, "default")
    read = await objects.read(API, KIND, "racks")
    await objects.report(read, {"total": 1})
    with pytest.raises(ProviderError) as caught:
        await objects.report(read, {"total": 2})
    assert caught.value.error_class is ErrorClass.CONFLICT
    assert (await objects.read(API, KIND, "racks"))["status"] == {"total": 1}


async def test_an_object_of_another_namespace_is_not_there(town: Town) -> None:
    await town.client.create(guessed_kind(API, KIND), POOL)
    with pytest.raises(ProviderError) as caught:
        await NamespaceObjects(town.client, "elsewhere").read(API, KIND, "racks")
    assert caught.value.error_class is ErrorClass.NOT_FOUND
    assert "elsewhere/racks" in caught.value.message


async def test_a_provider_is_opened_with_the_objects_of_its_machines_namespace(town: Town) -> None:
    await town.client.create(guessed_kind(API, KIND), POOL)
    opened: list[Objects] = []

    def refuse(_scope: str, _config: object) -> Provider:
        raise AssertionError("opened without objects")

    def with_objects(_scope: str, _config: object, _secrets: Secrets, objects: Objects) -> Provider:
        opened.append(objects)
        return FakeCloud()

    registration = Registration(
        "fake", (ConfigKind("fake.dev/v1", "Fake", SCHEMA),), scope_of, refuse,
        open_with_objects=with_objects, bootstrap_formats=("script",),
    )  # fmt: skip
    assert registration.reads_bootstrap_data
    directory = HostDirectory(Registry.of(registration), HostOptions())
    directory.read_secrets_by(secrets_by(town.client))
    directory.read_objects_by(objects_by(town.client))
    try:
        directory.look(HostNeed("uid", CONFIG, 5.0, namespace="default"))
        await until(lambda: bool(opened))
        assert (await opened[0].read(API, KIND, "racks"))["metadata"]["namespace"] == "default"
    finally:
        await directory.close()
