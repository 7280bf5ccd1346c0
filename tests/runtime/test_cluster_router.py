"""The shell around a room whose keys live in several clusters: what a round sees, where it acts, whom it holds up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from controllers.kernel.actions import Action, Delete, Event, Patch
from controllers.kernel.plan import Plan, steps
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, POD, Key, Kind, Obj, Ref, key_of
from controllers.kernel.view import (
    MANAGEMENT_CLUSTER,
    HostNeed,
    HostReads,
    ManagementCluster,
    Reached,
    Unreachable,
    View,
    Workload,
)
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.reconciling.shell import Controller, Facts
from nodewright.runtime.settings.options import ReconcilerOptions
from nodewright.runtime.telemetry import metrics
from nodewright.runtime.workloads.cluster_router import ClusterRouter
from nodewright.runtime.workloads.directory import MANAGEMENT_SITE, Site, WorkloadListener
from nodewright.runtime.writes.executor import APITarget, Executor, ExecutorDeps
from tests.builders.clock import NOW
from tests.builders.objects import machine, node
from tests.runtime import cloud_scene
from tests.runtime.shell_stage import Always
from tests.runtime.test_executor import FakeApi
from tests.runtime.virtual_time import now, virtual_time

PROD, LOST = Key("default", "prod"), Unreachable("prod-kubeconfig", "Unreachable", "refused")
FOUND = Reached("prod-kubeconfig")


class Reconciler:
    """Looks at the Node that has its Machine's name, and does with it what the test says."""

    name = "tests"
    kind = MACHINE
    reads = (MACHINE, NODE)

    def __init__(self, decide: Callable[[Obj | None], list[Action]], speaks: bool) -> None:
        self.reports_unreachable = speaks
        self.decide = decide
        self.seen: list[tuple[str, Workload, str]] = []
        """Per round: the key's name, where its Nodes live, and the uid of the Node that was seen."""

    @property
    def wakes(self) -> tuple[Wake, ...]:
        return (Wake(MACHINE, lambda obj, _view: (key_of(obj),)), Wake(NODE, _machine_of))

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Obj | None:
        found = view.get(NODE, Key("", key.name))
        self.seen.append((key.name, view.workload, found["metadata"]["uid"] if found is not None else ""))
        return found

    def plan(self, observed: Obj) -> Plan:
        return Plan(steps(self.decide(observed)))


def _machine_of(obj: Obj, _view: View) -> list[Key]:
    return [Key("default", obj["metadata"]["name"])]


