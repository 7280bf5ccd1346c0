"""Hosts: one shared list, calls within limits, back-off by class, and never "absent" without proof."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controllers.kernel.actions import CreateHost, DeleteHost, UpdateHost
from controllers.kernel.refs import MACHINE, Key, Ref
from controllers.kernel.view import HostAbsent, HostNeed, HostPresent, HostReads, HostUnknown
from nodewright.runtime.hosts.directory import HostDirectory
from nodewright.runtime.hosts.options import HostOptions
from providers.base.contract import (
    ConfigKind,
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    InProgress,
    NeedsDrain,
    Registration,
    UpdateAnswer,
    Updated,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.base.registry import Registry
from tests.runtime.virtual_time import now, virtual_time

CONFIG = {"apiVersion": "fake.dev/v1", "kind": "Fake", "zone": "a"}
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}, "size": {"type": "integer"}}}
START = datetime(2026, 6, 1, tzinfo=UTC)


class FakeCloud:
    """A provider whose hosts are a dict; ``errors[call]`` are raised in order; ``gate`` holds calls back."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.calls: list[str] = []
        self.errors: dict[str, list[Exception | None]] = {}
        self.takes = 0.01
        self.running = self.most = 0
        self.answer: UpdateAnswer = Updated()
        self.born = HostState.RUNNING

    async def _call(self, name: str, what: str = "") -> None:
        self.calls.append(f"{name} {what}".strip())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.running -= 1
        script = self.errors.get(name)
        error = script.pop(0) if script else None
        if error is not None:
            raise error

    async def create(self, request: HostRequest) -> Host:
        uid = request.identity.machine_uid
        await self._call("create", uid)
        host = Host(f"h-{uid}", uid, uid, f"fake://{uid}", self.born, request.spec_hash)
        return self.hosts.setdefault(uid, host)

    async def delete(self, host: Host) -> None:
        await self._call("delete", host.machine_uid)
        self.hosts.pop(host.machine_uid, None)

    async def list(self) -> tuple[Host, ...]:
        seen = tuple(self.hosts.values())
        await self._call("list")
        return seen

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        await self._call("update", host.machine_uid)
        return self.answer

    def lists(self) -> int:
        return self.calls.count("list")


def scope_of(config: Mapping[str, Any]) -> str:
    return str(config.get("zone", "default"))


class Scene:
    def __init__(self, **options: Any) -> None:
        self.clouds: dict[str, FakeCloud] = {}
        registration = Registration("fake", (ConfigKind("fake.dev/v1", "Fake", SCHEMA),), scope_of, self._open)  # type: ignore[arg-type]
        self.began = now()
        self.directory = HostDirectory(Registry.of(registration), HostOptions(**options), self.clock, seed=1)
        self.changed: list[str] = []
        self.directory.listen(self.changed.append)

    @property
    def cloud(self) -> FakeCloud:
        return self.clouds.setdefault("a", FakeCloud())

    def _open(self, scope: str, _config: Mapping[str, Any]) -> FakeCloud:
        return self.clouds.setdefault(scope, FakeCloud())

    def clock(self) -> datetime:
        return START + timedelta(seconds=now() - self.began)

    async def look(self, uid: str = "u1", fresh: float = 5.0, **need: Any) -> HostReads:
        """Look, and wait for the list if the directory asks to."""
        wanted = HostNeed(uid, need.pop("config", CONFIG), fresh, **need)
        while (reads := self.directory.look(wanted)) is None:
            self.changed.clear()
            await _until(lambda: uid in self.changed)
        return reads

    async def settled(self) -> None:
        await _until(lambda: not self.directory.busy)


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never happened")


def scene(**options: Any) -> Callable[[Callable[[Scene], Awaitable[None]]], Callable[[], None]]:
    """A test on a Scene, in virtual time."""

    def decorate(test: Callable[[Scene], Awaitable[None]]) -> Callable[[], None]:
        @virtual_time
        async def run() -> None:
            stage = Scene(**options)
            try:
                await test(stage)
            finally:
                await stage.directory.close(grace=0.0)

        def plain() -> None:
            run()

        plain.__name__, plain.__doc__ = test.__name__, test.__doc__
        return plain

    return decorate


def request(uid: str = "u1", spec_hash: str = "h1", **config: Any) -> HostRequest:
    return HostRequest(HostIdentity(uid, "default", uid), {**CONFIG, **config}, spec_hash)


def ref(uid: str = "u1") -> Ref:
    return Ref(MACHINE, Key("default", uid), uid)


def create(uid: str = "u1", spec_hash: str = "h1", **config: Any) -> CreateHost:
    return CreateHost(ref(uid), request(uid, spec_hash, **config), "why")


def delete(host: Host) -> DeleteHost:
    uid = host.machine_uid
    return DeleteHost(ref(uid), HostIdentity(uid, "default", uid), host, CONFIG, "why")


def error(error_class: ErrorClass, retry_after: float | None = None) -> ProviderError:
    return ProviderError(error_class, f"scripted {error_class}", retry_after)


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
    await _until(lambda: "u1" in stage.changed)
    assert isinstance((await stage.look()).host, HostAbsent)


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
    await _until(lambda: "u1" in stage.changed)
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
    await _until(lambda: "u1" in stage.changed)
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
async def test_a_machine_has_one_call_at_a_time(stage: Scene) -> None:
    assert stage.directory.submit(create())
    assert not stage.directory.submit(create())
    await stage.settled()
    assert stage.cloud.calls.count("create u1") == 1


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
    assert stage.directory.look(HostNeed("u3", CONFIG, 60.0)).in_flight == "create"  # type: ignore[union-attr]
    for uid in ("u0", "u1"):
        stage.cloud.hosts[uid] = replace(stage.cloud.hosts[uid], state=HostState.RUNNING)
    await asyncio.sleep(5)
    assert sorted(stage.cloud.hosts) == ["u0", "u1", "u2", "u3"]


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
async def test_a_config_that_breaks_its_schema_names_the_field_below_spec(stage: Scene) -> None:
    reads = await stage.look(config={**CONFIG, "size": "big"}, config_path="providerSpec.value")
    assert [problem.path for problem in reads.problems] == ["providerSpec.value.size"]
    assert reads.host == HostAbsent(), "where it would be is known all the same, so it can be deleted"


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
    await _until(lambda: "u1" in stage.changed)
    assert (await stage.look()).host == HostAbsent()


@scene()
async def test_a_stop_lets_running_calls_end_and_starts_no_more(stage: Scene) -> None:
    stage.cloud.takes = 3
    stage.directory.submit(create())
    await asyncio.sleep(1)
    await stage.directory.close(grace=10)
    assert list(stage.cloud.hosts) == ["u1"]
    assert not stage.directory.submit(create("u2"))
