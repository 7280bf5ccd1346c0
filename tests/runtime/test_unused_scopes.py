"""A scope goes some time after the last Machine of it: tenants make as many as there are names of Secrets and pools."""

from __future__ import annotations

import asyncio

from nodewright.runtime.hosts.unused import KEPT, KEPT_WITH_HOSTS
from nodewright.runtime.telemetry import metrics
from providers.base.contract import Host, HostState
from providers.base.errors import ErrorClass
from tests.runtime.cloud_scene import CONFIG, FakeCloud, Scene, create, error, scene, until


class Connected(FakeCloud):
    """A provider that keeps connections."""

    closed = False

    async def close(self) -> None:
        self.closed = True
        raise OSError("a connection that is closed already")


def named(stage: Scene) -> set[str]:
    return {one.scope for one in stage.directory.lists()}


@scene(steady_poll=30)
async def test_scopes_of_machines_that_are_gone_are_listed_no_more_and_leave_nothing(stage: Scene) -> None:
    cloud = stage.clouds["z1"] = Connected()
    for number in range(20):
        await stage.look(f"u{number}", config={**CONFIG, "zone": f"z{number}"})
        stage.directory.forget(f"u{number}")
    await stage.look("stays")
    assert len(named(stage)) == 21
    await asyncio.sleep(KEPT + 60)
    assert named(stage) == {"fake/a"}
    lists = cloud.lists()
    await asyncio.sleep(600)
    assert cloud.lists() == lists
    assert cloud.closed
    series = [s.labels for family in metrics.REGISTRY.collect() for s in family.samples if "scope" in s.labels]
    assert not [labels for labels in series if labels["scope"] in {f"fake/z{number}" for number in range(20)}]


@scene(steady_poll=30)
async def test_one_that_never_answers_goes_as_well(stage: Scene) -> None:
    stage.cloud.errors["list"] = [error(ErrorClass.UNAUTHORIZED)] * 999
    await stage.look("u1")
    stage.directory.forget("u1")
    await asyncio.sleep(3 * KEPT)
    assert named(stage) == set()


@scene(steady_poll=30)
async def test_a_scope_stays_as_long_as_a_machine_of_it_does(stage: Scene) -> None:
    await stage.look("u1")
    await asyncio.sleep(2 * KEPT_WITH_HOSTS)
    assert named(stage) == {"fake/a"}
    stage.directory.forget("u1")
    await asyncio.sleep(KEPT + 60)
    assert named(stage) == set()
    stage.directory.submit(create("u1"))
    await stage.settled()
    await until(lambda: "u1" in stage.changed)
    assert named(stage) == {"fake/a"}, "it comes back as it went"


@scene(steady_poll=30)
async def test_one_that_shows_a_host_of_nobody_stays_for_a_day(stage: Scene) -> None:
    """It may be an orphan, which is to be told of."""
    stage.cloud.hosts["lost"] = Host("h", "lost", "lost", "fake://lost", HostState.RUNNING, "h1")
    await stage.look("u1")
    stage.directory.forget("u1")
    await asyncio.sleep(10 * KEPT)
    assert named(stage) == {"fake/a"}
    await asyncio.sleep(KEPT_WITH_HOSTS)
    assert named(stage) == set()


@scene(steady_poll=30)
async def test_scopes_that_were_asked_about_configs_alone_go_too(stage: Scene) -> None:
    for number in range(20):
        stage.directory.shape({**CONFIG, "zone": f"z{number}"}, "default")
    await stage.directory.shapes_are_known()
    await asyncio.sleep(KEPT + 60)
    stage.directory.shape(CONFIG, "default")
    assert {key.scope for key in stage.directory._unlisted} == {"a"}
