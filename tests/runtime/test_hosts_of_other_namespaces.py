"""Whoever has a cloud, or a host of a pool, says of it what they want: also that it is the host of another's Machine.

So a scope of one namespace says nothing of Machines of another one; a scope of the administrator's speaks for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.view import HostAbsent, HostPresent, HostUnknown
from nodewright.runtime.hosts.directory import HostDirectory
from providers.base.contract import ConfigKind, Host, HostState, Registration, SecretRef
from providers.base.errors import ErrorClass
from providers.base.registry import Registry
from tests.runtime.cloud_scene import CONFIG, SCHEMA, FakeCloud, Scene, error, scene, scope_of

VICTIMS = Host("h-victims", "u1", "victim", "fake://victim", HostState.RUNNING, "h1")
FORGED = Host("h-forged", "u1", "victim", "fake://forged", HostState.RUNNING, "h1")


def _secrets_of(config: Mapping[str, Any], namespace: str) -> tuple[SecretRef, ...]:
    return (SecretRef(namespace, "login"),) if config.get("zone") != "shared" else ()


async def with_a_hostile_cloud(stage: Scene, *errors: Exception) -> None:
    """That of the namespace ``hostile``, which is known already and lists a host of the UID of another's Machine."""
    kinds = (ConfigKind("fake.dev/v1", "Fake", SCHEMA),)
    registration = Registration("fake", kinds, scope_of, stage._open, _secrets_of)  # type: ignore[arg-type]
    stage.directory = HostDirectory(Registry.of(registration), now=stage.clock, seed=1)
    stage.directory.listen(stage.changed.append)
    cloud = stage.clouds["hostile/a"] = FakeCloud()
    cloud.hosts["u1"] = FORGED
    cloud.errors["list"] = [*errors]
    await stage.look("u-hostile", namespace="hostile")


@scene()
async def test_a_machine_without_a_host_is_not_given_that_of_another_namespaces_cloud(stage: Scene) -> None:
    await with_a_hostile_cloud(stage)
    assert (await stage.look("u1", namespace="busy")).host == HostAbsent()
    assert (await stage.look("u1", namespace="hostile")).host == HostPresent(FORGED), "it is its own cloud"


@scene()
async def test_who_asks_without_a_config_hears_nothing_of_it_either(stage: Scene) -> None:
    """As for certificates and for Nodes whose Machine is gone. The answer says where later calls for the host go."""
    await with_a_hostile_cloud(stage)
    assert (await stage.look("u1", config=None, namespace="busy")).host == HostAbsent()
    stage.clouds["busy/a"] = FakeCloud()
    stage.clouds["busy/a"].hosts["u1"] = VICTIMS
    assert (await stage.look("u1", namespace="busy")).host == HostPresent(VICTIMS)
    assert (await stage.look("u1", config=None, namespace="busy")).host == HostPresent(VICTIMS)


@scene()
async def test_a_status_that_names_the_scope_of_another_namespace_leads_nowhere(stage: Scene) -> None:
    await with_a_hostile_cloud(stage)
    read = (await stage.look("u1", namespace="busy", made_in="fake/hostile/a")).host
    assert isinstance(read, HostUnknown)
    assert "no config of that is known" in read.why


@scene()
async def test_a_cloud_that_does_not_answer_holds_up_nobody_of_another_namespace(stage: Scene) -> None:
    await with_a_hostile_cloud(stage, *[error(ErrorClass.UNAVAILABLE)] * 99)
    assert (await stage.look("u9", config=None, namespace="busy")).host == HostAbsent()


@scene()
async def test_a_scope_of_the_administrators_speaks_for_all(stage: Scene) -> None:
    await with_a_hostile_cloud(stage)
    stage.clouds["shared"] = FakeCloud()
    stage.clouds["shared"].hosts["u1"] = VICTIMS
    await stage.look("u2", config={**CONFIG, "zone": "shared"}, namespace="other")
    assert (await stage.look("u1", config=None, namespace="busy")).host == HostPresent(VICTIMS)
