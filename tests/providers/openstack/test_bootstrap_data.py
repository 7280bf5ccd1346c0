"""Bootstrap data reaches the server byte for byte, and nobody misses it once the server has joined."""

from __future__ import annotations

import base64
import gzip
import random
import uuid
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from providers.base.contract import (
    BootstrapRef,
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    NeedsDrain,
    NeedsReplacement,
    Provider,
    Updated,
    Versions,
)
from providers.base.errors import ErrorClass
from providers.openstack import ownership_tags, registration
from tests.providers.openstack.fake_cloud import FakeCloud
from tests.providers.openstack.scene import CONFIG, HeldSecrets, refused
from tests.providers.openstack.test_behaviour import until, update

DATA = b'#cloud-config\n{"write_files": [{"content": "$(MACHINE_NAME) \\u00e9"}]}\n'
REBUILDS = {"updates": {"rebuild": True}}


REFERENCE = BootstrapRef("m-bootstrap")


def request(reference: BootstrapRef | None = REFERENCE, **config: Any) -> HostRequest:
    identity = HostIdentity(str(uuid.uuid4()), "test", "m", "story")
    return HostRequest(identity, {**CONFIG, **config}, "hash-1", Versions("1.36.3"), bootstrap=reference)


class Scene:
    """A provider and the Secrets that it reads."""

    def __init__(self, cloud: FakeCloud, data: bytes = DATA) -> None:
        self.cloud = cloud
        self.held = HeldSecrets({"cloud": {"clouds.yaml": cloud.login()}, "m-bootstrap": {"userData": data}})
        self.held.secrets["own"] = {"userData": b"#!/bin/sh\necho own\n"}
        opened = registration.open_with_secrets
        assert opened is not None
        self.provider: Provider = opened("", CONFIG, self.held)

    def sent(self, what: str = "server") -> bytes:
        """The user data of the last request that had some."""
        bodies = [body[what] for method, _, body in self.cloud.bodies if method == "POST" and what in (body or {})]
        return base64.b64decode(bodies[-1].get("user_data") or "")

    async def up(self, wanted: HostRequest) -> Host:
        await self.provider.create(wanted)
        host = await until(self.provider, wanted.identity.machine_uid, HostState.RUNNING)
        assert host is not None
        return host


@pytest_asyncio.fixture
async def scene(cloud: FakeCloud) -> Scene:
    return Scene(cloud)


async def test_a_server_gets_its_bootstrap_data_byte_for_byte(scene: Scene) -> None:
    """Nothing is filled in: what looks like a variable is the host's own."""
    await scene.up(request())
    assert scene.sent() == DATA


@pytest.mark.parametrize("data", [b"#!/bin/sh\n" + bytes(range(256)), b"#cloud-config\r\n\xff"])
async def test_bytes_that_are_no_text_arrive_too(cloud: FakeCloud, data: bytes) -> None:
    scene = Scene(cloud, data)
    await scene.up(request(BootstrapRef("m-bootstrap", "script")))
    assert scene.sent() == data


async def test_user_data_of_the_config_comes_first(scene: Scene) -> None:
    await scene.up(request(userData={"secretName": "own"}))
    assert scene.sent() == b"#!/bin/sh\necho own\n"


@pytest.mark.parametrize("reference", [None, BootstrapRef("m-bootstrap", "none")])
async def test_without_either_a_server_has_no_user_data(scene: Scene, reference: BootstrapRef | None) -> None:
    host = await scene.up(request(reference))
    assert "user_data" not in scene.cloud.bodies[-1]
    assert scene.sent() == b""
    assert ownership_tags.BOOTSTRAP not in scene.cloud.servers[host.id]["metadata"]


async def test_what_is_too_large_as_it_is_goes_compressed(cloud: FakeCloud) -> None:
    text = b"#cloud-config\n" + b"# much the same\n" * 8000
    scene = Scene(cloud, text)
    await scene.up(request())
    assert gzip.decompress(scene.sent()) == text


async def test_what_fits_in_no_way_is_refused_before_anything_is_made(cloud: FakeCloud) -> None:
    scene = Scene(cloud, b"#cloud-config\n" + random.Random(3).randbytes(60_000))
    error = await refused(scene.provider, request())
    assert error.error_class is ErrorClass.INVALID_CONFIGURATION
    assert "user data is too large: 80020 characters of base64" in error.message
    assert (cloud.servers, cloud.ports) == ({}, {})


