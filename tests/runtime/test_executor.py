"""The executor: steps in order, what answers mean, and never two objects for one wish."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.actions import (
    Action,
    Create,
    CreateFromTemplate,
    CreateHost,
    Delete,
    Event,
    Evict,
    HostAction,
    Patch,
    Scale,
)
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import MACHINE, MACHINE_SET, POD, Key, Kind, Obj, Ref, guessed_kind, intent_of
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.writes.evictions import EvictionPace
from nodewright.runtime.writes.executor import APITarget, Executor, ExecutorDeps
from providers.base.contract import HostIdentity, HostRequest
from tests.builders.clock import NOW

MS = Ref(MACHINE_SET, Key("default", "ms"), "uid-ms")
M1 = Ref(MACHINE, Key("default", "m-1"), "uid-m-1")
NOT_FOUND = ApiError(404, "NotFound", "gone")
CONFLICT = ApiError(409, "Conflict", "changed")
EXISTS = ApiError(409, "AlreadyExists", "there")
SILENCE = NoAnswer("cut", sent=True)


def _machine(name: str, owner: str = "uid-ms", **meta: Any) -> dict[str, Any]:
    references = [{"uid": owner, "controller": True, "kind": "MachineSet", "name": "ms"}]
    return {
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": references, **meta},
    }


class FakeApi:
    """Answers by script: ``fails[verb]`` is raised in order, None means success. Remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.scaled_at: list[str] = []
        self.fails: dict[str, list[Exception | None]] = {}
        self.existing: dict[str, Any] = {}
        self.running = self.most = 0
        self.answer: dict[str, Any] | None = None
        self.version = 100

    async def _ask(self, verb: str, name: str) -> None:
        self.asked.append(f"{verb} {name}")
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        script = self.fails.get(verb)
        error = script.pop(0) if script else None
        if error is not None:
            raise error

    def _written(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        self.version += 1
        meta = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": str(self.version), **obj["metadata"]}
        return {**obj, "metadata": meta}

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        await self._ask("get", key.name)
        return self._written(self.existing)

    async def create(self, kind: Kind, body: Obj) -> dict[str, Any]:
        await self._ask("create", body["metadata"]["name"])
        return self._written(body)

    async def merge_patch(
        self, target: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = ""
    ) -> dict[str, Any]:
        await self._ask("patch", target.key.name)
        return self._written({"metadata": {"name": target.key.name, "namespace": "default"}, **patch})

    async def scale(self, target: Ref, replicas: int, resource_version: str = "") -> dict[str, Any]:
        self.scaled_at.append(resource_version)
        await self._ask("scale", f"{target.key.name} to {replicas}")
        return {"kind": "Scale"}

    async def delete(
        self,
        target: Ref,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        resource_version: str = "",
    ) -> dict[str, Any]:
        how = "" if grace_seconds is None else f" within {grace_seconds} s"
        await self._ask("delete", target.key.name + how + (f" at {resource_version}" if resource_version else ""))
        return self.answer or {"kind": "Status", "status": "Success"}

    async def evict(self, target: Ref, grace_seconds: int | None = None) -> dict[str, Any]:
        await self._ask("evict", target.key.name + ("" if grace_seconds is None else f" within {grace_seconds} s"))
        return {"kind": "Status", "status": "Success"}


class Scene:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.cache = Cache([MACHINE, MACHINE_SET, POD])
        self.hosts: list[HostAction] = []
        self.events: list[tuple[Event, int]] = []
        executor_deps = ExecutorDeps(self.api, self.cache, self._submit, self._record, lambda: NOW)
        self.executor = Executor("tests", executor_deps, at_once=4)

    def _submit(self, action: HostAction) -> bool:
        self.hosts.append(action)
        return True

    def _record(self, event: Event) -> None:
        self.events.append((event, len(self.api.asked)))

    async def run(self, *groups: list[Action]) -> Any:
        return await self.executor.execute(Plan(steps(*groups)))

    def cached(self, name: str) -> Obj | None:
        return self.cache.stores[MACHINE].get(Key("default", name))


def create(name: str) -> Create:
    return Create(MACHINE, _machine(name), "wanted")


async def test_the_next_step_begins_only_when_the_one_before_has_succeeded() -> None:
    scene = Scene()
    result = await scene.run([Patch(MS, {"status": {}}, "reserve", "status")], [create("m-1"), create("m-2")])
    assert result.ok
    assert scene.api.asked == ["patch ms", "create m-1", "create m-2"]


async def test_after_a_failed_step_nothing_more_is_done_but_its_siblings_are_not_cut_off() -> None:
    scene = Scene()
    scene.api.fails["create"] = [ApiError(422, "Invalid", "no"), None]
    result = await scene.run([create("m-1"), create("m-2")], [create("m-3")])
    assert [failure.action for failure in result.failures] == [create("m-1")]
    assert scene.api.asked == ["create m-1", "create m-2"]


async def test_actions_of_a_step_run_side_by_side_within_the_bound() -> None:
    scene = Scene()
    await scene.run([create(f"m-{number}") for number in range(20)])
    assert scene.api.most == 4
    assert len(scene.api.asked) == 20


async def test_what_was_written_is_in_the_cache_at_once() -> None:
    scene = Scene()
    await scene.run([create("m-1")])
    assert scene.cached("m-1") is not None


async def test_an_object_that_exists_with_our_owner_counts_as_created() -> None:
    scene = Scene()
    scene.api.fails["create"] = [EXISTS]
    scene.api.existing = _machine("m-1")
    result = await scene.run([create("m-1")])
    assert result.ok
    assert scene.cached("m-1") is not None, "the cache must show it, else it would be created for ever"


async def test_an_object_that_exists_with_another_owner_is_a_failure() -> None:
    scene = Scene()
    scene.api.fails["create"] = [EXISTS]
    scene.api.existing = _machine("m-1", owner="somebody-else")
    result = await scene.run([create("m-1")])
    assert not result.ok


@pytest.mark.parametrize("error", [SILENCE, ApiError(504, "Timeout", "?"), ApiError(500, "InternalError", "?")])
async def test_a_create_without_a_clear_answer_stays_unresolved_until_the_server_says(error: Exception) -> None:
    scene = Scene()
    scene.api.fails["create"] = [error, SILENCE, EXISTS]
    scene.api.existing = _machine("m-1")
    result = await scene.run([create("m-1")], [create("m-2")])
    assert result.unresolved == [create("m-1")]
    assert (await scene.executor.resolve(result.unresolved)).unresolved == [create("m-1")]
    assert (await scene.executor.resolve(result.unresolved)).ok
    assert set(scene.api.asked) == {"create m-1", "get m-1"}, "the same name each time, and nothing else"


@pytest.mark.parametrize("error", [CONFLICT, NOT_FOUND])
async def test_a_patch_of_what_has_changed_or_gone_only_shows_that_the_view_was_old(error: ApiError) -> None:
    scene = Scene()
    scene.api.fails["patch"] = [error]
    result = await scene.run([Patch(M1, {}, "why", resource_version="1")])
    assert [failure.stale for failure in result.failures] == [True]


async def test_a_patch_of_what_is_gone_takes_it_out_of_the_cache() -> None:
    scene = Scene()
    scene.cache.listed(MACHINE, [{"metadata": {"name": "m-1", "namespace": "default", "uid": "uid-m-1"}}], "50")
    scene.api.fails["patch"] = [NOT_FOUND]
    await scene.run([Patch(M1, {}, "why")])
    assert scene.cached("m-1") is None


async def test_deleting_what_is_gone_is_done() -> None:
    scene = Scene()
    scene.api.fails["delete"] = [NOT_FOUND]
    assert (await scene.run([Delete(M1, "why")])).ok


async def test_deleting_what_a_namesake_has_replaced_is_done_and_spares_the_namesake() -> None:
    scene = Scene()
    scene.cache.listed(MACHINE, [_machine("m-1", uid="new", resourceVersion="60")], "60")
    scene.api.fails["delete"] = [CONFLICT]
    scene.api.existing = _machine("m-1", uid="new")
    assert (await scene.run([Delete(M1, "why")])).ok
    assert scene.cached("m-1") is not None


async def test_a_delete_that_is_refused_for_another_reason_is_not_done() -> None:
    scene = Scene()
    scene.api.fails["delete"] = [CONFLICT]
    scene.api.existing = _machine("m-1", uid="uid-m-1")
    assert not (await scene.run([Delete(M1, "why")])).ok


async def test_a_delete_that_is_meant_for_one_state_of_the_object_says_which() -> None:
    scene = Scene()
    await scene.run([Delete(M1, "why", resource_version="60")])
    assert scene.api.asked == ["delete m-1 at 60"]


async def test_a_deletion_that_waits_for_finalizers_is_seen_at_once() -> None:
    scene = Scene()
    scene.cache.listed(MACHINE, [_machine("m-1", uid="uid-m-1", resourceVersion="60")], "60")
    going = _machine("m-1", uid="uid-m-1", resourceVersion="70", deletionTimestamp="2026-06-01T12:00:00Z")
    scene.api.answer = going
    await scene.run([Delete(M1, "why")])
    cached = scene.cached("m-1")
    assert cached is not None
    assert cached["metadata"]["deletionTimestamp"]


async def test_an_eviction_that_a_budget_refuses_is_no_failure() -> None:
    scene = Scene()
    scene.api.fails["evict"] = [ApiError(429, "TooManyRequests", "budget")]
    assert (await scene.run([Evict(Ref(POD, Key("ns", "p"), "u"), "drain")])).ok


async def test_a_refused_pod_rests_while_others_are_asked_for() -> None:
    scene = Scene()
    scene.api.fails["evict"] = [ApiError(429, "TooManyRequests", "budget")]
    refused, other = (Evict(Ref(POD, Key("ns", name), f"u-{name}"), "drain") for name in ("p", "q"))
    for _ in range(3):
        assert (await scene.run([refused])).ok
    assert (await scene.run([other])).ok
    assert scene.api.asked == ["evict p", "evict q"]


async def test_a_cluster_that_is_stuck_uses_up_nobody_elses_evictions() -> None:
    home, blue, green = (FakeApi() for _ in range(3))
    executor_deps = ExecutorDeps(home, Cache([POD]), lambda _action: True, lambda _event: None, lambda: NOW)
    places = {api: APITarget(api, Cache([POD]), EvictionPace(rate=0.001, burst=2.0)) for api in (blue, green)}
    blue.fails["evict"] = [SILENCE] * 10

    async def drain(place: APITarget | None) -> None:
        pods = [Evict(Ref(POD, Key("ns", f"p-{number}"), f"u-{number}"), "drain") for number in range(10)]
        await Executor("tests", replace(executor_deps, workload=place)).execute(Plan(steps([*pods])))

    for place in (places[blue], places[blue], places[green], None):
        await drain(place)
    assert [len(api.asked) for api in (blue, green, home)] == [2, 2, 10]
    blue.fails["evict"] = [ApiError(429, "TooManyRequests", "budget")]
    rested = APITarget(blue, Cache([POD]))
    await drain(rested)
    await drain(rested)
    assert blue.asked[2:].count("evict p-0") == 1, "a rest is remembered from round to round"


async def test_pods_go_within_the_grace_that_was_decided() -> None:
    scene = Scene()
    pod = Ref(POD, Key("ns", "p"), "u")
    await scene.run([Evict(pod, "drain", 1)], [Delete(pod, "drain", grace_seconds=0)])
    assert scene.api.asked == ["evict p within 1 s", "delete p within 0 s"]


async def test_replicas_are_set_through_the_scale_subresource() -> None:
    scene = Scene()
    assert (await scene.run([Scale(MS, 5, "why")])).ok
    assert scene.api.asked == ["scale ms to 5"]


def group(version: str, **meta: Any) -> dict[str, Any]:
    """The MachineSet as the cache has it."""
    found = {"name": "ms", "namespace": "default", "uid": "uid-ms", "generation": 3, **meta}
    return {"kind": "MachineSet", "metadata": {**found, "resourceVersion": version}}


def scale_of(body: dict[str, Any]) -> Scale:
    return Scale(MS, 5, "grow", body["metadata"]["resourceVersion"], intent_of(body))


async def test_a_scale_is_sent_again_where_only_the_status_has_changed() -> None:
    """A group whose Machines come writes its status all the time."""
    scene = Scene()
    scene.api.fails["scale"] = [CONFLICT, CONFLICT, None]
    scene.cache.wrote(MACHINE_SET, group("8"))
    execution = await scene.run([scale_of(group("7"))])
    assert execution.ok
    assert scene.api.asked == ["scale ms to 5"] * 3
    assert scene.api.scaled_at == ["7", "8", "8"]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(group("8", generation=4), id="its spec"),
        pytest.param(group("8", annotations={"max": "3"}), id="its annotations"),
        pytest.param(group("8", labels={"team": "b"}), id="its labels"),
        pytest.param(group("8", deletionTimestamp="2026-06-01T00:00:00Z"), id="it is being deleted"),
        pytest.param(group("8", uid="another"), id="a namesake"),
    ],
)
async def test_a_scale_is_stale_where_something_else_is_wanted(changed: dict[str, Any]) -> None:
    scene = Scene()
    scene.api.fails["scale"] = [CONFLICT]
    scene.cache.wrote(MACHINE_SET, changed)
    (failure,) = (await scene.run([scale_of(group("7"))])).failures
    assert failure.stale
    assert scene.api.asked == ["scale ms to 5"]


