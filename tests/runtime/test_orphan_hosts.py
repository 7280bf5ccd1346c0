"""The sweeper on a directory of hosts: it tells of orphans, and removes them only where that is asked for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from api.names import LEASE_FINDINGS_ANNOTATION
from controllers.kernel.refs import MACHINE, MACHINE_CLASS, MACHINE_SET, NAMESPACE
from controllers.orphans.sweep import HostList
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.fleet.findings import Finder, findings_of, since_of
from nodewright.runtime.hosts.sweeper import Sweeper
from tests.builders import machine, machine_set
from tests.runtime.cloud_scene import CONFIG, Scene, create, scene, until
from tests.runtime.town import Town


class Followed:
    """The Machines, followed without an outage."""

    complete = True
    current_for: float | None = float("inf")


async def a_lost_host(stage: Scene, *, removes: bool, made_by: str = "here") -> tuple[Sweeper, Cache]:
    """Three hosts, one of them without a Machine, and lists again and again."""
    stage.directory.management_cluster = made_by
    cache = Cache([MACHINE])
    cache.keep_complete(MACHINE, Followed())
    cache.listed(MACHINE, [machine(f"m{n}").uid(f"u{n}").build() for n in (1, 2)], "1")
    for uid in ("u1", "u2", "lost"):
        await stage.look(uid)
        stage.directory.submit(create(uid))
    await stage.settled()
    stage.directory.management_cluster = "here"
    return Sweeper(cache, stage.directory, stage.clock, removes), cache


async def sweeps(sweeper: Sweeper, minutes: int) -> list[str]:
    """The ids of hosts that are proven orphans at the end."""
    found = sweeper.sweep()
    for _ in range(minutes):
        await asyncio.sleep(60)
        found = sweeper.sweep()
    return [orphan.host.id for orphan in found.orphans]


@scene(steady_poll=20)
async def test_an_orphan_is_told_and_left_alone(stage: Scene) -> None:
    sweeper, _ = await a_lost_host(stage, removes=False)
    assert await sweeps(sweeper, 10) == []
    assert await sweeps(sweeper, 10) == ["h-lost"]
    assert sorted(stage.cloud.hosts) == ["lost", "u1", "u2"]


@scene(steady_poll=20)
async def test_a_proven_orphan_is_published_with_its_name_and_since_when(stage: Scene) -> None:
    sweeper, _ = await a_lost_host(stage, removes=False)
    finder = Finder("0.1.0", stage.directory, stage.clock)
    finder.orphans = sweeper.orphans
    begun = stage.clock().replace(microsecond=0)
    assert findings_of(published(finder)).orphans == ()
    await sweeps(sweeper, 20)
    (found,) = findings_of(published(finder)).orphans
    assert found.what.endswith("/h-lost")
    assert begun <= (since_of(found) or begun) <= begun + timedelta(minutes=2)
    assert findings_of(published(finder)).accounts == ()


def published(finder: Finder) -> dict[str, Any]:
    return {"metadata": {"annotations": {LEASE_FINDINGS_ANNOTATION: finder.text()}}}


@scene(steady_poll=20)
async def test_an_orphan_is_removed_where_that_is_asked_for(stage: Scene) -> None:
    sweeper, _ = await a_lost_host(stage, removes=True)
    await sweeps(sweeper, 17)
    await until(lambda: sorted(stage.cloud.hosts) == ["u1", "u2"])
    assert stage.cloud.calls.count("delete lost") == 1


@scene(steady_poll=20)
async def test_a_host_that_another_cluster_made_in_the_same_account_is_left_alone(stage: Scene) -> None:
    sweeper, _ = await a_lost_host(stage, removes=True, made_by="elsewhere")
    assert await sweeps(sweeper, 20) == []
    assert len(stage.cloud.hosts) == 3


@scene(steady_poll=20)
async def test_a_host_that_was_made_before_there_were_marks_is_told_and_left_alone(stage: Scene) -> None:
    sweeper, _ = await a_lost_host(stage, removes=True, made_by="")
    assert await sweeps(sweeper, 20) == ["h-lost"]
    assert len(stage.cloud.hosts) == 3


@scene(steady_poll=20)
async def test_nothing_is_removed_when_all_machines_are_gone_from_view(stage: Scene) -> None:
    """machine-controller-manager#657: the orphan collection removed all workers while the control API was down."""
    sweeper, cache = await a_lost_host(stage, removes=True)
    cache.listed(MACHINE, [], "2")
    assert await sweeps(sweeper, 20) == []
    assert len(stage.cloud.hosts) == 3


@scene(steady_poll=20)
async def test_nothing_is_removed_while_the_api_server_is_away(stage: Scene) -> None:
    sweeper, cache = await a_lost_host(stage, removes=True)
    away = Followed()
    away.current_for = None
    cache.keep_complete(MACHINE, away)
    assert await sweeps(sweeper, 20) == []
    assert len(stage.cloud.hosts) == 3


@scene(steady_poll=20)
async def test_a_scope_that_was_never_listed_has_no_moment(stage: Scene) -> None:
    assert stage.directory.lists() == ()
    await stage.look("u1")
    (found,) = stage.directory.lists()
    assert isinstance(found, HostList)
    assert found.began is not None
    assert found.began <= stage.clock()


@scene(steady_poll=20)
async def test_the_account_of_a_set_without_machines_is_listed_and_what_is_left_there_is_told(stage: Scene) -> None:
    """A new process knows an account by Machines; the last one may be gone and its host may be not."""
    await a_lost_host(stage, removes=False)
    afresh = Scene(steady_poll=20)
    afresh.clouds = stage.clouds
    cache = Cache([MACHINE, MACHINE_SET, MACHINE_CLASS])
    cache.keep_complete(MACHINE, Followed())
    empty = machine_set("empty").replicas(0).build()
    empty["spec"]["template"]["spec"]["providerConfig"] = {"value": CONFIG}
    malformed = {**machine_set("odd").build(), "spec": {"template": "none"}}
    cache.listed(MACHINE_SET, [malformed, empty], "1")
    sweeper = Sweeper(cache, afresh.directory, afresh.clock, removes=True)
    assert await sweeps(sweeper, 20) == []
    (found,) = afresh.directory.lists()
    assert found.scope in sweeper.sweep().strange, "no Machine is known there: a person has to look"
    assert len(stage.cloud.hosts) == 3
    await afresh.directory.close()


async def test_hosts_carry_the_mark_of_the_cluster_that_made_them(town: Town) -> None:
    (system,) = [one for one in town.objects(NAMESPACE) if one["metadata"]["name"] == "kube-system"]
    for given, mark in (("", system["metadata"]["uid"]), ("mine", "mine")):
        town.options = replace(town.options, management_cluster=given)
        async with town.controllers():
            await town.machine_set(f"ms-{given or 'own'}", 1)
            await town.until(lambda: town.ready() == len(town.objects(MACHINE)) == (2 if given else 1))  # noqa: B023
        marks = {host.management_cluster for world in town.worlds.all.values() for host in world.hosts()}
        assert mark in marks
