"""Which PodDisruptionBudget holds a pod back, and whether time will tell."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.drain.assess import Drained, assess
from tests.controllers.drain.scene import CLOSED, draining, evicted, next_step
from tests.controllers.machine.pods import BudgetBuilder, budget, pod


def keep(**status: Any) -> BudgetBuilder:
    found = budget("keep").over("web")
    found.status.update(status)
    return found


def test_of_pods_under_one_budget_only_as_many_are_evicted_as_it_allows() -> None:
    pods = [pod(f"web-{n}").labelled(app="web") for n in range(3)]
    drain = draining(CLOSED, *pods, budget("keep").over("web").allowing(1))
    assert evicted(drain) == ["web-0"]
    assert "default/web-1 (PodDisruptionBudget default/keep), default/web-2" in next_step(drain).why


def test_a_budget_of_another_namespace_holds_nothing() -> None:
    assert evicted(draining(CLOSED, pod("web"), budget("keep", "other").over("web").allowing(0))) == ["web"]


@pytest.mark.parametrize(
    "uncounted",
    [keep(), keep(disruptionsAllowed=0, observedGeneration=1).generation(2)],
    ids=["never counted", "changed since"],
)
def test_a_budget_that_nobody_has_counted_is_left_to_the_api(uncounted: BudgetBuilder) -> None:
    assert evicted(draining(CLOSED, pod("web"), uncounted)) == ["web"]


def test_several_budgets_over_one_pod_are_a_mistake_that_is_named_and_nothing_is_asked() -> None:
    """Kubernetes answers such an eviction with a 500, which would look like trouble of the API server."""
    both = (budget("a").over("web").allowing(1), budget("b").over("web").allowing(1))
    found = next_step(draining(CLOSED, pod("web"), *both))
    assert found.actions == ()
    assert found.blocked
    assert "2 PodDisruptionBudgets select it: default/a, default/b" in found.why
    assert "until somebody changes" in found.why


def limited(**spec: Any) -> BudgetBuilder:
    found = keep(disruptionsAllowed=0)
    found.spec.update(spec)
    return found


NEVER = {
    "none may be away": limited(maxUnavailable=0),
    "none of a hundred percent": limited(maxUnavailable="0%"),
    "as many as there are": keep(disruptionsAllowed=0, desiredHealthy=1, currentHealthy=1, expectedPods=1),
    "its pods can't be counted": keep(disruptionsAllowed=0).condition("DisruptionAllowed", "False", "SyncFailed", "no"),
}


@pytest.mark.parametrize("case", NEVER)
def test_a_budget_that_never_allows_an_eviction_is_told_apart(case: str) -> None:
    found = next_step(draining(CLOSED, pod("web").ready(), NEVER[case]))
    assert found.actions == ()
    assert "blocked until somebody changes a PodDisruptionBudget: default/web" in found.why
    assert "default/keep, which never allows one" in found.why


def test_a_budget_that_is_only_spent_is_waited_for() -> None:
    spent = keep(disruptionsAllowed=0, desiredHealthy=1, currentHealthy=1, expectedPods=2)
    found = next_step(draining(CLOSED, pod("web").ready(), spent))
    assert found.blocked
    assert "never" not in found.why


@pytest.mark.parametrize(
    ("pod_", "budget_", "goes"),
    [
        (pod("web").phase("Pending"), keep(disruptionsAllowed=0), True),
        (pod("web"), limited(unhealthyPodEvictionPolicy="AlwaysAllow"), True),
        (pod("web"), keep(disruptionsAllowed=0, currentHealthy=2, desiredHealthy=2, expectedPods=3), True),
        (pod("web"), keep(disruptionsAllowed=0, currentHealthy=1, desiredHealthy=2, expectedPods=3), False),
        (pod("web").ready(), limited(unhealthyPodEvictionPolicy="AlwaysAllow"), False),
    ],
    ids=["pending", "unready, always allowed", "unready, budget healthy", "unready, budget not", "ready"],
)
def test_a_pod_that_is_no_loss_goes_whatever_is_spent(pod_: Any, budget_: Any, goes: bool) -> None:
    found = next_step(draining(CLOSED, pod_, budget_))
    assert bool(found.actions) is goes


def test_a_selector_that_can_not_be_read_covers_nothing() -> None:
    broken = keep(disruptionsAllowed=0)
    broken.spec["selector"] = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    assert evicted(draining(CLOSED, pod("web"), broken)) == ["web"]


def test_names_of_blocked_pods_are_bounded() -> None:
    pods = [pod(f"web-{n}").labelled(app="web") for n in range(200)]
    why = next_step(draining(CLOSED, *pods, budget("keep").over("web").allowing(0))).why
    assert "and 195 more" in why
    assert len(why) < 1000
    assert isinstance(assess(draining(CLOSED)), Drained)
