"""Node groups, marks and sizes as all scalers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.kernel import machine_facts
from controllers.kernel.actions import Action, Event, Patch, Scale
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import MACHINE_SET, Key, Ref
from controllers.scaling.node_group import UNBOUNDED, Bounds, NodeGroup, Obstacle, ScaledGroup, is_rolling
from controllers.scaling.resize import (
    ByName,
    Resize,
    Scaler,
    Scaling,
    annotate_group,
    is_marked_by,
    is_marked_by_another,
    needs_mark,
)
from tests.builders.objects import machine, machine_set

REF = Ref(MACHINE_SET, Key("default", "workers"), "u1")
OTHERS = [scaler for scaler in Scaler if scaler != Scaler.AUTOSCALER]


def group(replicas: int, bounds: Bounds = UNBOUNDED) -> NodeGroup:
    return NodeGroup(REF, bounds, replicas, "7")


def facts(name: str, mark: str = "", spelling: str = names.DELETE_MACHINE_ANNOTATION) -> MachineFacts:
    built = machine(name).version("5")
    return machine_facts.read((built.annotated(spelling, mark) if mark else built).build())


@pytest.mark.parametrize(
    ("replicas", "asked", "given_"),
    [(3, 9, 5), (3, 0, 2), (3, 4, 4), (8, 9, 8), (8, 7, 7), (8, 0, 2), (1, 0, 1), (1, 2, 2), (3, -4, 2)],
)
def test_a_size_stays_within_the_bounds_and_what_is_beyond_is_not_moved_further_out(
    replicas: int, asked: int, given_: int
) -> None:
    assert group(replicas, Bounds(2, 5)).clamped(asked) == given_


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 12), st.integers(-5, 20))
def test_no_size_leaves_the_bounds_by_a_scalers_hand(low: int, more: int, replicas: int, asked: int) -> None:
    found = group(replicas, Bounds(low, low + more)).clamped(asked)
    assert found >= 0
    assert found == asked or abs(found - replicas) < abs(asked - replicas)
    assert low <= found <= low + more or (found - replicas) * (asked - replicas) >= 0


def test_without_bounds_a_size_is_never_below_zero() -> None:
    assert [group(1).clamped(size) for size in (-1, 0, 2_000_000_000)] == [0, 0, 2_000_000_000]


def test_a_mark_belongs_to_the_scaler_whose_value_it_has() -> None:
    ours = facts("a", "nodewright-autoscaler")
    assert is_marked_by(ours, Scaler.AUTOSCALER)
    assert not is_marked_by_another(ours, Scaler.AUTOSCALER)
    assert is_marked_by_another(ours, *OTHERS)
    for spelling in (names.DELETE_MACHINE_ANNOTATION, names.CAPI_DELETE_MACHINE_ANNOTATION):
        persons = facts("b", "yes", spelling)
        assert not is_marked_by(persons, *Scaler)
        assert is_marked_by_another(persons, *Scaler)


def test_a_persons_mark_is_enough_and_another_scalers_is_taken_over() -> None:
    """What another scaler marked it may unmark before the size is lowered; then somebody else would go."""
    assert needs_mark(facts("a"), Scaler.AUTOSCALER)
    assert not needs_mark(facts("a", "nodewright-autoscaler"), Scaler.AUTOSCALER)
    assert all(needs_mark(facts("a", other), Scaler.AUTOSCALER) for other in OTHERS)
    assert not needs_mark(facts("a", "yes"), Scaler.AUTOSCALER)
    assert not needs_mark(facts("a", "yes", names.CAPI_DELETE_MACHINE_ANNOTATION), Scaler.AUTOSCALER)


@pytest.mark.parametrize("scaler", Scaler)
def test_every_write_carries_the_version_that_was_decided_on(scaler: Scaler) -> None:
    plan = Scaling(
        scaler=scaler,
        going=[ByName(facts("a"), "not needed"), ByName(facts("b", scaler), "marked before")],
        staying=[ByName(facts("c", scaler), "needed after all")],
        sizes=[
            Resize(group=group(3), replicas=2, why="one less"),
            Resize(group=group(3), replicas=1, why="two less", record={"for": "a"}),
        ],
    ).steps([Event(REF, "Normal", "Scaled", "to 2")])
    marks, sizes, told = plan
    assert [mark_of(action) for action in marks] == [("a", scaler.value, "5"), ("c", None, "5")]
    one, other = sizes
    assert one == Scale(REF, 2, "one less", "7")
    assert isinstance(other, Patch)
    assert other.patch == {"metadata": {"annotations": {"for": "a"}}, "spec": {"replicas": 1}}
    assert other.resource_version == "7"
    assert [type(action) for action in told] == [Event]


def mark_of(action: Action) -> tuple[str, str | None, str]:
    assert isinstance(action, Patch)
    value = action.patch["metadata"]["annotations"][names.DELETE_MACHINE_ANNOTATION]
    return action.target.key.name, value, action.resource_version


def test_a_record_without_a_size_leaves_the_size_alone() -> None:
    written = annotate_group(group(3), {"for": None}, "done")
    assert written.patch == {"metadata": {"annotations": {"for": None}}}
    assert written.resource_version == "7"


def test_nothing_to_change_is_no_step() -> None:
    assert Scaling(scaler=Scaler.CLOUDPOOL).steps() == ()


def test_obstacles_name_all_that_keeps_a_scaler_from_choosing() -> None:
    machines = (facts("a"), facts("b", "yes"), facts("c", "nodewright-cloudpool"))
    free = ScaledGroup(group(3), (facts("a"), facts("c", "nodewright-cloudpool")))
    assert free.obstacles(Scaler.CLOUDPOOL) == {}
    assert list(free.obstacles(Scaler.AUTOSCALER)) == [Obstacle.MARKED_BY_ANOTHER]
    all_ = ScaledGroup(group(1), machines, rolling=True).obstacles(Scaler.CLOUDPOOL)
    assert all_ == {
        Obstacle.SURPLUS: "MachineSet/default/workers has yet to let 2 of its Machines go",
        Obstacle.ROLLOUT: "a rollout of MachineSet/default/workers is under way",
        Obstacle.MARKED_BY_ANOTHER: "Machine b of MachineSet/default/workers is marked to go first",
    }
    besides = {machines[1].key}
    assert ScaledGroup(group(3), machines).obstacles(Scaler.CLOUDPOOL, besides=besides) == {}


def test_machines_that_are_being_deleted_count_for_no_size() -> None:
    going = machine_facts.read(machine("b").deleting().build())
    seen = ScaledGroup(group(3), (facts("a"), going))
    assert (seen.balance, seen.surplus, seen.unmade) == (-2, 0, 2)
    assert [each.key.name for each in seen.live] == ["a"]


def test_a_group_rolls_while_several_sets_have_or_shall_have_machines() -> None:
    old, new = machine_set("old").build(), machine_set("new").build()
    old["spec"]["replicas"], new["spec"]["replicas"] = 0, 3
    assert not is_rolling([old, new])
    old["status"] = {"replicas": 1}
    assert is_rolling([old, new])
    assert not is_rolling([{"spec": None, "status": {"replicas": "many"}}, new])