class Directory:
    """``Workloads`` whose one Cluster the test moves."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.cache = Cache([NODE])
        self.cache.keep_complete(NODE, Always())
        self.workload: Workload | None = FOUND
        self.told: list[Callable[[Key], None]] = []

    def look(self, cluster: Key) -> Site | None:
        if self.workload is None or cluster != PROD:
            return None if cluster == PROD else MANAGEMENT_SITE
        return (
            MANAGEMENT_SITE
            if self.workload == MANAGEMENT_CLUSTER
            else Site(self.workload, APITarget(self.api, self.cache))
        )

    def listen(self, kind: Kind, listener: WorkloadListener) -> None:
        if kind in self.cache.stores:
            self.cache.listen(kind, lambda change, from_list: listener(PROD, change, from_list))

    def listen_contact(self, listener: Callable[[Key], None]) -> None:
        self.told.append(listener)

    def become(self, workload: Workload) -> None:
        self.workload = workload
        for listener in self.told:
            listener(PROD)


class Stage:
    def __init__(
        self,
        decide: Callable[[Obj | None], list[Action]] = lambda _node: [],
        *,
        speaks: bool = True,
        reconciler: Reconciler | None = None,
    ) -> None:
        self.reconciler = reconciler or Reconciler(decide, speaks)
        self.api = FakeApi()
        self.elsewhere = Directory()
        self.cache = Cache([MACHINE, NODE, POD, MACHINE_SET])
        for kind in self.cache.stores:
            self.cache.keep_complete(kind, Always())
        self.hosts = cloud_scene.Scene()
        executor_deps = ExecutorDeps(
            self.api, self.cache, self.hosts.directory.submit, lambda _event: None, lambda: NOW
        )
        facts = Facts(self.cache, self.hosts.directory, self.elsewhere)
        self.controller = Controller(self.reconciler, facts, executor_deps, ReconcilerOptions(workers=2, resync=1e6))
        self.controller.start()

    def machine(self, name: str, cluster: str = "") -> None:
        builder = machine(name).in_cluster(cluster) if cluster else machine(name)
        self.cache.watched(MACHINE, "ADDED", builder.build())

    def node(self, name: str, uid: str, *, home: bool = False) -> None:
        (self.cache if home else self.elsewhere.cache).watched(NODE, "ADDED", node(name).uid(uid).build())

    async def quiet(self) -> None:
        await asyncio.sleep(0.001)
        while not self.controller.queue.idle:  # noqa: ASYNC110  (virtual time)
            await asyncio.sleep(0.001)
        self.reconciler.seen, seen = [], self.reconciler.seen
        self.last = seen

    async def close(self) -> None:
        await self.controller.stop(grace=0)
        await self.hosts.directory.close(grace=0)


def touching() -> Callable[[Obj | None], list[Action]]:
    """Patches each Node, and a MachineSet of its name, once."""
    done: set[str] = set()

    def touch(found: Obj | None) -> list[Action]:
        name = found["metadata"]["name"] if found is not None else ""
        if not name or name in done:
            return []
        done.add(name)
        return [Patch(Ref(NODE, Key("", name)), {}, "touch"), Patch(Ref(MACHINE_SET, Key("default", name)), {}, "say")]

    return touch


@virtual_time
async def test_a_round_sees_the_nodes_of_its_own_cluster_and_acts_there() -> None:
    stage = Stage(touching())
    stage.node("m", "abroad")
    stage.node("m", "home", home=True)
    stage.node("h", "home-2", home=True)
    stage.machine("m", "prod")
    stage.machine("h")
    await stage.quiet()
    assert set(stage.last) == {("m", FOUND, "abroad"), ("h", MANAGEMENT_CLUSTER, "home-2")}
    assert stage.elsewhere.api.asked == ["patch m"]
    assert sorted(stage.api.asked) == ["patch h", "patch h", "patch m"]
    await stage.close()


@virtual_time
async def test_a_node_wakes_the_machine_of_its_own_cluster_only() -> None:
    stage = Stage()
    stage.machine("m", "prod")
    await stage.quiet()
    stage.node("m", "namesake", home=True)
    await stage.quiet()
    assert stage.last == []
    stage.node("m", "abroad")
    await stage.quiet()
    assert stage.last == [("m", FOUND, "abroad")]
    await stage.close()


@virtual_time
async def test_a_node_that_was_left_behind_is_looked_at_where_it_is() -> None:
    stage = Stage()
    stage.node("gone", "left")
    await stage.quiet()
    assert stage.last == [("gone", FOUND, "left")]
    await stage.close()


@virtual_time
async def test_no_round_begins_before_it_is_known_where_nodes_live() -> None:
    stage = Stage()
    stage.elsewhere.workload = None
    stage.machine("m", "prod")
    stage.machine("h")
    await stage.quiet()
    assert [name for name, _, _ in stage.last] == ["h"]
    stage.elsewhere.become(MANAGEMENT_CLUSTER)
    await stage.quiet()
    assert stage.last == [("m", MANAGEMENT_CLUSTER, "")]
    await stage.close()


@virtual_time
async def test_a_room_that_can_speak_of_it_is_asked_while_a_cluster_is_lost_and_others_are_not() -> None:
    for speaks, names in ((True, ["m"]), (False, [])):
        stage = Stage(speaks=speaks)
        stage.machine("m", "prod")
        await stage.quiet()
        stage.elsewhere.become(LOST)
        await stage.quiet()
        assert [name for name, workload, _ in stage.last if workload == LOST] == names
        stage.elsewhere.become(FOUND)
        await stage.quiet()
        assert [(name, workload) for name, workload, _ in stage.last] == [("m", FOUND)]
        await stage.close()


@virtual_time
async def test_a_cluster_that_does_not_answer_holds_no_worker() -> None:
    """Three rounds wait for it, there are two workers, and a fourth round at home goes on."""
    stage = Stage(touching())
    answered = asyncio.Event()

    async def never(*_args: Any, **_named: Any) -> dict[str, Any]:
        await answered.wait()
        return {"metadata": {"name": "n"}}

    stage.elsewhere.api.merge_patch = never  # type: ignore[method-assign]
    for number in range(3):
        stage.node(f"m-{number}", f"uid-{number}")
        stage.machine(f"m-{number}", "prod")
    await asyncio.sleep(1)
    stage.node("h", "home", home=True)
    stage.machine("h")
    await asyncio.sleep(1)
    assert stage.api.asked.count("patch h") == 2
    assert sorted(name for name, workload, _ in stage.reconciler.seen if workload == FOUND) == ["m-0", "m-1", "m-2"]
    answered.set()
    await stage.quiet()
    await stage.close()


@virtual_time
async def test_a_stop_does_not_wait_for_it_either() -> None:
    stage = Stage(lambda _node: [Delete(Ref(NODE, Key("", "m")), "go")])

    async def never(*_args: Any, **_named: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    stage.elsewhere.api.delete = never  # type: ignore[method-assign]
    stage.node("m", "abroad")
    stage.machine("m", "prod")
    await asyncio.sleep(1)
    await stage.close()
    assert stage.controller.queue.idle


@virtual_time
async def test_a_round_may_look_into_other_clusters_by_name() -> None:
    """A room whose key concerns Machines of several clusters asks for each where it lives."""
    stage = Stage()
    stage.node("m", "abroad")
    stage.node("m", "home", home=True)
    view = ClusterRouter(stage.reconciler, stage.cache, stage.elsewhere, lambda: NOW).view(MANAGEMENT_SITE)

    def seen_in(cluster: Key | None) -> str:
        found = view.of_cluster(cluster).get(NODE, Key("", "m"))
        return str(found["metadata"]["uid"]) if found is not None else ""

    assert (seen_in(None), seen_in(PROD)) == ("home", "abroad")
    assert view.of_cluster(PROD).of_cluster(None).workload == MANAGEMENT_CLUSTER
    stage.elsewhere.workload = None
    assert isinstance(view.of_cluster(PROD).workload, Unreachable), "it is not known yet"
    assert seen_in(PROD) == ""
    assert not view.of_cluster(PROD).complete(NODE)
    await stage.close()


@virtual_time
async def test_nodes_are_as_current_as_the_cluster_that_they_are_shown_of() -> None:
    stage = Stage()
    followed = Always()
    followed.current_for = 60.0
    stage.elsewhere.cache.keep_complete(NODE, followed)
    cluster_router = ClusterRouter(stage.reconciler, stage.cache, stage.elsewhere, lambda: NOW)

    def since(kind: Kind) -> datetime | None:
        return cluster_router.view(MANAGEMENT_SITE).of_cluster(PROD).current_since(kind)

    assert since(NODE) == NOW - timedelta(seconds=60)
    assert (
        since(MACHINE) == cluster_router.view(MANAGEMENT_SITE).current_since(NODE) == datetime.min.replace(tzinfo=UTC)
    )
    stage.elsewhere.workload = LOST
    assert since(NODE) is None
    await stage.close()


class Spanning(Reconciler):
    """Its keys concern Machines of several clusters."""

    spans_clusters = True


@virtual_time
async def test_a_room_that_spans_clusters_is_at_home_and_hears_of_all_of_them() -> None:
    stage = Stage(reconciler=Spanning(lambda _node: [], speaks=False))
    stage.machine("h")
    stage.machine("m", "prod")
    await stage.quiet()
    stage.node("h", "abroad")
    await stage.quiet()
    assert stage.last == [("h", MANAGEMENT_CLUSTER, "")], "Wake.keys say whom it concerns"
    stage.node("m", "home", home=True)
    await stage.quiet()
    assert stage.last == [("m", MANAGEMENT_CLUSTER, "home")]
    for workload in (LOST, FOUND):
        stage.elsewhere.become(workload)
        await stage.quiet()
        assert {(name, where) for name, where, _ in stage.last} == {
            ("h", MANAGEMENT_CLUSTER),
            ("m", MANAGEMENT_CLUSTER),
        }
    await stage.close()


class Bound(Reconciler):
    """Its rounds see one Cluster, whatever its keys are."""

    sees: Key | ManagementCluster = PROD


@virtual_time
async def test_a_room_that_sees_one_cluster_looks_and_acts_there_whatever_its_keys_are() -> None:
    stage = Stage(reconciler=Bound(touching(), speaks=True))
    stage.machine("h")
    stage.node("h", "home", home=True)
    await stage.quiet()
    assert stage.last == [("h", FOUND, "")], "what is at home of the same name is not seen"
    stage.node("h", "abroad")
    await stage.quiet()
    assert stage.last[-1] == ("h", FOUND, "abroad")
    assert (stage.elsewhere.api.asked, stage.api.asked) == (["patch h"], ["patch h"]), "the Node there, the set at home"
    for workload in (LOST, FOUND):
        stage.elsewhere.become(workload)
        await stage.quiet()
        assert stage.last[-1][:2] == ("h", workload)
    await stage.close()


@virtual_time
async def test_events_lie_where_what_they_are_about_lives() -> None:
    there: list[tuple[str, Ref]] = []
    here: list[Ref] = []
    pod, machine_set = Ref(POD, Key("default", "p")), Ref(MACHINE_SET, Key("default", "s"))
    elsewhere = APITarget(
        FakeApi(), Cache([]), record=lambda reconciler, event: there.append((reconciler, event.target))
    )
    executor_deps = ExecutorDeps(
        FakeApi(), Cache([]), lambda _action: True, lambda event: here.append(event.target), lambda: NOW
    )
    said = Plan(steps([Event(pod, "Normal", "A", "a"), Event(machine_set, "Normal", "B", "b")]))
    await Executor("room", replace(executor_deps, workload=elsewhere)).execute(said)
    assert (there, here) == ([("room", pod)], [machine_set])
    here.clear()
    await Executor("room", executor_deps).execute(said)
    assert here == [pod, machine_set]


@virtual_time
async def test_a_cluster_without_an_api_of_its_own_is_unreached_for_a_room_that_sees_it_alone() -> None:
    """Else the room would take the Nodes at home for those of its Cluster."""
    stage = Stage(reconciler=Bound(lambda _node: [], speaks=True))
    stage.elsewhere.workload = MANAGEMENT_CLUSTER
    stage.machine("h")
    stage.node("h", "home", home=True)
    await stage.quiet()
    ((_, workload, node),) = stage.last
    assert workload == Unreachable("", "KubeconfigMissing", "there is no Secret default/prod-kubeconfig")
    assert node == ""
    await stage.close()


@virtual_time
async def test_a_room_that_sees_home_alone_hears_nothing_of_workload_clusters() -> None:
    reconciler = Bound(lambda _node: [], speaks=True)
    reconciler.sees = MANAGEMENT_CLUSTER
    stage = Stage(reconciler=reconciler)
    stage.machine("m", "prod")
    await stage.quiet()
    stage.last.clear()
    stage.node("m", "abroad")
    await stage.quiet()
    assert stage.last == []
    stage.node("m", "home", home=True)
    await stage.quiet()
    assert stage.last == [("m", MANAGEMENT_CLUSTER, "home")]
    await stage.close()


@virtual_time
@pytest.mark.parametrize("cluster", ["prod", ""], ids=["a workload cluster", "the management cluster"])
@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_reconcile_whose_end_fails_is_counted_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, cluster: str, cancelled: bool
) -> None:
    """What comes after the actions is guarded too: the key is requeued with back-off, and no worker is lost."""
    stage = Stage(lambda _node: [Patch(Ref(NODE, Key("", "m")), {}, "touch")])
    errors = metrics.of(metrics.RECONCILER_ERRORS, "tests")
    before, failing, moments = errors._value.get(), [True] * 3, list[float]()
    finish = stage.controller._finish

    async def failing_finish(*args: Any) -> None:
        moments.append(now())
        if failing:
            failing.pop()
            raise asyncio.CancelledError if cancelled else ZeroDivisionError("a bug")
        stage.reconciler.decide = lambda _node: []
        await finish(*args)

    monkeypatch.setattr(stage.controller, "_finish", failing_finish)
    stage.node("m", "uid", home=not cluster)
    stage.machine("m", cluster)
    log = LogCapture()
    structlog.configure(processors=[log], wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    await asyncio.sleep(30)
    assert errors._value.get() == before + 3
    assert [entry["event"] for entry in log.entries if entry["log_level"] == "error"] == ["controller failed"] * 3
    assert stage.controller.queue.idle
    assert len(moments) >= 4
    assert moments[3] - moments[2] > moments[1] - moments[0], "it backs off"
    stage.machine("other")
    stage.node("other", "uid-2", home=True)
    await stage.quiet()
    assert ("other", MANAGEMENT_CLUSTER, "uid-2") in stage.last, "the workers are there"
    assert not any(worker.done() for worker in stage.controller._workers)
    await stage.close()


@virtual_time
async def test_a_reconcile_that_is_cancelled_by_the_stop_is_no_failure() -> None:
    stage = Stage(lambda _node: [Patch(Ref(NODE, Key("", "m")), {}, "touch")])
    errors = metrics.of(metrics.RECONCILER_ERRORS, "tests")
    before = errors._value.get()

    async def never(*_args: Any, **_more: Any) -> None:
        await asyncio.sleep(1e6)

    stage.elsewhere.api.merge_patch = never  # type: ignore[assignment, method-assign]
    stage.node("m", "uid")
    stage.machine("m", "prod")
    await asyncio.sleep(1)
    assert stage.controller._aside
    await stage.close()
    assert errors._value.get() == before
