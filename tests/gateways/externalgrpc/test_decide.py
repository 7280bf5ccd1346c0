"""What requests come to: tables over the pure decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api import names
from controllers.externalgrpc.decide import (
    MARK,
    Asked,
    Decision,
    Done,
    Edit,
    GroupFacts,
    NotNow,
    Refusal,
    decrease,
    delete,
    delete_jointly,
    increase,
)
from controllers.kernel import machine_facts
from controllers.kernel.actions import Patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, Ref
from controllers.scaling.node_group import Bounds, NodeGroup
from nodewright.gateways.externalgrpc import scaler
from tests.builders.objects import MachineBuilder, machine, machine_deployment

ID = "MachineDeployment/default/workers"


def facts(
    *machines: MachineBuilder,
    replicas: int,
    bounds: tuple[int, int] = (0, 10),
    removed: tuple[str, ...] = (),
    applied: bool = True,
    rolling: bool = False,
) -> GroupFacts:
    ref = Ref(MACHINE_DEPLOYMENT, Key("default", "workers"), "u1")
    group = NodeGroup(ref, Bounds(*bounds), replicas, "7")
    read = tuple(machine_facts.read(each.build()) for each in machines)
    return GroupFacts(group, read, rolling, frozenset(removed), applied)


def asked(*machines: MachineFacts, group: str = ID, unregistered: bool = False) -> list[Asked]:
    return [Asked(f"sim://{each.key.name}", each, group, unregistered) for each in machines]


def workers(*names_: str) -> list[MachineBuilder]:
    return [machine(name).ready().on_node(name) for name in names_]


def refusal(decision: Decision) -> str:
    assert isinstance(decision, Refusal)
    return f"{decision.code}: {decision.why}"


def writes(decision: Decision) -> list[tuple[str, object]]:
    """(name, what) in the order in which they are written: a mark, or the size."""
    assert isinstance(decision, Edit)
    found: list[tuple[str, object]] = []
    for action in decision.plan.actions():
        if isinstance(action, Patch):
            said = action.patch["metadata"]["annotations"]
            mark = said.get(names.DELETE_MACHINE_ANNOTATION)
            found.append((action.target.key.name, action.patch["spec"]["replicas"] if "spec" in action.patch else mark))
    return found


@pytest.mark.parametrize("delta", [0, -1, -(2**31)])
def test_an_increase_must_be_positive(delta: int) -> None:
    assert refusal(increase(facts(replicas=1), delta)) == "INVALID_ARGUMENT: size increase must be positive"


def test_an_increase_ends_at_the_maximum() -> None:
    assert writes(increase(facts(*workers("a"), replicas=1), 9)) == [("workers", 10)]
    assert refusal(increase(facts(*workers("a"), replicas=1), 10)) == (
        "FAILED_PRECONDITION: size increase too large - desired:11 max:10"
    )


def test_an_increase_waits_for_machines_that_it_would_keep() -> None:
    leaving = facts(*workers("a", "b"), replicas=1, removed=("b",), applied=False)
    assert isinstance(increase(leaving, 1), NotNow)


def test_a_deletion_marks_first_and_lowers_the_size_with_the_name_in_one_write() -> None:
    seen = facts(*workers("a", "b"), replicas=2)
    decision = delete(seen, asked(seen.machines[1]))
    assert writes(decision) == [("b", MARK), ("workers", 1)]
    assert isinstance(decision, Edit)
    (size,) = (a for a in decision.plan.actions() if isinstance(a, Patch) and a.target.kind == MACHINE_DEPLOYMENT)
    assert size.patch["metadata"]["annotations"] == {names.REMOVED_MACHINES_ANNOTATION: "b"}
    assert size.resource_version == "7"


def test_a_deletion_that_was_carried_out_is_not_carried_out_again() -> None:
    seen = facts(*workers("a"), machine("b").marked_for_deletion(MARK), replicas=1, removed=("b",), applied=False)
    assert delete(seen, asked(seen.machines[1])) == Done()
    gone = facts(*workers("a"), machine("b").deleting(), replicas=1, removed=("b",))
    assert delete(gone, asked(gone.machines[1])) == Done()


def test_a_deletion_that_died_between_its_writes_is_finished() -> None:
    seen = facts(*workers("a"), machine("b").marked_for_deletion(MARK), replicas=2)
    assert writes(delete(seen, asked(seen.machines[1]))) == [("workers", 1)]


def test_the_mark_of_an_unfinished_deletion_chooses_no_victim_for_another_one() -> None:
    """The Machine b was marked, then the gateway died; now a is to go, and b has pods again."""
    seen = facts(*workers("a"), machine("b").ready().on_node("b").marked_for_deletion(MARK), replicas=2)
    assert writes(delete(seen, asked(seen.machines[0]))) == [("a", MARK), ("b", None), ("workers", 1)]


def test_a_person_who_marked_another_machine_is_asked_first() -> None:
    seen = facts(*workers("a"), machine("b").ready().on_node("b").marked_for_deletion("yes"), replicas=2)
    assert "Machines b of MachineDeployment/default/workers are marked to go first" in refusal(
        delete(seen, asked(seen.machines[0]))
    )


def test_no_further_machine_is_marked_while_one_is_yet_to_go_for_which_the_size_is_lower_already() -> None:
    """Of two that are marked the controllers might take the later one, whose own size is then never lowered."""
    seen = facts(*workers("a"), machine("b").marked_for_deletion(MARK), replicas=1, removed=("b",), applied=False)
    assert isinstance(delete(seen, asked(seen.machines[0])), NotNow)
    assert delete(seen, asked(seen.machines[1])) == Done()


def test_a_removal_that_somebody_overtook_by_scaling_up_is_asked_for_anew() -> None:
    seen = facts(*workers("a", "b"), replicas=2, removed=("b",))
    assert seen.leaving == ()
    assert writes(delete(seen, asked(seen.machines[1]))) == [("b", MARK), ("workers", 1)]


@pytest.mark.parametrize("replicas", [1, 4])
def test_nothing_goes_while_the_set_has_yet_to_act(replicas: int) -> None:
    """Lowered now, the size would be met by creating fewer, or by removing one that nobody chose."""
    seen = facts(*workers("a", "b"), replicas=replicas, applied=False)
    assert isinstance(delete(seen, asked(seen.machines[0])), NotNow)


def test_a_deletion_ends_at_the_minimum() -> None:
    seen = facts(*workers("a", "b"), replicas=2, bounds=(1, 3))
    text = refusal(delete(seen, asked(*seen.machines)))
    assert text.startswith("FAILED_PRECONDITION: unable to delete 2 machines in")
    assert text.endswith("min size reached, nodes will not be deleted")


def test_nodes_of_others_are_refused_and_nothing_else_is_done() -> None:
    seen = facts(*workers("a", "b"), replicas=2)
    assert refusal(delete(seen, [*asked(seen.machines[0]), Asked("x", None)])).startswith("NOT_FOUND")
    other = asked(seen.machines[0], group="MachineDeployment/default/other")
    assert "does not contain 'sim://a'" in refusal(delete(seen, other))
    assert refusal(delete(seen, [])) == "INVALID_ARGUMENT: no nodes are named"


def test_an_instance_that_has_become_a_ready_node_is_not_given_up() -> None:
    seen = facts(*workers("a"), replicas=1)
    assert "has become the Node a" in refusal(delete(seen, asked(seen.machines[0], unregistered=True)))


def test_one_node_named_twice_lowers_the_size_once() -> None:
    seen = facts(*workers("a", "b"), replicas=2)
    assert writes(delete(seen, asked(seen.machines[1], seen.machines[1]))) == [("b", MARK), ("workers", 1)]


def test_while_a_rollout_is_under_way_nothing_is_chosen() -> None:
    seen = facts(*workers("a", "b"), replicas=2, rolling=True)
    assert "a rollout of" in refusal(delete(seen, asked(seen.machines[0])))


@pytest.mark.parametrize("delta", [0, 1])
def test_a_decrease_must_be_negative(delta: int) -> None:
    assert refusal(decrease(facts(replicas=1), delta)) == "INVALID_ARGUMENT: size decrease must be negative"


def test_a_decrease_takes_machines_without_a_node_and_no_other() -> None:
    seen = facts(*workers("a"), machine("b").pending(), machine("c").failed(), replicas=3)
    assert writes(decrease(seen, -1)) == [("c", MARK), ("workers", 2)]
    assert writes(decrease(seen, -2)) == [("c", MARK), ("b", MARK), ("workers", 1)]
    assert refusal(decrease(seen, -3)) == (
        "FAILED_PRECONDITION: attempt to delete existing nodes targetSize:3 delta:-3 existingNodes: 1"
    )


def test_a_decrease_waits_for_machines_that_are_being_made_and_takes_those_that_never_were() -> None:
    assert isinstance(decrease(facts(*workers("a"), replicas=3, applied=False), -2), NotNow)
    assert writes(decrease(facts(*workers("a"), replicas=3), -2)) == [("workers", 1)]


def test_a_decrease_ends_at_the_minimum() -> None:
    assert "min:1" in refusal(decrease(facts(*workers("a"), machine("b").pending(), replicas=2, bounds=(1, 3)), -2))


def edit(removed: str = "") -> Edit:
    decision = increase(facts(*workers("a"), replicas=1), 2)
    assert isinstance(decision, Edit)
    return replace(decision, removed=removed)


def group_now(replicas: int, version: str, removed: str = "") -> dict[str, Any]:
    built = machine_deployment("workers").replicas(replicas).version(version)
    return (built.annotated(names.REMOVED_MACHINES_ANNOTATION, removed) if removed else built).build()


@pytest.mark.parametrize(
    ("now", "done"),
    [
        (group_now(3, "9"), True),
        (group_now(1, "7"), False),
        (group_now(1, "9"), False),  # somebody wrote a status
    ],
)
def test_what_became_of_a_write_whose_answer_was_lost(now: dict[str, Any], done: bool) -> None:
    assert scaler.was_done(now, edit()) is done


def test_where_nobody_can_say_what_became_of_a_write_it_is_not_repeated() -> None:
    """Somebody else scaled as well: asked for 3, the group has 4. Once more would be one too many."""
    with pytest.raises(scaler.UnavailableError, match="its size is another one now"):
        scaler.was_done(group_now(4, "9"), edit())


def test_the_same_size_for_another_reason_is_not_this_write() -> None:
    with pytest.raises(scaler.UnavailableError):
        scaler.was_done(group_now(3, "9"), edit(removed="b"))


def test_requests_that_wait_together_are_one_write() -> None:
    seen = facts(*workers("a", "b", "c", "d"), replicas=4)
    joint = delete_jointly(seen, [asked(seen.machines[i]) for i in (0, 2, 3)])
    assert (joint.answers, joint.members) == ({}, (0, 1, 2))
    assert joint.decision is not None
    assert writes(joint.decision) == [("a", MARK), ("c", MARK), ("d", MARK), ("workers", 1)]
    assert isinstance(joint.decision, Edit)
    assert joint.decision.removed == "a,c,d"


def test_each_of_them_has_an_answer_of_its_own() -> None:
    """One names nobody's node, one a node that is going, one nothing; the others are carried out."""
    seen = facts(*workers("a", "b"), machine("c").deleting(), replicas=2)
    a, b, c = seen.machines
    joint = delete_jointly(seen, [[Asked("x", None)], asked(c), [], asked(a), asked(b, group="another"), asked(a, c)])
    assert refusal(joint.answers[0]).startswith("NOT_FOUND")
    assert joint.answers[1] == Done()
    assert refusal(joint.answers[2]).startswith("INVALID_ARGUMENT")
    assert refusal(joint.answers[4]).startswith("INVALID_ARGUMENT")
    assert joint.members == (3, 5)
    assert joint.decision is not None
    assert writes(joint.decision) == [("a", MARK), ("workers", 1)]


