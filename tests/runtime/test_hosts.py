"""What is known of hosts: one shared list, fresh enough for all who ask, and never "absent" without proof."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.view import HostAbsent, HostNeed, HostPresent, HostUnknown
from providers.base.contract import ConfigKind, Host, HostState, Registration
from providers.base.errors import ErrorClass
from providers.base.registry import Registry
from tests.runtime.cloud_scene import (
    CONFIG,
    SCHEMA,
    FakeCloud,
    Scene,
    create,
    delete,
    error,
    scene,
    scope_of,
    until,
)
from tests.runtime.virtual_time import now


@scene()
async def test_many_machines_share_one_list(stage: Scene) -> None:
    reads = await asyncio.gather(*(stage.look(f"u{number}") for number in range(100)))
    assert all(read.host == HostAbsent() for read in reads)
    assert stage.cloud.lists() == 1


@scene(steady_poll=1000)
async def test_a_list_that_is_too_old_is_taken_anew(stage: Scene) -> None:
    await stage.look(fresh=5)
    await asyncio.sleep(10)
    await stage.look(fresh=100)
    assert stage.cloud.lists() == 1
    await stage.look(fresh=5)
    assert stage.cloud.lists() == 2


@scene(steady_poll=1000)
async def test_a_machine_whose_turn_comes_late_is_content_with_the_list_it_has_asked_for(stage: Scene) -> None:
    need = HostNeed("late", CONFIG, 1.0)
    assert stage.directory.look(need) is None
    await asyncio.sleep(20)
    assert stage.directory.look(need) is not None, "else many Machines would starve each other"
    assert stage.cloud.lists() == 1
    await asyncio.sleep(2)
    assert stage.directory.look(need) is None, "but that holds for one look"


@scene()
async def test_a_created_host_is_present_before_any_list_shows_it(stage: Scene) -> None:
    await stage.look()
    assert stage.directory.submit(create())
    assert stage.directory.look(HostNeed("u1", CONFIG, 5.0)).in_flight == "create"  # type: ignore[union-attr]
    await stage.settled()
    reads = stage.directory.look(HostNeed("u1", CONFIG, 5.0))
    assert reads is not None
    assert isinstance(reads.host, HostPresent)
    assert reads.in_flight == ""
    assert "u1" in stage.changed


@scene()
async def test_a_list_that_was_begun_before_the_create_does_not_hide_its_host(stage: Scene) -> None:
    stage.cloud.takes = 1.0
    first = asyncio.create_task(stage.look("other"))
    await asyncio.sleep(0.5)
    stage.cloud.takes = 0.01
    stage.directory.submit(create())
    await stage.settled()
    await first
    assert isinstance((await stage.look(fresh=60)).host, HostPresent)


@scene(busy_poll=1000, steady_poll=1000)
async def test_a_host_is_absent_only_by_a_list_begun_after_the_last_call(stage: Scene) -> None:
    await stage.look()
    stage.cloud.errors["create"] = [error(ErrorClass.TIMEOUT)]
    stage.directory.submit(create())
    await stage.settled()
    assert stage.directory.look(HostNeed("u1", CONFIG, 1000.0)) is None, "the call may have worked: list first"
    assert isinstance((await stage.look(fresh=1000)).host, HostAbsent)


@scene()
async def test_a_deleted_host_is_there_until_a_list_no_longer_shows_it(stage: Scene) -> None:
    stage.directory.submit(create())
    await stage.settled()
    reads = await stage.look()
    assert isinstance(reads.host, HostPresent)
    host = reads.host.host
    stage.directory.submit(delete(host))
    await stage.settled()
    reads = await stage.look(fresh=60)
    assert isinstance(reads.host, HostPresent)
    assert reads.host.host.state is HostState.DELETING
    stage.changed.clear()
    await until(lambda: "u1" in stage.changed)
    assert isinstance((await stage.look()).host, HostAbsent)


@scene()
async def test_what_was_half_made_is_no_host_but_goes_along_in_what_is_read(stage: Scene) -> None:
    left = stage.cloud.hosts["u1"] = Host("remains-u1", "u1", "m", "", HostState.UNFINISHED, "")
    assert (await stage.look()).host == HostAbsent(left)
    assert (await stage.look(config=None)).host == HostAbsent(left), "wherever it is"
    stage.cloud.errors["create"] = [error(ErrorClass.INTERNAL)]
    stage.directory.submit(create())
    await stage.settled()
    lists = stage.cloud.lists()
    assert (await stage.look()).host == HostAbsent(left)
    assert stage.cloud.lists() > lists, "only a list begun after the call can tell"


@scene()
async def test_a_delete_that_finds_nothing_has_succeeded(stage: Scene) -> None:
    stage.cloud.errors["delete"] = [error(ErrorClass.NOT_FOUND)]
    stage.directory.submit(delete(Host("h", "u1", "u1", "fake://u1", HostState.RUNNING, "h1")))
    await stage.settled()
    assert (await stage.look()).attempt is None


@scene()
async def test_a_provider_that_can_not_be_asked_gives_unknown_and_never_absent(stage: Scene) -> None:
    stage.cloud.errors["list"] = [error(ErrorClass.UNAVAILABLE)] * 3
    reads = await stage.look()
    assert isinstance(reads.host, HostUnknown)
    assert "scripted Unavailable" in reads.host.why
    stage.changed.clear()
    await until(lambda: "u1" in stage.changed)
    assert isinstance((await stage.look()).host, HostAbsent), "whoever was told unknown is told when it is known"


@scene(patience=2.0)
async def test_a_list_that_hangs_does_not_hold_rounds_back(stage: Scene) -> None:
    stage.cloud.takes = 30
    began = now()
    reads = await stage.look()
    assert isinstance(reads.host, HostUnknown)
    assert now() - began == pytest.approx(2.0, abs=0.1)


@scene(list_timeout=5.0)
async def test_a_list_that_never_answers_times_out(stage: Scene) -> None:
    stage.cloud.takes = 1000
    await stage.look()
    await asyncio.sleep(5)
    reads = await stage.look()
    assert isinstance(reads.host, HostUnknown)
    assert "no list within 5 s" in reads.host.why


@scene()
async def test_changes_that_the_list_shows_wake_the_machine(stage: Scene) -> None:
    stage.cloud.born = HostState.PENDING
    stage.directory.submit(create())
    await stage.settled()
    stage.changed.clear()
    stage.cloud.hosts["u1"] = replace(stage.cloud.hosts["u1"], state=HostState.RUNNING)
    await until(lambda: "u1" in stage.changed)
    reads = await stage.look(fresh=60)
    assert isinstance(reads.host, HostPresent)
    assert reads.host.host.state is HostState.RUNNING


@scene(steady_poll=30)
async def test_a_host_that_vanishes_is_noticed_though_nothing_else_happens(stage: Scene) -> None:
    stage.directory.submit(create())
    await stage.settled()
    await asyncio.sleep(5)
    stage.changed.clear()
    stage.cloud.hosts.clear()
    await asyncio.sleep(31)
    assert "u1" in stage.changed
    assert isinstance((await stage.look(fresh=60)).host, HostAbsent)


@scene(busy_poll=0.5, steady_poll=30)
async def test_lists_are_rare_while_nothing_changes_and_often_while_hosts_come_up(stage: Scene) -> None:
    await stage.look()
    before = stage.cloud.lists()
    await asyncio.sleep(300)
    assert 9 <= stage.cloud.lists() - before <= 10
    stage.cloud.born = HostState.PENDING
    stage.directory.submit(create())
    await stage.settled()
    before = stage.cloud.lists()
    await asyncio.sleep(10)
    assert stage.cloud.lists() - before >= 15


@scene(poll_share=1.0, busy_poll=0.5)
async def test_a_slow_provider_is_not_kept_busy_with_lists(stage: Scene) -> None:
    stage.cloud.born = HostState.PENDING
    stage.directory.submit(create())
    await stage.settled()
    stage.cloud.takes = 5.0
    before = stage.cloud.lists()
    await asyncio.sleep(100)
    assert stage.cloud.lists() - before <= 11


@scene()
async def test_a_config_that_breaks_its_schema_names_the_field_below_spec(stage: Scene) -> None:
    reads = await stage.look(config={**CONFIG, "size": "big"}, config_path="providerSpec.value")
    assert [problem.path for problem in reads.problems] == ["providerSpec.value.size"]
    assert reads.host == HostAbsent(), "where it would be is known all the same, so it can be deleted"


@scene()
async def test_a_config_is_checked_for_nobodys_host_without_a_call(stage: Scene) -> None:
    """A MachineClass that no Machine uses may name an account for which there are no credentials."""
    reads = stage.directory.look(HostNeed("", {**CONFIG, "size": "big"}, 0.0, config_path="providerSpec"))
    assert reads is not None
    assert [problem.path for problem in reads.problems] == ["providerSpec.size"]
    await asyncio.sleep(60)
    assert stage.cloud.calls == []
    assert stage.directory.lists() == ()


@scene()
async def test_a_host_whose_config_was_edited_to_another_scope_is_still_found(stage: Scene) -> None:
    stage.directory.submit(create())
    await stage.settled()
    await stage.look()
    reads = await stage.look(config={**CONFIG, "zone": "b"})
    assert isinstance(reads.host, HostPresent)


@scene()
async def test_without_a_config_every_known_scope_is_searched(stage: Scene) -> None:
    stage.clouds["b"] = FakeCloud()
    stage.clouds["b"].hosts["u9"] = Host("h", "u9", "u9", "fake://u9", HostState.RUNNING, "h1")
    await stage.look("u1")
    await stage.look("u2", config={**CONFIG, "zone": "b"})
    reads = await stage.look("u9", config=None)
    assert isinstance(reads.host, HostPresent)
    assert (await stage.look("u7", config=None)).host == HostAbsent()


@scene()
async def test_without_a_config_an_unreachable_scope_makes_it_unknown(stage: Scene) -> None:
    await stage.look("u1")
    stage.clouds["b"] = FakeCloud()
    stage.clouds["b"].errors["list"] = [error(ErrorClass.UNAVAILABLE)] * 99
    await stage.look("u2", config={**CONFIG, "zone": "b"})
    assert isinstance((await stage.look("u9", config=None)).host, HostUnknown)


@scene()
async def test_a_machine_whose_config_was_never_good_can_go_in_an_empty_world(stage: Scene) -> None:
    reads = await stage.look(config={"apiVersion": "typo.dev/v1", "kind": "Fake"})
    assert reads.host == HostAbsent()
    assert "typo.dev/v1" in reads.problems[0].message


@scene()
async def test_two_hosts_of_one_machine_are_shown_as_one_and_reported(stage: Scene) -> None:
    twin = Host("h-twin", "u1", "u1", "fake://twin", HostState.DELETING, "h1")
    stage.cloud.hosts["u1"] = replace(twin, id="h-first", state=HostState.RUNNING)
    stage.cloud.hosts["twin"] = twin
    reads = await stage.look()
    assert isinstance(reads.host, HostPresent)
    assert reads.host.host.id == "h-first"


@scene()
async def test_a_provider_that_can_not_be_opened_is_tried_again(stage: Scene) -> None:
    opened = stage._open
    failures = [error(ErrorClass.UNAUTHORIZED)]

    def open_provider(scope: str, config: Mapping[str, Any]) -> FakeCloud:
        if failures:
            raise failures.pop()
        return opened(scope, config)

    registration = Registration("fake", (ConfigKind("fake.dev/v1", "Fake", SCHEMA),), scope_of, open_provider)  # type: ignore[arg-type]
    stage.directory._registry = Registry.of(registration)
    assert isinstance((await stage.look()).host, HostUnknown)
    stage.changed.clear()
    await until(lambda: "u1" in stage.changed)
    assert (await stage.look()).host == HostAbsent()
