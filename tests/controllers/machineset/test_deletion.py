"""Which Machines a MachineSet deletes, and that it keeps to its choice."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.actions import Delete, Patch
from controllers.kernel.names import machine_name, machine_prefix
from controllers.kernel.plan import Plan, Wait
from controllers.kernel.refs import MACHINE_SET
from tests.builders import FakeView, machine, machine_set
from tests.builders.loop import plan_for
from tests.builders.objects import Builder, MachineSetBuilder
from tests.builders.plans import creates, deletes, events, status_of

PREFIX = machine_prefix("pool", "uid-pool")


def pool(replicas: int, policy: str = "Random") -> MachineSetBuilder:
    """A set whose present generation it has observed."""
    return machine_set("pool").replicas(replicas).delete_policy(policy).observed()


def member(name: str) -> Any:
    return machine(name).of(machine_set("pool"))


def plan(*objects: Builder) -> Plan:
    return plan_for(FakeView(*objects), MACHINE_SET, "pool")


DELETED = {
    "nobody while there are as many as asked for": ((pool(1), member("a").ready()), []),
    "the marked one, though others are broken": (
        (pool(2), member("a").ready().marked_for_deletion(), member("b").failed(), member("c").not_ready()),
        ["a"],
    ),
    "the one without a node before the unready one": (
        (pool(2), member("a").pending(), member("b").not_ready(), member("c").ready()),
        ["a"],
    ),
    "the oldest by policy": (
        (pool(1, "Oldest"), member("a").ready().created(10), member("b").ready().created(20)),
        ["b"],
    ),
    "the newest by policy": (
        (pool(1, "Newest"), member("a").ready().created(10), member("b").ready().created(20)),
        ["a"],
    ),
    "a deleting one counts as gone": ((pool(1), member("a").ready().deleting(), member("b").ready()), []),
    "all of them for none": ((pool(0, "Oldest"), member("a").created(9), member("b").created(8)), ["a", "b"]),
}


@pytest.mark.parametrize(("objects", "want"), DELETED.values(), ids=DELETED.keys())
def test_deleted(objects: tuple[Builder, ...], want: list[str]) -> None:
    found = plan(*objects)
    assert deletes(found) == want
    assert creates(found) == []


def test_the_choice_is_recorded_in_a_guarded_write_before_the_first_delete() -> None:
    found = plan(pool(1, "Oldest").version("77"), member("a").ready().created(20), member("b").ready().created(10))
    (guard,), second, *_ = found.steps
    assert isinstance(guard, Patch)
    assert guard.resource_version == "77"
    assert guard.patch["status"]["ordinals"]["leaving"] == ["a"]
    (delete,) = [action for action in second if isinstance(action, Delete)]
    assert delete.target.uid == "uid-a", "a namesake that came later is safe"


def test_victims_are_not_chosen_in_the_round_that_first_sees_new_replicas() -> None:
    """The mark that the Cluster Autoscaler put on a Machine before it scaled may arrive later than the scaling."""
    fresh = pool(1).generation(2)
    found = plan(fresh, member("a").ready(), member("b").ready())
    assert deletes(found) == []
    assert status_of(found)["observedGeneration"] == 2
    assert isinstance(found.outcome, Wait)


def test_those_chosen_are_deleted_again_until_they_are_seen_going() -> None:
    found = plan(with_leaving(pool(1), "a"), member("a").ready(), member("b").ready())
    assert deletes(found) == ["a"]
    assert "leaving" not in status_of(found).get("ordinals", {})


def test_one_seen_going_leaves_the_journal() -> None:
    found = plan(with_leaving(pool(1), "a"), member("a").ready().deleting(30), member("b").ready())
    assert deletes(found) == []
    assert status_of(found)["ordinals"] == {"next": 0, "leaving": None} or status_of(found)["ordinals"] == {
        "leaving": None
    }


def test_scaling_up_again_takes_back_those_that_are_not_seen_going() -> None:
    """Their deletes may have been sent already; then they are seen going soon, and replaced."""
    found = plan(with_leaving(pool(2), "a", "c"), *(member(n).ready() for n in "ab"), member("c").not_ready())
    assert deletes(found) == ["c"], "the healthy one is taken back"
    assert creates(found) == []
    assert status_of(found)["ordinals"]["leaving"] == ["c"]


def test_one_that_leaves_by_its_labels_takes_back_another_that_was_chosen() -> None:
    """Else nobody would be left until a new one is made, though one that works is there."""
    stray = member("a").ready().labelled(pool="aside")
    found = plan(with_leaving(pool(1), "b", "c"), stray, member("b").ready(), member("c").not_ready())
    assert deletes(found) == ["c"]
    assert creates(found) == []
    assert status_of(found)["ordinals"]["leaving"] == ["c"]


def test_one_too_many_that_leaves_by_its_labels_takes_nobody_back() -> None:
    stray = member("a").ready().labelled(pool="aside")
    found = plan(with_leaving(pool(1), "c"), stray, member("b").ready(), member("c").ready())
    assert deletes(found) == ["c"]


def test_pending_machines_are_given_up_first_and_deleted_by_name() -> None:
    names = [machine_name(PREFIX, ordinal) for ordinal in (2, 1)]
    found = plan(pool(1).ordinals(3, "1-2"), machine(machine_name(PREFIX, 0)).of(machine_set("pool")).ready())
    assert deletes(found) == names
    assert status_of(found)["ordinals"]["reserved"] is None, "it leaves the journal before the delete"


def test_a_batch_makes_one_event() -> None:
    found = plan(pool(0, "Oldest"), member("a").created(9), member("b").created(8))
    assert events(found) == ["Deleted 2 Machines: a, b"]


def test_each_delete_says_why_this_one() -> None:
    found = plan(pool(1), member("a").ready(), member("b").not_ready())
    (delete,) = [action for action in found.actions() if isinstance(action, Delete)]
    assert delete.why == "MachineSet pool needs 1 Machine; this one goes first: it is not ready"


def with_leaving(builder: MachineSetBuilder, *names: str) -> MachineSetBuilder:
    builder.status["ordinals"] = {"next": 0, "leaving": list(names)}
    return builder