def test_the_minimum_holds_for_all_of_them_together_and_no_request_is_carried_out_in_part() -> None:
    seen = facts(*workers("a", "b", "c", "d"), replicas=4, bounds=(2, 9))
    a, b, c, d = seen.machines
    joint = delete_jointly(seen, [asked(a), asked(b, c), asked(d), asked(a), asked(c)])
    assert joint.members == (0, 2, 3)
    for position in (1, 4):
        assert "min size reached" in refusal(joint.answers[position])
    assert joint.decision is not None
    assert writes(joint.decision) == [("a", MARK), ("d", MARK), ("workers", 2)]


def test_where_the_controllers_have_yet_to_act_only_those_wait_that_need_a_write() -> None:
    seen = facts(*workers("a"), machine("b").marked_for_deletion(MARK), replicas=1, removed=("b",), applied=False)
    joint = delete_jointly(seen, [asked(seen.machines[1]), asked(seen.machines[0])])
    assert joint.answers == {0: Done()}
    assert joint.members == (1,)
    assert isinstance(joint.decision, NotNow)


def test_a_rollout_refuses_them_all_and_nothing_is_left_of_an_empty_batch() -> None:
    seen = facts(*workers("a", "b"), replicas=2, rolling=True)
    joint = delete_jointly(seen, [asked(each) for each in seen.machines])
    assert joint.members == (0, 1)
    assert joint.decision is not None
    assert "a rollout of" in refusal(joint.decision)
    assert delete_jointly(seen, []).decision is None


def protected(name: str, *, joined: bool = True) -> MachineBuilder:
    built = machine(name).annotated(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, '{"active":true,"evictable":false}')
    return built.ready().on_node(name) if joined else built


def test_a_protected_machine_is_refused() -> None:
    found = facts(*workers("a"), protected("b"), replicas=2)
    a, b = found.machines
    assert "FAILED_PRECONDITION: Machine b of " in refusal(delete(found, asked(a, b)))
    joint = delete_jointly(found, [asked(a), asked(b)])
    assert joint.members == (0,)
    assert isinstance(joint.answers[1], Refusal)


def test_a_decrease_gives_no_protected_machine_up() -> None:
    found = facts(protected("a", joined=False), machine("b"), replicas=2)
    assert ("b", MARK) in writes(decrease(found, -1))
    assert "attempt to delete existing nodes" in refusal(decrease(found, -2))


def test_a_mark_on_a_protected_machine_chooses_nobody() -> None:
    marked = protected("c").annotated(names.DELETE_MACHINE_ANNOTATION)
    found = facts(*workers("a"), marked, replicas=2)
    assert ("a", MARK) in writes(delete(found, asked(found.machines[0])))
