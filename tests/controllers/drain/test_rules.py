"""MachineDrainRules: the first one by name that selects the Machine and the pod counts."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.drain.assess import Drained, assess
from controllers.drain.context import Behavior, Treatment, observe, rules_for_machine
from tests.builders import FakeView, cluster, machine, node
from tests.controllers.drain.scene import CLOSED, draining, evicted, next_step
from tests.controllers.machine.pods import RuleBuilder, drain_rule, namespace, pod

WEB: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}}
MACHINE = machine("m-1").labelled(pool="blue").in_cluster("prod").build()
CLUSTER = cluster("prod").labelled(stage="live").build()


def treatment(*found: RuleBuilder, of: Any = None, space: dict[str, str] | None = None) -> Treatment:
    read = rules_for_machine(MACHINE, CLUSTER, [rule.build() for rule in found])
    assert not read.problem
    return read.treatment((of or pod("web")).build(), space or {})


def test_without_a_rule_a_pod_is_drained_in_order_0() -> None:
    assert treatment() == Treatment(Behavior.DRAIN, 0)


def test_the_first_rule_by_name_counts() -> None:
    assert treatment(drain_rule("b").drain("Skip"), drain_rule("a").drain("Drain", 3)) == Treatment(Behavior.DRAIN, 3)


@pytest.mark.parametrize(
    ("machines", "meant"),
    [
        ([{"selector": {"matchLabels": {"pool": "blue"}}}], True),
        ([{"selector": {"matchLabels": {"pool": "red"}}}], False),
        ([{"clusterSelector": {"matchLabels": {"stage": "live"}}}], True),
        ([{"selector": {"matchLabels": {"pool": "blue"}}, "clusterSelector": {"matchLabels": {"stage": "x"}}}], False),
        ([{"selector": {"matchLabels": {"pool": "red"}}}, {"selector": {}}], True),
    ],
)
def test_a_rule_is_about_the_machines_that_one_of_its_entries_selects(machines: list[Any], meant: bool) -> None:
    rule = drain_rule("r").drain("Skip")
    rule.spec["machines"] = machines
    assert (treatment(rule).behavior is Behavior.SKIP) is meant


@pytest.mark.parametrize(
    ("pods", "meant"),
    [
        ([WEB], True),
        ([{"selector": {"matchLabels": {"app": "db"}}}], False),
        ([{"namespaceSelector": {"matchLabels": {"team": "a"}}}], True),
        ([{**WEB, "namespaceSelector": {"matchLabels": {"team": "b"}}}], False),
    ],
)
def test_and_about_the_pods_that_one_of_its_entries_selects(pods: list[Any], meant: bool) -> None:
    rule = drain_rule("r").drain("WaitCompleted")
    rule.spec["pods"] = pods
    assert (treatment(rule, space={"team": "a"}).behavior is Behavior.WAIT_COMPLETED) is meant


def test_the_pods_own_label_counts_before_any_rule() -> None:
    labelled = pod("web").labelled({"cluster.x-k8s.io/drain": "Wait-Completed"})
    assert treatment(drain_rule("a").drain("Skip"), of=labelled) == Treatment(Behavior.WAIT_COMPLETED)


def test_the_labels_of_the_namespace_are_those_of_the_cluster() -> None:
    rule = drain_rule("r").drain("Skip").pods(namespaceSelector={"matchLabels": {"team": "a"}})
    assert isinstance(assess(draining(CLOSED, pod("web"), rule, namespace("default", team="a"))), Drained)
    assert evicted(draining(CLOSED, pod("web"), rule, namespace("default", team="b"))) == ["web"]


def test_rules_of_another_namespace_say_nothing() -> None:
    assert evicted(draining(CLOSED, pod("web"), drain_rule("r", "other").drain("Skip"))) == ["web"]


BROKEN = {
    "no such behavior": drain_rule("r").drain("Ignore"),
    "no drain": drain_rule("r"),
    "a selector nobody knows": drain_rule("r").drain("Skip").pods(selector={"matchExpressions": [{"key": "a"}]}),
    "machines that are no list": drain_rule("r").drain("Skip"),
    "an order in words": drain_rule("r").drain("Drain", "first"),  # type: ignore[arg-type]
}
BROKEN["machines that are no list"].spec["machines"] = "all"


@pytest.mark.parametrize("what", BROKEN)
def test_a_rule_that_can_not_be_read_stops_the_drain_and_is_named(what: str) -> None:
    """It might be the one that protects the pod."""
    found = next_step(draining(CLOSED, pod("web"), BROKEN[what]))
    assert found.actions == ()
    assert found.blocked
    assert "MachineDrainRule r can't be read: spec" in found.why


def test_a_broken_rule_about_other_machines_stops_nothing() -> None:
    rule = drain_rule("r").drain("Ignore").machines(selector={"matchLabels": {"pool": "red"}})
    view = FakeView(rule, pod("web").on("n"))
    assert observe(MACHINE, node("n").build(), view).rules.problem == ""
