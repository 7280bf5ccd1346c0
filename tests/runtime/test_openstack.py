"""The OpenStack provider in the whole program, on a fake cloud: what Machines say, and what nobody may say."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from controllers.kernel.refs import EVENT, MACHINE, MACHINE_SET, SECRET, Key, Ref
from providers.base.registry import Registry
from providers.openstack import registration
from tests.providers.openstack.fake_cloud import PASSWORD, TOKEN, FakeCloud, Mishap
from tests.providers.openstack.scene import CONFIG
from tests.runtime.town import Town

JOIN = "very-secret-join-token"
WRONG = "wrong-password-4711"


class Site:
    """A fake cloud, a MachineSet of one Machine on it, and the Secrets that it names."""

    def __init__(self, town: Town, cloud: FakeCloud) -> None:
        self.town = town
        self.cloud = cloud

    async def secret(self, name: str, data: Mapping[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        metadata = {"name": name, "namespace": "default"}
        await self.town.client.create(
            SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
        )

    async def machine_set(self, **config: Any) -> None:
        labels = {"pool": "one"}
        spec = {"versions": {"kubelet": "1.34.0"}, "providerConfig": {"value": {**CONFIG, **config}}}
        body = {
            "apiVersion": MACHINE_SET.api_version,
            "kind": "MachineSet",
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        await self.town.client.create(MACHINE_SET, body)

    def said(self, type_: str) -> Mapping[str, Any]:
        for machine in self.town.objects(MACHINE):
            for condition in (machine.get("status") or {}).get("conditions") or ():
                if condition["type"] == type_:
                    return dict(condition)
        return {}


@pytest.fixture
async def site(town: Town) -> AsyncIterator[Site]:
    town.options = replace(town.options, registry=Registry.of(replace(registration, list_pause=0.2)))
    async with FakeCloud() as cloud:
        yield Site(town, cloud)


@asynccontextmanager
async def listened(caplog: pytest.LogCaptureFixture) -> AsyncIterator[list[str]]:
    """All log lines, of the program and of every library."""
    log, told = LogCapture(), []
    structlog.configure(processors=[log], wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    caplog.set_level(logging.DEBUG)
    yield told
    told += [str(entry) for entry in log.entries] + [caplog.text]


async def test_a_refused_login_is_told_and_no_credential_with_it(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    await site.secret("cloud", {"clouds.yaml": site.cloud.login().replace(PASSWORD.encode(), WRONG.encode())})
    async with listened(caplog) as told, site.town.controllers():
        await site.machine_set()
        await site.town.until(lambda: site.said("ConfigurationValid").get("reason") == "Unauthorized")
    written = json.dumps([site.town.objects(kind) for kind in (MACHINE, MACHINE_SET, EVENT)])
    assert [secret for secret in (WRONG, TOKEN) if secret in written + "".join(told)] == []


async def test_what_a_cloud_repeats_of_a_request_reaches_no_log_event_or_status(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    data = f"#cloud-config\njoin: {JOIN}\n".encode()
    await site.secret("cloud", {"clouds.yaml": site.cloud.login()})
    await site.secret("data", {"userData": data})
    echo = {"badRequest": {"message": f"Invalid input. Value: {base64.b64encode(data).decode()}. {PASSWORD} {TOKEN}"}}
    site.cloud.mishaps.append(Mishap("POST", "/servers", status=400, body=echo))
    async with listened(caplog) as told, site.town.controllers():
        await site.machine_set(userData={"secretName": "data"})
        await site.town.until(lambda: site.said("InfrastructureReady").get("reason") == "InvalidConfiguration")
        await site.town.until(lambda: bool(site.town.objects(EVENT)))
    assert any("provider call failed" in line for line in told), "the log was listened to"
    written = json.dumps([site.town.objects(kind) for kind in (MACHINE, MACHINE_SET, EVENT)])
    hidden = (PASSWORD, TOKEN, JOIN, base64.b64encode(data).decode()[:24])
    assert [secret for secret in hidden if secret in written + "".join(told)] == []


async def test_all_that_is_missing_is_told_and_then_that_it_is_there(site: Site) -> None:
    """The first server that is made proves it; nobody has to look again."""
    await site.secret("cloud", {"clouds.yaml": site.cloud.login()})
    async with site.town.controllers():
        await site.machine_set(image="of-yesterday", keyPair="none")
        await site.town.until(lambda: site.said("ConfigurationValid").get("status") == "False")
        told = site.said("ConfigurationValid")["message"]
        assert "spec.providerConfig.value.image: there is no image of-yesterday" in told
        assert "spec.providerConfig.value.keyPair: there is no key pair none" in told
        (machine,) = site.town.objects(MACHINE)
        changed = {"spec": {"providerConfig": {"value": {"image": "debian-12", "keyPair": "nodes"}}}}
        ref = Ref(MACHINE, Key("default", machine["metadata"]["name"]))
        await site.town.client.merge_patch(ref, changed)
        await site.town.until(lambda: site.said("ConfigurationValid").get("status") == "True")
