"""Provider calls: one a Machine, within limits, backing off as the class of the error has it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from controllers.kernel.actions import UpdateHost
from controllers.kernel.view import HostNeed, HostPresent
from providers.base.contract import Host, HostState, InProgress, NeedsDrain
from providers.base.errors import ErrorClass, ProviderError
from tests.runtime.cloud_scene import (
    CONFIG,
    Scene,
    create,
    delete,
    error,
    ref,
    request,
    scene,
)
from tests.runtime.virtual_time import now


@scene()
async def test_a_machine_has_one_call_at_a_time(stage: Scene) -> None:
    assert stage.directory.submit(create())
    assert not stage.directory.submit(create())
    await stage.settled()
    assert stage.cloud.calls.count("create u1") == 1


@scene()
async def test_a_process_that_leads_no_more_changes_no_host(stage: Scene) -> None:
    stage.leads = False
    stage.directory.submit(create())
    stage.directory.submit(delete(Host("h", "d", "d", "fake://d", HostState.RUNNING, "h1")))
    await stage.settled()
    assert set(stage.cloud.calls) <= {"list"}
    assert stage.cloud.hosts == {}


@scene(calls_at_once=1)
async def test_deletes_go_before_creates(stage: Scene) -> None:
    for number in range(3):
        stage.directory.submit(create(f"c{number}"))
    stage.directory.submit(delete(Host("h", "d", "d", "fake://d", HostState.RUNNING, "h1")))
    await stage.settled()
    assert [call for call in stage.cloud.calls if call != "list"] == ["create c0", "delete d", "create c1", "create c2"]


@scene(calls_at_once=3)
async def test_no_more_calls_run_at_once_than_allowed(stage: Scene) -> None:
    for number in range(10):
        stage.directory.submit(create(f"u{number}"))
    stage.cloud.most = 0
    await stage.settled()
    assert stage.cloud.most <= 4, "three calls and one list"


@scene(calls_per_second=10, burst=1)
async def test_calls_are_paced(stage: Scene) -> None:
    began = now()
    for number in range(21):
        stage.directory.submit(create(f"u{number}"))
    await stage.settled()
    assert now() - began == pytest.approx(2.0, abs=0.2)


@scene(hosts_in_flight=2)
async def test_no_more_hosts_come_up_at_once_than_allowed(stage: Scene) -> None:
    stage.cloud.born = HostState.PENDING
    for number in range(4):
        stage.directory.submit(create(f"u{number}"))
    await asyncio.sleep(5)
    assert sorted(stage.cloud.hosts) == ["u0", "u1"]
    waiting = stage.directory.look(HostNeed("u3", CONFIG, 60.0))
    assert waiting is not None
    assert waiting.in_flight == "create"
    assert "may at once (--hosts-in-flight)" in waiting.queued
    for uid in ("u0", "u1"):
        stage.cloud.hosts[uid] = replace(stage.cloud.hosts[uid], state=HostState.RUNNING)
    await asyncio.sleep(5)
    assert sorted(stage.cloud.hosts) == ["u0", "u1", "u2", "u3"]
    made = stage.directory.look(HostNeed("u3", CONFIG, 60.0))
    assert made is not None
    assert made.queued == ""


@scene(calls_at_once=1)
async def test_a_call_that_was_withdrawn_in_time_is_never_made(stage: Scene) -> None:
    stage.directory.submit(create("first"))
    stage.directory.submit(create("second"))
    stage.directory.withdraw("second")
    await stage.settled()
    assert "create second" not in stage.cloud.calls


@scene()
async def test_a_failed_call_waits_longer_each_time_and_is_not_made_before(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.QUOTA_EXCEEDED)] * 3
    pauses = []
    for _ in range(3):
        assert stage.directory.submit(create())
        await stage.settled()
        attempt = (await stage.look(spec_hash="h1")).attempt
        assert attempt is not None
        assert not stage.directory.submit(create()), "its time has not come"
        pauses.append((attempt.retry_at - stage.clock()).total_seconds())
        await asyncio.sleep(pauses[-1] + 0.1)
    assert [attempt.failures, attempt.error_class, attempt.call] == [3, ErrorClass.QUOTA_EXCEEDED, "create"]
    for pause, want in zip(pauses, [30, 60, 120], strict=True):
        assert want * 0.75 <= pause <= want * 1.25


@scene()
async def test_a_call_that_got_further_is_waited_for_as_if_it_had_failed_for_the_first_time(stage: Scene) -> None:
    further = ProviderError(ErrorClass.INTERNAL, "half of it is made", progressed=True)
    stage.cloud.errors["create"] = [error(ErrorClass.INTERNAL), error(ErrorClass.INTERNAL), further]
    failures = []
    for _ in range(3):
        assert stage.directory.submit(create())
        await stage.settled()
        attempt = (await stage.look(spec_hash="h1")).attempt
        assert attempt is not None
        failures.append(attempt.failures)
        await asyncio.sleep((attempt.retry_at - stage.clock()).total_seconds() + 0.1)
    assert failures == [1, 2, 1]


@scene()
async def test_another_spec_starts_afresh_after_a_failure(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.INVALID_CONFIGURATION)]
    stage.directory.submit(create(spec_hash="bad"))
    await stage.settled()
    assert (await stage.look(spec_hash="bad")).attempt is not None
    assert (await stage.look(spec_hash="good")).attempt is None
    assert stage.directory.submit(create(spec_hash="good"))


@scene()
async def test_success_clears_the_attempt(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.CONFLICT)]
    stage.directory.submit(create())
    await stage.settled()
    await asyncio.sleep(2)
    stage.directory.submit(create())
    await stage.settled()
    assert (await stage.look(spec_hash="h1")).attempt is None


@scene(call_timeout=5.0)
async def test_a_call_that_never_answers_times_out(stage: Scene) -> None:
    await stage.look()
    stage.cloud.takes = 1000
    stage.directory.submit(create())
    await asyncio.sleep(6)
    reads = await stage.look(spec_hash="h1")
    assert reads.attempt is not None
    assert reads.attempt.error_class is ErrorClass.TIMEOUT


@scene()
async def test_a_bug_in_a_provider_is_an_internal_error_without_its_text(stage: Scene) -> None:
    stage.cloud.errors["create"] = [ValueError("password=hunter2")]
    stage.directory.submit(create())
    await stage.settled()
    attempt = (await stage.look(spec_hash="h1")).attempt
    assert attempt is not None
    assert attempt.error_class is ErrorClass.INTERNAL
    assert "hunter2" not in attempt.message


@scene()
async def test_an_error_of_the_whole_scope_pauses_all_its_calls_and_says_why(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.UNAUTHORIZED)] * 50
    for number in range(5):
        stage.directory.submit(create(f"u{number}"))
        await asyncio.sleep(0.05)
    await stage.settled()
    assert stage.cloud.calls.count("create u4") == 0, "one more would have failed alike"
    attempt = (await stage.look("u4", spec_hash="h1")).attempt
    assert attempt is not None
    assert attempt.error_class is ErrorClass.UNAUTHORIZED
    assert "pause" in attempt.message


@scene()
async def test_after_a_pause_one_call_probes_and_its_success_lets_all_go(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.UNAVAILABLE)]
    stage.directory.submit(create("u0"))
    await stage.settled()
    await asyncio.sleep(10)
    for number in range(5):
        assert stage.directory.submit(create(f"u{number}"))
    await asyncio.sleep(0)
    assert sum(call.startswith("create") for call in stage.cloud.calls) == 2, "the failed one and the probe"
    await stage.settled()
    assert len(stage.cloud.hosts) == 5


@scene()
async def test_a_pause_that_the_provider_asks_for_is_kept(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.RATE_LIMITED, retry_after=90)]
    stage.directory.submit(create())
    await stage.settled()
    attempt = (await stage.look(spec_hash="h1")).attempt
    assert attempt is not None
    assert (attempt.retry_at - stage.clock()).total_seconds() >= 89


@scene()
async def test_scopes_do_not_hurt_each_other(stage: Scene) -> None:
    stage.cloud.errors["create"] = [error(ErrorClass.UNAUTHORIZED)]
    stage.directory.submit(create("u0"))
    await stage.settled()
    assert stage.directory.submit(create("u1", zone="b"))
    await stage.settled()
    assert list(stage.clouds["b"].hosts) == ["u1"]


@scene()
async def test_an_answer_to_update_belongs_to_the_spec_it_was_given_for(stage: Scene) -> None:
    stage.directory.submit(create())
    await stage.settled()
    host = stage.cloud.hosts["u1"]
    stage.cloud.answer = NeedsDrain("it restarts")
    stage.directory.submit(UpdateHost(ref(), request(spec_hash="h2"), host, False, "why"))
    await stage.settled()
    reads = await stage.look(spec_hash="h2")
    assert reads.answer == NeedsDrain("it restarts")
    assert reads.answered_at is not None
    assert (await stage.look(spec_hash="h3")).answer is None


@scene(busy_poll=1000)
async def test_an_update_that_is_done_shows_in_the_host_at_once(stage: Scene) -> None:
    stage.directory.submit(create())
    await stage.settled()
    stage.directory.submit(UpdateHost(ref(), request(spec_hash="h2"), stage.cloud.hosts["u1"], False, "why"))
    await stage.settled()
    reads = await stage.look(fresh=60, spec_hash="h2")
    assert isinstance(reads.host, HostPresent)
    assert reads.host.host.spec_hash == "h2"


@scene()
async def test_an_update_in_progress_can_be_asked_about_again(stage: Scene) -> None:
    stage.directory.submit(create())
    await stage.settled()
    stage.cloud.answer = InProgress(3.0)
    for _ in range(2):
        assert stage.directory.submit(UpdateHost(ref(), request(spec_hash="h2"), stage.cloud.hosts["u1"], False, "why"))
        await stage.settled()
    assert stage.cloud.calls.count("update u1") == 2


@scene()
async def test_a_stop_lets_running_calls_end_and_starts_no_more(stage: Scene) -> None:
    stage.cloud.takes = 3
    stage.directory.submit(create())
    await asyncio.sleep(1)
    await stage.directory.close(grace=10)
    assert list(stage.cloud.hosts) == ["u1"]
    assert not stage.directory.submit(create("u2"))
