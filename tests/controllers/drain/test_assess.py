"""How far a drain is, and what it does next."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from api import names
from controllers.drain.assess import Drained, NotDrained, assess
from controllers.drain.cordon import cordon, uncordon
from controllers.drain.pods import sort
from controllers.drain.stages import MOST_EVICTIONS, Deadlines
from controllers.kernel.actions import Evict, Patch
from tests.builders import node
from tests.controllers.drain.scene import CLOSED, draining, evicted, next_step
from tests.controllers.machine.arena import merged
from tests.controllers.machine.pods import budget, daemon_set, drain_rule, pod

STAYS = {
    "of a DaemonSet": (pod("p").of_daemon_set(), daemon_set("p")),
    "mirror": (pod("p").mirror(),),
    "succeeded": (pod("p").phase("Succeeded"),),
    "failed": (pod("p").phase("Failed"),),
    "exempted by CAPI's label": (pod("p").labelled({names.POD_DRAIN_LABEL: "skip"}),),
    "exempted by our label": (pod("p").labelled({names.OWN_POD_DRAIN_LABEL: "skip"}),),
    "exempted by a rule": (pod("p"), drain_rule("r").drain("Skip")),
}


@pytest.mark.parametrize("kind", STAYS)
def test_a_pod_that_may_stay_holds_nothing_up(kind: str) -> None:
    assert assess(draining(CLOSED, *STAYS[kind])) == Drained()


def test_the_node_is_cordoned_and_tainted_first_and_alone() -> None:
    found = next_step(draining(node("n").ready().tainted("theirs"), pod("web")))
    (action,) = found.actions
    assert isinstance(action, Patch)
    assert action.patch["spec"]["unschedulable"] is True
    assert [taint["key"] for taint in action.patch["spec"]["taints"]] == ["theirs", names.DRAINING_TAINT]
    assert action.resource_version, "somebody else's taint could get lost"


def test_a_node_that_a_person_cordoned_still_gets_the_taint() -> None:
    (action,) = next_step(draining(node("n").ready().cordoned(), pod("web"))).actions
    assert isinstance(action, Patch)
    assert set(action.patch) == {"spec"}
    assert set(action.patch["spec"]) == {"taints"}


def test_an_empty_cordoned_node_is_drained() -> None:
    assert assess(draining(CLOSED)) == Drained()


def test_a_round_evicts_no_more_than_a_batch() -> None:
    assert len(evicted(draining(CLOSED, *(pod(f"p-{n}") for n in range(MOST_EVICTIONS + 7))))) == MOST_EVICTIONS


def test_a_terminating_pod_is_waited_for_and_not_evicted_again() -> None:
    found = next_step(draining(CLOSED, pod("web").deleting()))
    assert found.actions == ()
    assert "terminating: default/web" in found.why


@pytest.mark.parametrize("label", [names.POD_DRAIN_LABEL, names.OWN_POD_DRAIN_LABEL])
def test_a_pod_that_shall_complete_is_waited_for(label: str) -> None:
    found = next_step(draining(CLOSED, pod("job").labelled({label: "wait-completed"})))
    assert found.actions == ()
    assert not found.blocked
    assert "wait for completion of: default/job" in found.why


def test_many_pods_are_not_all_named() -> None:
    assert "and 4 more" in next_step(draining(CLOSED, *(pod(f"p-{n}") for n in range(9)))).why


def test_a_node_that_is_silent_for_a_moment_is_drained_as_usual() -> None:
    silent = node("n").draining_for("uid-m-1").condition("Ready", "Unknown", since=59)
    (action,) = next_step(draining(silent, pod("web"))).actions
    assert isinstance(action, Evict)
    assert action.grace_seconds is None


def test_of_a_node_that_is_silent_for_long_pods_are_asked_to_go_at_once_and_not_waited_for() -> None:
    """cluster-api#13508: a stopped host and a budget, and the drain waited for ever."""
    silent = node("n").draining_for("uid-m-1").condition("Ready", "Unknown", since=61)
    held = (pod("held"), budget("keep").over("held").allowing(0))
    found = next_step(draining(silent, pod("web"), pod("vital").priority(2_000_000_000), *held))
    asked = [(a.target.key.name, a.grace_seconds) for a in found.actions if isinstance(a, Evict)]
    assert asked == [("web", 1), ("vital", 1)]
    left = assess(draining(silent, pod("web").deleting(), *held))
    assert isinstance(left, Drained)
    assert left.out_of_reach
    assert "Node n is unreachable" in left.skipped
    assert "default/held (PodDisruptionBudget default/keep)" in left.skipped


def test_a_node_that_is_not_ready_but_answers_is_drained() -> None:
    assert evicted(draining(node("n").not_ready(3600).draining_for("uid-m-1"), pod("web"))) == ["web"]


@pytest.mark.parametrize(("passed", "given_up"), [(119, False), (120, True)])
def test_the_timeout_ends_a_drain(passed: float, given_up: bool) -> None:
    drain = draining(CLOSED, pod("web"), since=passed, deadlines=Deadlines(give_up=timedelta(minutes=2)))
    assert isinstance(assess(drain), Drained) is given_up
    assert isinstance(assess(replace(drain, deadlines=Deadlines())), NotDrained)


def test_what_ends_with_the_pods_is_told_as_the_drain_begins() -> None:
    scratch = pod("cache").volume("tmp", emptyDir={})
    found = next_step(draining(node("n").ready(), pod("web"), pod("lone").bare(), scratch))
    assert found.lost == "default/cache (emptyDir tmp), default/lone (no controller makes it again)"
    assert next_step(draining(CLOSED, pod("lone").bare())).lost == ""


def test_a_pod_that_stays_loses_nothing() -> None:
    bare = pod("lone").bare().labelled({names.POD_DRAIN_LABEL: "skip"})
    assert next_step(draining(node("n").ready(), bare)).lost == ""


def test_every_pod_is_in_exactly_one_bucket() -> None:
    pods = [
        *(objects[0] for kind, objects in STAYS.items() if "rule" not in kind),
        pod("a"),
        pod("b").deleting(),
        pod("c").labelled({names.POD_DRAIN_LABEL: "wait-completed"}),
        pod("d").priority(7),
        pod("e").of_daemon_set(),
    ]
    for number, builder in enumerate(pods):
        builder.metadata["name"] = f"p-{number}"
    drain = draining(CLOSED, *pods, daemon_set("p"), budget("keep").over("a").allowing(0))
    found = sort(drain.drain_context)
    buckets = (found.staying, found.terminating, found.completing, found.evictable, found.later)
    title = [p["metadata"]["name"] for bucket in buckets for p in bucket]
    title += [p["metadata"]["name"] for p, _ in found.blocked]
    assert sorted(title) == sorted(p["metadata"]["name"] for p in drain.drain_context.pods)


@pytest.mark.parametrize("before", [node("n").ready(), node("n").ready().cordoned().tainted("theirs")])
def test_uncordon_undoes_cordon(before: object) -> None:
    body = before.annotated("theirs").provider_id("sim://1").build()  # type: ignore[attr-defined]
    there = merged(body, cordon(body, "uid-m-1", "why").patch)
    assert merged(there, uncordon(there, "why").patch) == body
