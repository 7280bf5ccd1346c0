"""Which Machines count as unhealthy, by what, and when the next look is due."""

from __future__ import annotations

import pytest

from api import names
from controllers.kernel.plan import Settled, Wait
from controllers.kernel.refs import MACHINE, NODE
from tests.builders import FakeView, cluster
from tests.builders.objects import Builder
from tests.controllers.machinehealthcheck.checks import (
    POOL,
    check,
    dark,
    flat,
    its_node,
    member,
    plan,
    plan_on,
    selected_for_deletion,
    status,
    unhealthy,
    well,
)


def joining(name: str, age: float) -> Builder:
    body = member(name).created(age)
    del body.status["nodeRef"]
    return body.pending("WaitingForNode").condition("InfrastructureReady", "False", "Provisioning", since=age)


def booted(name: str, since: float) -> Builder:
    return joining(name, 5000).condition("InfrastructureReady", "True", "Provisioned", since=since)


def short_of_quota(name: str) -> Builder:
    return joining(name, 5000).condition("InfrastructureReady", "False", "QuotaExceeded", since=5000)


def waiting_in_line(name: str) -> Builder:
    return joining(name, 5000).condition("InfrastructureReady", "False", "HostsInFlight", since=5000)


def node_gone(name: str, since: float) -> Builder:
    return member(name).condition("NodeReady", "False", "NodeMissing", since=since)


FOUND = {
    "a Node that has been silent for long enough": (dark("a"), "UnhealthyNode"),
    "a Node that fell silent a moment ago": (dark("a", since=10), ""),
    "a Node that is NotReady, which nobody asked about": (
        [member("a").not_ready(), its_node("a").not_ready(since=9999)],
        "",
    ),
    "a Node that is gone": ([node_gone("a", 40)], "NodeMissing"),
    "a Node that went a moment ago": ([node_gone("a", 10)], ""),
    "a Node that is only not seen yet": ([member("a")], ""),
    "no Node for too long": ([joining("a", 700)], "NodeStartupTimeout"),
    "no Node yet": ([joining("a", 500)], ""),
    "a host that booted late is given its time": ([booted("a", 500)], ""),
    "a host that booted and never joined": ([booted("a", 700)], "NodeStartupTimeout"),
    "no host for want of quota, however long": ([short_of_quota("a")], ""),
    "not its turn to get a host, however long": ([waiting_in_line("a")], ""),
    "a broken host": ([member("a").failed("HostFailed", "disk")], "MachineFailed"),
    "by annotation": ([member("a").annotated(names.REMEDIATE_ANNOTATION, ""), its_node("a")], "HasRemediateAnnotation"),
    "a Node of that name that belongs to another host": (
        [node_gone("a", 60), its_node("a").uid("another").provider_id("simulated:///another")],
        "NodeMissing",
    ),
    "a Node that registered anew": ([member("a"), its_node("a").uid("another")], ""),
}


@pytest.mark.parametrize(("objects", "want"), FOUND.values(), ids=FOUND.keys())
def test_found(objects: list[Builder], want: str) -> None:
    assert unhealthy(plan(check(), *objects)) == ({"a": want} if want else {})


def test_a_condition_of_the_machine_counts_when_it_is_asked_for() -> None:
    bad = check().having(
        unhealthyMachineConditions=[{"type": "InfrastructureReady", "status": "False", "timeout": "1m"}]
    )
    stopped = member("a").condition("InfrastructureReady", "False", "HostStopped", since=90)
    assert unhealthy(plan(bad, stopped, its_node("a"))) == {"a": "UnhealthyMachine"}


def test_startup_may_take_for_ever_if_the_check_says_so() -> None:
    found = plan(check().having(nodeStartupTimeout="0"), joining("a", 99_999))
    assert unhealthy(found) == {}
    assert isinstance(found.outcome, Settled)


LEFT_ALONE: dict[str, list[Builder]] = {
    "skipped by annotation": [member("a").annotated(names.SKIP_REMEDIATION_ANNOTATION, ""), dark("a")[1]],
    "paused": [member("a").annotated(names.PAUSED_ANNOTATION), dark("a")[1]],
    "of a paused Cluster": [cluster("c").paused(), member("a").in_cluster("c"), dark("a")[1]],
    "of a Cluster that goes": [cluster("c").deleting(), member("a").in_cluster("c"), dark("a")[1]],
    "going already": [member("a").deleting(), dark("a")[1]],
    "not selected": [member("a").labelled(pool="other"), dark("a")[1]],
}


@pytest.mark.parametrize("objects", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_left_alone(objects: list[Builder]) -> None:
    found = plan(check(), *objects)
    assert unhealthy(found) == {}
    assert status(found)["expectedMachines"] == 0


def test_a_machine_of_another_cluster_is_not_looked_at() -> None:
    mine = [member("a").in_cluster("mine"), dark("a")[1]]
    assert selected_for_deletion(plan(check().having(clusterName="mine"), *mine)) == ["a"]
    assert selected_for_deletion(plan(check().having(clusterName="other"), *mine)) == []


def test_a_paused_check_says_so_and_does_nothing() -> None:
    found = plan(check().annotated(names.PAUSED_ANNOTATION), *dark("a"))
    assert selected_for_deletion(found) == []
    assert [c["type"] for c in status(found)["conditions"]] == ["Paused"]


def test_the_next_look_is_when_the_first_clock_runs_out() -> None:
    found = plan(check(), *dark("a", since=100), *dark("b", since=250), joining("c", 400))
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == 50


def test_a_sound_pool_needs_no_clock_and_no_mark() -> None:
    found = plan(check(), *flat(*(well(f"m{n}") for n in range(5))))
    assert isinstance(found.outcome, Settled)
    assert unhealthy(found) == {}
    assert status(found)["currentHealthy"] == 5


def test_after_an_outage_every_clock_begins_anew() -> None:
    """MCM#482: all Nodes were called dead at once when the API server came back."""
    view = FakeView(POOL, check(), *dark("a", since=9999))
    assert selected_for_deletion(plan_on(view)) == ["a"]
    back = view.outage(NODE, ended=100)
    found = plan_on(back)
    assert selected_for_deletion(found) == []
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == 200
    assert selected_for_deletion(plan_on(back.at(201))) == ["a"]


def test_nothing_is_concluded_during_an_outage() -> None:
    for view in (FakeView().outage(NODE), FakeView().outage(MACHINE), FakeView().incomplete(NODE)):
        view.put(POOL, check(), *dark("a", since=9999))
        found = plan_on(view)
        assert found.steps == ()
        assert isinstance(found.outcome, Wait)


def test_two_checks_of_one_machine_do_not_contradict_each_other() -> None:
    older, younger = check("older").created(900), check("check").created(100).having(unhealthyConditions=[])
    sick = [member("a").condition("HealthCheckSucceeded", "False", "UnhealthyNode"), dark("a")[1]]
    found = plan(older, younger, *sick)
    assert unhealthy(found) == {}
    assert status(found)["expectedMachines"] == 0
    assert "older check" in " ".join(found.notes)
    assert unhealthy(plan_on(FakeView(POOL, older, younger, *dark("a")), "older")) == {"a": "UnhealthyNode"}
