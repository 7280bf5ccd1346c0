"""How far a drain is, and what it does next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controllers.drain.assess import MOST_EVICTIONS, Drained, Draining, NotDrained, assess
from controllers.drain.cordon import cordon, uncordon
from controllers.drain.pods import sort
from controllers.kernel.actions import Evict, Patch
from tests.builders import NOW, Builder, node
from tests.controllers.machine.arena import merged
from tests.controllers.machine.pods import budget, pod

CORDONED = node("n").ready().cordoned()


def draining(node_: Builder, *objects: Builder, **more: Any) -> Draining:
    built = [obj.build() for obj in objects]
    return Draining(
        machine_uid="uid-m-1",
        node=node_.build(),
        pods=tuple(obj for obj in built if obj["kind"] == "Pod"),
        budgets=tuple(obj for obj in built if obj["kind"] != "Pod"),
        now=NOW,
        **more,
    )


def evicted(drain: Draining) -> list[str]:
    found = assess(drain)
    assert isinstance(found, NotDrained)
    return [a.target.key.name for a in found.actions if isinstance(a, Evict)]


STAYS = {
    "of a DaemonSet": pod("p").of_daemon_set(),
    "mirror": pod("p").mirror(),
    "succeeded": pod("p").phase("Succeeded"),
    "failed": pod("p").phase("Failed"),
    "exempted by label": pod("p").labelled({"cluster.x-k8s.io/drain": "skip"}),
}


@pytest.mark.parametrize("kind", STAYS)
def test_a_pod_that_may_stay_holds_nothing_up(kind: str) -> None:
    assert assess(draining(CORDONED, STAYS[kind])) == Drained()


def test_the_node_is_cordoned_first_and_alone() -> None:
    found = assess(draining(node("n").ready(), pod("web")))
    assert isinstance(found, NotDrained)
    (action,) = found.actions
    assert isinstance(action, Patch)
    assert action.patch["spec"] == {"unschedulable": True}


def test_an_empty_cordoned_node_is_drained() -> None:
    assert assess(draining(CORDONED)) == Drained()


def test_the_least_important_pods_go_first() -> None:
    assert evicted(draining(CORDONED, pod("b").priority(10), pod("a"), pod("c").priority(-1))) == ["c", "a", "b"]


def test_a_round_evicts_no_more_than_a_batch() -> None:
    assert len(evicted(draining(CORDONED, *(pod(f"p-{n}") for n in range(MOST_EVICTIONS + 7))))) == MOST_EVICTIONS


def test_of_pods_under_one_budget_only_as_many_are_evicted_as_it_allows() -> None:
    pods = [pod(f"web-{n}").labelled(app="web") for n in range(3)]
    drain = draining(CORDONED, *pods, budget("keep").over("web").allowing(1))
    assert evicted(drain) == ["web-0"]
    found = assess(drain)
    assert isinstance(found, NotDrained)
    assert "default/web-1 (PodDisruptionBudget default/keep), default/web-2" in found.why


def test_a_budget_of_another_namespace_holds_nothing() -> None:
    assert evicted(draining(CORDONED, pod("web"), budget("keep", "other").over("web").allowing(0))) == ["web"]


def test_a_budget_that_nobody_has_counted_is_left_to_the_api() -> None:
    assert evicted(draining(CORDONED, pod("web"), budget("keep").over("web"))) == ["web"]


def test_a_terminating_pod_is_waited_for_and_not_evicted_again() -> None:
    drain = draining(CORDONED, pod("web").deleting())
    found = assess(drain)
    assert isinstance(found, NotDrained)
    assert found.actions == ()
    assert "terminating: default/web" in found.why


def test_a_pod_that_shall_complete_is_waited_for() -> None:
    drain = draining(CORDONED, pod("job").labelled({"cluster.x-k8s.io/drain": "wait-completed"}))
    found = assess(drain)
    assert isinstance(found, NotDrained)
    assert found.actions == ()


def test_many_pods_are_not_all_named() -> None:
    found = assess(draining(CORDONED, *(pod(f"p-{n}") for n in range(9))))
    assert isinstance(found, NotDrained)
    assert "and 4 more" in found.why


@pytest.mark.parametrize(("silent_for", "given_up"), [(10, False), (59, False), (61, True)])
def test_an_unreachable_node_is_given_up_after_a_grace(silent_for: float, given_up: bool) -> None:
    silent = node("n").cordoned().condition("Ready", "Unknown", since=silent_for)
    found = assess(draining(silent, pod("web")))
    assert isinstance(found, Drained) is given_up
    if isinstance(found, Drained):
        assert "Node n is unreachable" in found.skipped


def test_a_node_that_is_not_ready_but_answers_is_drained() -> None:
    assert evicted(draining(node("n").not_ready(3600).cordoned(), pod("web"))) == ["web"]


@pytest.mark.parametrize(("passed", "given_up"), [(119, False), (120, True)])
def test_the_timeout_ends_a_drain(passed: float, given_up: bool) -> None:
    started = NOW - timedelta(seconds=passed)
    drain = draining(CORDONED, pod("web"), started_at=started, timeout=timedelta(minutes=2))
    assert isinstance(assess(drain), Drained) is given_up
    assert isinstance(assess(replace(drain, timeout=None)), NotDrained)


def test_every_pod_is_in_exactly_one_bucket() -> None:
    pods = [
        *STAYS.values(),
        pod("a"),
        pod("b").deleting(),
        pod("c").labelled({"cluster.x-k8s.io/drain": "wait-completed"}),
    ]
    built = [replace_name(builder, n) for n, builder in enumerate(pods)]
    found = sort(built, [budget("keep").over("a").allowing(0).build()])
    names = [
        p["metadata"]["name"]
        for bucket in (found.staying, found.terminating, found.completing, found.evictable)
        for p in bucket
    ]
    names += [p["metadata"]["name"] for p, _ in found.blocked]
    assert sorted(names) == sorted(p["metadata"]["name"] for p in built)


def replace_name(builder: Builder, number: int) -> dict[str, Any]:
    body = builder.build()
    body["metadata"]["name"] = f"p-{number}"
    return body


def test_uncordon_undoes_cordon() -> None:
    body = node("n").ready().annotated("theirs").provider_id("sim://1").build()
    there = merged(body, cordon(body, "uid-m-1", "why").patch)
    assert merged(there, uncordon(there, "why").patch) == body