async def test_a_form_that_no_server_takes_is_refused(scene: Scene) -> None:
    error = await refused(scene.provider, request(BootstrapRef("m-bootstrap", "ignition")))  # type: ignore[arg-type]
    assert error.error_class is ErrorClass.INVALID_CONFIGURATION
    assert "'ignition'" in error.message


@pytest.mark.parametrize("secrets", [{}, {"m-bootstrap": {"value": b"x"}}])
async def test_data_that_is_not_there_is_told_and_no_port_is_made(scene: Scene, secrets: dict[str, Any]) -> None:
    del scene.held.secrets["m-bootstrap"]
    scene.held.secrets |= secrets
    error = await refused(scene.provider, request())
    assert error.error_class is ErrorClass.NOT_FOUND
    assert "m-bootstrap" in error.message
    assert scene.cloud.ports == {}


CALM: dict[str, dict[str, Any]] = {
    "another spec": {},
    "metadata and tags": {"metadata": {"team": "blue"}, "tags": ["t"]},
    "security groups": {"securityGroups": ["nodes"]},
}


@pytest.mark.parametrize("reference", [None, BootstrapRef("m-bootstrap")], ids=["no reference", "the same one"])
@pytest.mark.parametrize("change", CALM.values(), ids=list(CALM))
async def test_once_it_has_joined_nobody_misses_the_secret(
    scene: Scene, change: dict[str, Any], reference: BootstrapRef | None
) -> None:
    wanted = request()
    host = await scene.up(wanted)
    del scene.held.secrets["m-bootstrap"]
    assert (await scene.provider.create(replace(wanted, bootstrap=reference))).id == host.id
    changed = replace(wanted, config={**wanted.config, **change}, spec_hash="hash-2", bootstrap=reference)
    assert await update(scene.provider, changed, drained=False) == Updated()
    assert scene.cloud.requests("POST /servers/.*/action") == 0
    assert scene.cloud.servers[host.id]["metadata"][ownership_tags.BOOTSTRAP] == "cloud-config"


@pytest.mark.parametrize("there", [True, False], ids=["the Secret is there", "the Secret is gone"])
@pytest.mark.parametrize("reference", [None, BootstrapRef("m-bootstrap")], ids=["no reference", "a reference"])
async def test_a_server_that_joined_with_it_is_replaced_and_not_rebuilt(
    scene: Scene, there: bool, reference: BootstrapRef | None
) -> None:
    wanted = request()
    await scene.up(wanted)
    if not there:
        del scene.held.secrets["m-bootstrap"]
    config = {**wanted.config, "image": "debian-13", **REBUILDS}
    answer = await update(
        scene.provider, replace(wanted, config=config, spec_hash="hash-2", bootstrap=reference), drained=True
    )
    assert isinstance(answer, NeedsReplacement)
    assert "image changed: a rebuilt server would have to join again" in answer.why
    newer = replace(wanted, config={**wanted.config, **REBUILDS}, versions=Versions("1.37.0"), spec_hash="hash-3")
    assert isinstance(await update(scene.provider, newer, drained=True), NeedsReplacement)


async def test_it_can_be_rebuilt_with_user_data_of_its_config(scene: Scene) -> None:
    wanted = request()
    host = await scene.up(wanted)
    config = {**wanted.config, "userData": {"secretName": "own"}, **REBUILDS}
    changed = replace(wanted, config=config, spec_hash="hash-2")
    assert isinstance(await update(scene.provider, changed, drained=False), NeedsDrain)
    assert await update(scene.provider, changed, drained=True) == Updated()
    assert ownership_tags.BOOTSTRAP not in scene.cloud.servers[host.id]["metadata"]


async def test_a_server_with_user_data_of_its_config_is_replaced_where_bootstrap_data_takes_its_place(
    scene: Scene,
) -> None:
    wanted = request(None, userData={"secretName": "own"}, **REBUILDS)
    await scene.up(wanted)
    config = {key: value for key, value in wanted.config.items() if key != "userData"}
    changed = replace(wanted, config=config, spec_hash="hash-2", bootstrap=BootstrapRef("m-bootstrap"))
    assert isinstance(await update(scene.provider, changed, drained=True), NeedsReplacement)


def test_the_registration_says_what_it_takes() -> None:
    assert registration.reads_bootstrap_data
    assert registration.bootstrap_formats == ("cloud-config", "script")
    assert registration.user_data_limit is not None
    assert not registration.brings_user_data(CONFIG)
    assert registration.brings_user_data({**CONFIG, "userData": {"secretName": "own"}})
