"""Machines whose Nodes live in clusters of their own, each of which may be lost by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controllers.kernel.plan import Blocked, Wait
from controllers.kernel.reconciler import SpansClusters
from controllers.kernel.refs import CLUSTER, MACHINE, NODE, Key
from controllers.kernel.view import Reached, Unreachable
from controllers.machinehealthcheck.reconciler import RECONCILER
from tests.builders import FakeView, machine
from tests.builders.objects import Builder, MachineBuilder, NodeBuilder
from tests.builders.plans import events
from tests.controllers.machinehealthcheck.checks import (
    POOL,
    CheckBuilder,
    allowed,
    check,
    its_node,
    marks,
    member,
    plan_on,
    selected_for_deletion,
    status,
    unhealthy,
)

FOUND = Reached("blue-kubeconfig")
LOST = Unreachable("blue-kubeconfig", "Unreachable", "refused")
NAMES = ("a", "b", "c", "d")


def of_blue(name: str) -> MachineBuilder:
    return member(name).in_cluster("blue")


def dead_node(name: str, since: float = 400) -> NodeBuilder:
    found = its_node(name)
    found.condition("Ready", "Unknown", "NodeStatusUnknown", since=since)
    return found


def scene(*more: Builder, by: CheckBuilder | None = None) -> FakeView:
    """Four Machines of Cluster blue, and what else is at home."""
    return FakeView(POOL, by or check(), *(of_blue(name) for name in NAMES), *more)


@pytest.fixture(params=["with clusterName", "without"])
def by(request: Any) -> CheckBuilder:
    return check().having(clusterName="blue") if request.param == "with clusterName" else check()


def test_nodes_are_looked_for_where_they_live(by: CheckBuilder) -> None:
    view = scene(by=by)
    view.elsewhere("blue", FOUND, *(its_node(name) for name in NAMES))
    found = plan_on(view)
    assert unhealthy(found) == {}
    assert (status(found)["currentHealthy"], allowed(found)) == (4, ("True", "RemediationAllowed"))


def test_a_namesake_of_the_node_at_home_says_nothing(by: CheckBuilder) -> None:
    view = scene(*(dead_node(name) for name in NAMES), by=by)
    view.elsewhere("blue", FOUND, *(its_node(name) for name in NAMES))
    assert unhealthy(plan_on(view)) == {}


def test_a_node_that_went_dark_there_is_replaced(by: CheckBuilder) -> None:
    view = scene(by=by)
    view.elsewhere("blue", FOUND, dead_node("a"), *(its_node(name) for name in NAMES[1:]))
    assert selected_for_deletion(plan_on(view)) == ["a"]


def test_nothing_is_concluded_of_a_cluster_that_is_lost(by: CheckBuilder) -> None:
    """Neither of Nodes that were dark before, nor of Machines that a person or their provider gave up."""
    view = scene(by=by)
    view.put(of_blue("b").annotated("cluster.x-k8s.io/remediate-machine", ""), of_blue("c").failed())
    view.put(machine("d").of(POOL).in_cluster("blue").created(90_000))
    view.elsewhere("blue", LOST, dead_node("a"))
    found = plan_on(view)
    assert marks(found) == {}
    assert allowed(found) == ("False", "ConnectionDown")
    (said,) = status(found)["conditions"]
    assert "left alone: Cluster default/blue can't be followed" in said["message"]
    assert (status(found)["expectedMachines"], status(found)["remediationsAllowed"]) == (4, 0)
    assert isinstance(found.outcome, Blocked)
    assert len(events(found)) == 1


def test_a_lost_cluster_says_so_once() -> None:
    view = scene()
    view.elsewhere("blue", LOST)
    again = check()
    again.status.update(status(plan_on(view)))
    view.put(again)
    assert list(plan_on(view).actions()) == []


def test_what_is_read_but_not_followed_any_more_is_as_good_as_lost() -> None:
    for break_it in (lambda blue: blue.outage(NODE), lambda blue: blue.incomplete(NODE)):
        view = scene()
        break_it(view.elsewhere("blue", FOUND))
        assert marks(plan_on(view)) == {}
        assert allowed(plan_on(view)) == ("False", "ConnectionDown")


def test_a_lost_cluster_holds_up_no_other() -> None:
    view = scene(member("home"), dead_node("home"), by=check().having(maxUnhealthy="40%"))
    view.elsewhere("blue", LOST)
    found = plan_on(view)
    assert selected_for_deletion(found) == ["home"]
    assert allowed(found) == ("True", "RemediationAllowed")
    (said,) = [c for c in status(found)["conditions"] if c["type"] == "RemediationAllowed"]
    assert "Cluster default/blue" in said["message"]


def test_what_was_last_known_of_a_lost_machine_still_counts() -> None:
    """Else the loss of a cluster would make room for replacements elsewhere."""
    view = scene(member("home"), dead_node("home"), by=check().having(maxUnhealthy=1))
    view.put(of_blue("a").condition("HealthCheckSucceeded", "False", "UnhealthyNode"))
    view.elsewhere("blue", LOST)
    found = plan_on(view)
    assert (selected_for_deletion(found), allowed(found)) == ([], ("False", "TooManyUnhealthy"))
    assert status(found)["unhealthyMachines"] == ["a", "home"]
    asked = of_blue("a").condition("HealthCheckSucceeded", "False", "UnhealthyNode")
    view.put(asked.condition("OwnerRemediated", "False", "WaitingForRemediation"))
    view.put(check().strategy(maxInFlight=1))
    assert selected_for_deletion(plan_on(view)) == []


def test_every_clock_begins_anew_when_the_cluster_comes_back(by: CheckBuilder) -> None:
    """Those of the Nodes' conditions, of the Machines' and of joining: nobody could see or report in time."""
    by.having(unhealthyMachineConditions=[{"type": "NodeReady", "status": "Unknown", "timeout": "5m"}])
    view = scene(by=by)
    view.put(of_blue("b").condition("NodeReady", "Unknown", "ConnectionDown", since=900))
    view.put(machine("c").of(POOL).in_cluster("blue").created(900))
    view.put(of_blue("d").condition("NodeReady", "False", "NodeMissing", since=900))
    blue = view.elsewhere("blue", FOUND, dead_node("a", 900), its_node("b"))
    for ended, sick in ((20, set()), (299, {"d"}), (601, {"a", "b", "c", "d"})):
        blue.outage(NODE, ended=ended)
        view.put(by.strategy(correlatedFailures="Remediate"))
        assert set(unhealthy(plan_on(view))) == sick, ended


def test_no_word_is_written_before_it_is_known_where_nodes_live() -> None:
    view = scene(member("home"), dead_node("home"))
    view.elsewhere("blue", replace(LOST, finding_out=True))
    found = plan_on(view)
    assert list(found.actions()) == []
    assert isinstance(found.outcome, Wait)


def test_a_node_of_any_cluster_wakes_the_checks_of_its_machine() -> None:
    assert isinstance(RECONCILER, SpansClusters)
    assert RECONCILER.spans_clusters
    view = scene(check("other").having(selector={"matchLabels": {"pool": "other"}}))
    blue = view.elsewhere("blue", FOUND)
    for obj in (of_blue("a"), check()):
        blue.put(obj)
    (wake,) = [wake for wake in RECONCILER.wakes if wake.kind == NODE]
    assert list(wake.keys(its_node("a").build(), blue)) == [Key("default", "check")]
    assert {wake.kind for wake in RECONCILER.wakes} >= {NODE, MACHINE, CLUSTER}


def test_counts_that_wait_to_be_written_do_not_wait_for_a_lost_cluster() -> None:
    known = check()
    view = scene(member("old"), member("new"), its_node("old"), its_node("new"), by=known)
    view.put(member("new").condition("Ready", "True", "Ready", since=1))
    view.elsewhere("blue", LOST)
    known.status.update(status(plan_on(view)), currentHealthy=1)
    found = plan_on(view.put(known))
    assert list(found.actions()) == [], "the Machines still move"
    assert isinstance(found.outcome, Blocked)
    assert found.outcome.after == 1.0
