"""Pods that still come are waited for, but not for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.autoscaler.gathering import arrivals_of, seconds_for_nodes, seconds_left
from controllers.autoscaler.memory import Addition, Memory, write
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.options import GrowthOptions
from controllers.autoscaler.plan import ARRIVING, GATHERING, plan
from controllers.kernel.conditions import format_time
from controllers.kernel.plan import Plan, Wait
from tests.controllers.autoscaler.fleet import Fleet

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
GROWTH = GrowthOptions()


def after(*seconds: float) -> list[datetime]:
    return [NOON + timedelta(seconds=each) for each in seconds]


def left(arrivals: list[datetime], now: float, grown: float | None = None) -> float:
    last = None if grown is None else after(grown)[0]
    return seconds_left(arrivals, now=after(now)[0], grown=last, growth=GROWTH)


@pytest.mark.parametrize(
    ("arrivals", "now", "grown", "seconds"),
    [
        pytest.param([], 0, None, 0, id="no pod waits"),
        pytest.param([0], 0.5, None, 1.5, id="one has just come, up to a second after its time"),
        pytest.param([0], 2, None, 0, id="none came since"),
        pytest.param([0, 1, 2], 2.5, None, 1.5, id="the last one counts"),
        pytest.param(list(range(12)), 11.5, None, 0, id="not longer than the longest wait"),
        pytest.param(list(range(12)), 11.5, 10, 1.5, id="new Nodes end a batch"),
        pytest.param([0, 30], 30.5, None, 1.5, id="pods that have waited for long are of no batch"),
        pytest.param([60], 0, None, 0, id="a clock that is far behind waits for nothing"),
    ],
)
def test_how_long_it_is_waited(arrivals: list[float], now: float, grown: float | None, seconds: float) -> None:
    assert left(after(*arrivals), now, grown) == seconds


def test_it_can_be_switched_off() -> None:
    off = GrowthOptions(batch_idle=timedelta(0))
    assert seconds_left(after(0), now=NOON, grown=None, growth=off) == 0


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(0, 60))
def test_no_wait_is_longer_than_it_may_be(seconds: list[int], now: int) -> None:
    assert 0 <= left(sorted(after(*seconds)), now) <= GROWTH.batch_max.total_seconds()


@given(st.sets(st.integers(0, 30), min_size=1, max_size=20))
def test_it_is_decided_once_no_pod_comes(seconds: set[int]) -> None:
    """Whoever looks again when it is told to has decided within the longest wait."""
    arrivals = sorted(after(*seconds))
    now = max(seconds) + 0.0
    while (wait := left([each for each in arrivals if each <= after(now)[0]], now)) > 0:
        now += wait
    assert now <= max(seconds) + GROWTH.batch_idle.total_seconds() + 1


def pod(**more: Any) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    conditions = [{**condition, "lastTransitionTime": format_time(after(3)[0])}]
    meta = {"name": "p", "namespace": "ns", "creationTimestamp": format_time(NOON), **more.pop("metadata", {})}
    return {"metadata": meta, "spec": more, "status": {"conditions": conditions}}


def test_pods_that_nobody_has_looked_at_count_beside_one_that_is_unschedulable() -> None:
    fresh = pod()
    fresh["metadata"]["creationTimestamp"], fresh["status"] = format_time(after(5)[0]), {}
    assert arrivals_of([fresh]) == ()
    assert arrivals_of([pod(), fresh]) == tuple(after(0, 5))


def test_an_old_pod_comes_when_it_is_called_unschedulable() -> None:
    """kube-scheduler was not free to look at it: it waited for something else."""
    old = pod(metadata={"creationTimestamp": format_time(after(-60)[0])})
    assert arrivals_of([old]) == tuple(after(3))


@pytest.mark.parametrize(
    ("age", "scheduler", "conditions", "nodes"),
    [
        (59, "default-scheduler", [], 2),
        (60, "default-scheduler", [], 1),
        (0, "another", [], 1),
        (0, "default-scheduler", [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}], 1),
    ],
    ids=["young", "old", "of another scheduler", "gated"],
)
def test_it_is_decided_on_pods_that_are_looked_at_next(
    age: int, scheduler: str, conditions: list[dict[str, str]], nodes: int
) -> None:
    fleet = Fleet()
    fleet.group("web")
    fleet.pod("called", "4", schedulerName="default-scheduler")
    fleet.pod("next", "4", schedulerName=scheduler)["status"]["conditions"] = conditions
    fleet.pods["next"]["metadata"]["creationTimestamp"] = format_time(fleet.now - timedelta(seconds=age))
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/web": nodes}


def test_it_is_not_decided_on_pods_that_nobody_called_unschedulable() -> None:
    fleet = Fleet()
    fleet.group("web")
    fleet.pod("next", "4")["status"]["conditions"] = []
    fleet.pods["next"]["metadata"]["creationTimestamp"] = format_time(fleet.now)
    assert not fleet.decide().scale_up.added


@pytest.mark.parametrize(
    "other",
    [
        pod(nodeName="n"),
        pod(schedulingGates=[{"name": "g"}]),
        pod(metadata={"deletionTimestamp": format_time(NOON)}),
    ],
)
def test_pods_that_look_for_no_node_do_not_count(other: dict[str, Any]) -> None:
    assert arrivals_of([other]) == ()


def test_a_plan_waits_and_changes_nothing_meanwhile() -> None:
    fleet = Fleet()
    fleet.group("web")
    fleet.pod("p")
    cluster = fleet.observed()
    waiting = plan(Observed(cluster=cluster, arrivals=(cluster.now,)))
    assert (waiting.steps, waiting.outcome) == ((), Wait(2.0, GATHERING))
    assert waiting.samples is None, "the metrics stay as they were"
    assert plan(Observed(cluster=cluster, arrivals=(cluster.now - timedelta(seconds=2),))).steps


@pytest.mark.parametrize(
    ("waiting", "since", "seconds"),
    [(0, 1, 10.0), (1, 1, 2.0), (1, 60, 2.0), (1, 61, 10.0), (2000, 1, 4.0), (9000, 1, 10.0)],
)
def test_room_that_goes_to_other_pods_is_looked_for_soon_after_a_growth(
    waiting: int, since: int, seconds: float
) -> None:
    """At the next look the pods without a place are seen; not for ever, nor the sooner the more there is to decide."""
    fleet = Fleet()
    fleet.group("web", cpu="4")
    fleet.join(fleet.machine("web"))
    fleet.pod("first", "1")
    fleet.text = write(Memory(grown=(Addition(fleet.now - timedelta(seconds=since), 1),)))
    cluster = fleet.observed()
    pending = cluster.workload.pending * waiting
    cluster = replace(cluster, workload=replace(cluster.workload, pending=pending))
    assert plan(Observed(cluster=cluster)).outcome == Wait(seconds, "the next scan")


def waits_for_nodes(fleet: Fleet, since: float) -> Plan:
    """A pod came at noon, and four seconds later a Node was added for it; ``since`` then."""
    fleet.group("web", cpu="4")
    fleet.deployments["web"]["spec"]["replicas"] = 1
    fleet.pod("first", "1")
    fleet.pod("second", "4")
    fleet.now = after(4 + since)[0]
    fleet.text = write(Memory(grown=(Addition(after(4)[0], 1),)))
    return plan(Observed(cluster=fleet.observed(), arrivals=tuple(after(0))))


def test_pods_wait_for_the_nodes_that_were_just_added_for_them() -> None:
    """The first Node went to another pod; what is really missing is seen when all are there."""
    waiting = waits_for_nodes(Fleet(), 3)
    assert (waiting.steps, waiting.outcome) == ((), Wait(1.0, ARRIVING))
    assert waits_for_nodes(Fleet(), 9.5).outcome == Wait(0.5, ARRIVING)
    assert waits_for_nodes(Fleet(), 10).steps


def test_a_large_cluster_is_looked_at_less_often_while_nodes_come() -> None:
    fleet = Fleet()
    fleet.join(fleet.machine(fleet.group("other", cpu="4")["metadata"]["name"]))
    waits_for_nodes(fleet, 3)
    cluster = fleet.observed()
    workload = replace(cluster.workload, nodes=cluster.workload.nodes * 4000)
    found = plan(Observed(cluster=replace(cluster, workload=workload), arrivals=tuple(after(0))))
    assert found.outcome == Wait(4.0, ARRIVING)


def test_a_pod_that_comes_after_a_growth_does_not_wait_for_its_nodes() -> None:
    assert seconds_for_nodes(after(0, 4), now=after(6)[0], grown=after(4)[0], growth=GROWTH) == 0
    assert seconds_for_nodes(after(0), now=after(6)[0], grown=None, growth=GROWTH) == 0
    assert seconds_for_nodes(after(0), now=after(3)[0], grown=after(900)[0], growth=GROWTH) == 10


@pytest.mark.parametrize(("reason", "waits"), [("WaitingForNode", True), ("StockOut", False)])
def test_nothing_is_waited_for_once_a_machine_will_never_be_a_node(reason: str, waits: bool) -> None:
    """Another group grows at once."""
    fleet = Fleet()
    fleet.now = after(4)[0]
    fleet.group("web", cpu="4")
    fleet.machine("web", {"type": "Ready", "status": "False", "reason": reason})
    assert bool(waits_for_nodes(fleet, 3).steps) is not waits
