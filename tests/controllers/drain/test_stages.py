"""Evict, then delete, then force: each stage only if somebody asked for it."""

from __future__ import annotations

from datetime import timedelta

from controllers.drain.assess import Drained, assess
from controllers.drain.stages import Deadlines, Stage
from tests.controllers.drain.scene import CLOSED, deleted, draining, evicted, next_step
from tests.controllers.machine.pods import budget, pod

BUDGET = budget("keep").over("web").allowing(0)
ALL = Deadlines(delete=timedelta(seconds=60), force=timedelta(seconds=120), give_up=timedelta(seconds=180))


def test_by_default_nothing_is_ever_forced() -> None:
    drain = draining(CLOSED, pod("web"), pod("old").deleting(9e5), BUDGET, since=1e6)
    assert next_step(drain).actions == ()


def test_a_blocked_pod_is_deleted_with_its_own_grace_when_the_time_has_come() -> None:
    assert deleted(draining(CLOSED, pod("web"), BUDGET, since=59, deadlines=ALL)) == []
    found = draining(CLOSED, pod("web"), BUDGET, since=60, deadlines=ALL)
    assert deleted(found) == [("web", None)]
    assert not next_step(found).blocked
    assert evicted(found) == []


def test_at_last_it_is_deleted_without_grace_even_if_it_is_terminating() -> None:
    drain = draining(CLOSED, pod("web"), pod("slow").deleting(), BUDGET, since=120, deadlines=ALL)
    assert deleted(drain) == [("web", 0), ("slow", 0)]


def test_what_only_a_finalizer_holds_is_forced_once_and_holds_no_other() -> None:
    stuck = pod("stuck").deleting()
    stuck.metadata["deletionGracePeriodSeconds"] = 0
    drain = draining(CLOSED, stuck, pod("web").priority(5), since=150, deadlines=ALL)
    assert deleted(drain) == [("web", 0)]


def test_the_drain_is_given_up_after_all_stages() -> None:
    found = assess(draining(CLOSED, pod("web"), BUDGET, since=180, deadlines=ALL))
    assert isinstance(found, Drained)
    assert "nodeDrainTimeout (180 s)" in found.skipped


def test_what_shall_complete_or_stay_is_never_deleted() -> None:
    job = pod("job").labelled({"cluster.x-k8s.io/drain": "wait-completed"})
    keep = pod("keep").labelled({"cluster.x-k8s.io/drain": "skip"})
    assert next_step(draining(CLOSED, job, keep, since=150, deadlines=ALL)).actions == ()


def test_a_stage_that_was_left_out_is_passed_over() -> None:
    assert Deadlines(force=timedelta(seconds=10)).stage(timedelta(seconds=9)) is Stage.EVICT
    assert Deadlines(force=timedelta(seconds=10)).stage(timedelta(seconds=10)) is Stage.FORCE
    assert Deadlines().stage(timedelta(days=365)) is Stage.EVICT