async def test_a_scale_is_not_sent_for_ever() -> None:
    scene = Scene()
    scene.api.fails["scale"] = [CONFLICT] * 9
    scene.cache.wrote(MACHINE_SET, group("8"))
    (failure,) = (await scene.run([scale_of(group("7"))])).failures
    assert failure.stale
    assert len(scene.api.asked) == 5


async def test_an_event_is_recorded_after_the_write_it_speaks_of_and_not_if_that_fails() -> None:
    scene = Scene()
    said = Event(MS, "Normal", "Created", "Created 1 Machine")
    await scene.run([create("m-1")], [said])
    assert scene.events == [(said, 1)]
    scene.api.fails["create"] = [ApiError(403, "Forbidden", "quota")]
    await scene.run([create("m-2")], [said])
    assert len(scene.events) == 1


async def test_host_actions_are_handed_over_and_not_waited_for() -> None:
    scene = Scene()
    action = CreateHost(M1, HostRequest(HostIdentity("u", "default", "m-1"), {}, "h"), "why")
    assert (await scene.run([action])).ok
    assert scene.hosts == [action]
    assert scene.api.asked == []


REBOOT = CreateFromTemplate(
    guessed_kind("remedy.example.com/v1", "Reboot"),
    {"apiVersion": "remedy.example.com/v1", "kind": "Reboot", "metadata": {"name": "m-1", "namespace": "default"}},
    Ref(guessed_kind("remedy.example.com/v1", "RebootTemplate"), Key("default", "reboot")),
    "Machine m-1 is unhealthy",
)


async def test_an_object_from_a_template_is_made_after_reading_it() -> None:
    scene = Scene()
    scene.api.existing = {"metadata": {"name": "reboot"}, "spec": {"template": {"spec": {"retries": 1}}}}
    execution = await scene.run([REBOOT])
    assert execution.ok
    assert scene.api.asked == ["get reboot", "create m-1"]


async def test_a_template_that_is_missing_is_a_failure_and_an_event() -> None:
    scene = Scene()
    scene.api.fails["get"] = [NOT_FOUND]
    execution = await scene.run([REBOOT])
    assert [failure.stale for failure in execution.failures] == [False]
    assert scene.api.asked == ["get reboot"]
    ((event, _),) = scene.events
    assert (event.type, event.reason) == ("Warning", "TemplateNotFound")


async def test_an_object_from_a_template_that_exists_already_is_done() -> None:
    scene = Scene()
    scene.api.existing = {"metadata": {"name": "m-1"}}
    scene.api.fails["create"] = [EXISTS]
    assert (await scene.run([REBOOT])).ok
