"""The quorum planner over all states: never below the quorum, one change at a time, and what can heal heals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.controlplane.course import after
from controllers.controlplane.planner import decide
from controllers.controlplane.quorum import Votes, quorum, votes_of
from controllers.controlplane.state import (
    Health,
    Init,
    InPlace,
    Join,
    Machine,
    Member,
    Phase,
    Policy,
    Remove,
    RemoveMember,
    State,
    UpgradeInPlace,
    Wait,
)
from tests.controllers.controlplane.worlds import MORE_SLOTS, SLOTS, Slot, states

SURGE, FIXED = Policy(), Policy(surge=0)
IN_PLACE = Policy(in_place=InPlace.PREFER)
FIXED_IN_PLACE = Policy(surge=0, in_place=InPlace.REQUIRE)
EVERY_POLICY = (SURGE, FIXED, IN_PLACE, FIXED_IN_PLACE)
MOST_STEPS = 120


@pytest.mark.parametrize(("voters", "expected"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)])
def test_the_quorum_is_a_majority(voters: int, expected: int) -> None:
    assert quorum(voters) == expected


def counted(state: State) -> Votes:
    """What is surely left, reckoned anew: neither the unknown nor the dead count."""
    dead = {machine.name for machine in state.machines if machine.dead}
    voters = [member for member in state.members if not member.learner]
    works = [m for m in voters if m.health is Health.HEALTHY and m.name and m.machine not in dead]
    return Votes(len(voters), len(works))


def check_safe(state: State) -> None:
    """No step breaks the quorum, and none but a consented one leaves it without a loss to spare."""
    before, step = counted(state), decide(state).step
    match step:
        case RemoveMember(member=number):
            [member] = [m for m in state.members if m.id == number]
            later = counted(replace(state, members=tuple(m for m in state.members if m.id != number)))
            assert before.have_quorum, "etcd can't commit it"
            assert later.healthy >= 1, "the last healthy voter went"
            assert later.have_quorum
            if later.margin < 1 and later.healthy < before.healthy:
                assert before.healthy == before.voters, "a healthy one goes while another is sick"
                fixed = state.policy.surge == 0 and later.voters >= state.replicas - 1
                assert state.replicas == 1 or fixed or later.margin >= before.margin
            moving = [m for m in state.machines if m.phase in (Phase.JOINING, Phase.UPDATING) and not m.goes]
            assert not moving or later.healthy == before.healthy, "two changes at once"
            assert member.machine == step.machine
        case UpgradeInPlace(machine=name):
            works = any(m.machine == name and m.works for m in state.members)
            assert not works or before.voters == 1 or before.margin >= 1
            assert all(m.phase is Phase.RUNNING for m in state.machines)
        case Join():
            assert before.healthy == before.voters
            assert not any(member.learner for member in state.members)
            assert not any(m.phase is Phase.JOINING and not m.goes for m in state.machines)
            assert len(state.machines) < state.replicas + max(state.policy.surge, 1)
        case Remove(machine=name):
            carry = {m.machine for m in state.members}
            dead = {m.name for m in state.machines if m.dead}
            works = any(m.works and not m.learner for m in state.members if m.machine == name and name not in dead)
            assert not works or not any(m.deleting and m.name in carry for m in state.machines)
            left = tuple(m for m in state.members if m.machine != name)
            assert not state.members or counted(replace(state, members=left)).have_quorum


def test_no_state_of_up_to_seven_hosts_leads_to_a_step_below_the_quorum() -> None:
    for state in states(SLOTS, 7, (1, 3, 5), (SURGE, FIXED_IN_PLACE)):
        check_safe(state)


def test_no_state_of_up_to_four_hosts_of_any_kind_does() -> None:
    for state in states(MORE_SLOTS, 4, (1, 3, 5), EVERY_POLICY):
        check_safe(state)


def heals(state: State, known: dict[State, bool]) -> bool:
    """Whether all is as desired in the end, if every step succeeds."""
    path: list[State] = []
    good = False
    for _ in range(MOST_STEPS):
        if state in known:
            good = known[state]
            break
        path.append(state)
        step = decide(state).step
        if isinstance(step, Wait) and step.settled:
            good = True
            break
        later = after(state, step)
        if later == state:
            break
        state = later
    known.update(dict.fromkeys(path, good))
    return good


def can_heal(state: State) -> bool:
    """There is a quorum to begin with. A healthy member that has no Machine is a person's to remove."""
    hopeless = state.policy.surge == 0 and state.replicas == 1
    if state.policy.in_place is InPlace.REQUIRE:
        hopeless = hopeless or any(machine.stays for machine in state.machines)
    foreign = any(member.works and not member.machine for member in state.members)
    return votes_of(state.members).have_quorum and counted(state).have_quorum and not hopeless and not foreign


def check_progress(slots: tuple[Slot, ...], most: int, policy: Policy) -> None:
    known: dict[State, bool] = {}
    stuck = [
        state for state in states(slots, most, (1, 3, 5), (policy,)) if can_heal(state) and not heals(state, known)
    ]
    assert not stuck, f"{len(stuck)} never end well, the first: {stuck[0]}, {decide(stuck[0])}"


POLICIES = {"surge": SURGE, "fixed": FIXED, "in place": IN_PLACE, "fixed and in place": FIXED_IN_PLACE}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_what_can_heal_heals(policy: Policy) -> None:
    check_progress(MORE_SLOTS, 3, policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_what_can_heal_heals_among_seven_hosts(policy: Policy) -> None:
    check_progress(MORE_SLOTS, 4, policy)
    check_progress(SLOTS, 7, policy)


@given(st.lists(st.sampled_from(MORE_SLOTS), max_size=7), st.sampled_from((1, 3, 5, 7)), st.sampled_from(EVERY_POLICY))
def test_any_seven_hosts_are_safe_and_heal(chosen: list[Slot], replicas: int, policy: Policy) -> None:
    hosts = [slot.numbered(number) for number, slot in enumerate(chosen)]
    machines = tuple(host.machine for host in hosts if host.machine is not None)
    members = tuple(host.member for host in hosts if host.member is not None)
    state = State(replicas, machines, members, policy=policy)
    check_safe(state)
    if can_heal(state):
        assert heals(state, {}), decide(state)


@given(st.integers(), st.booleans(), st.sampled_from(("", "cp-0")), st.lists(st.sampled_from(MORE_SLOTS), max_size=3))
def test_any_state_has_a_decision(replicas: int, initialized: bool, lock: str, chosen: list[Slot]) -> None:
    hosts = [slot.numbered(number) for number, slot in enumerate(chosen)]
    machines = tuple(host.machine for host in hosts if host.machine is not None)
    members = tuple(host.member for host in hosts if host.member is not None)
    decision = decide(State(replicas, machines, members, initialized=initialized, init_machine=lock))
    assert decision.step.why
    if isinstance(decision.step, Init):
        assert not initialized
        assert not machines
        assert not members
        assert decision.step.machine == lock


def machine(name: str, **fields: object) -> Machine:
    return replace(Machine(name, created=int(name[-1])), **fields)  # type: ignore[arg-type]


def member(number: int, health: Health = Health.HEALTHY, **fields: object) -> Member:
    return replace(Member(number, f"node-{number}", f"cp-{number}", health=health), **fields)  # type: ignore[arg-type]


THREE = (machine("cp-1"), machine("cp-2"), machine("cp-3"))


def test_a_dead_hosts_member_goes_before_its_replacement_joins() -> None:
    machines = (*THREE[:2], machine("cp-3", dead=True))
    state = State(3, machines, (member(1), member(2), member(3)))
    steps = []
    while not isinstance(step := decide(state).step, Wait) or not step.settled:
        steps.append(type(step).__name__)
        state = after(state, step)
    assert [name for name in steps if name != "Wait"] == ["Remove", "RemoveMember", "Join"]
    assert len(state.members) == 3


def test_three_of_three_lose_none_before_a_fourth_has_joined() -> None:
    state = State(3, (*THREE[:2], machine("cp-3", replace=True)), (member(1), member(2), member(3)))
    decision = decide(state)
    assert isinstance(decision.step, Join)
    assert decision.refusals == (
        "Machine cp-3 does not go: without etcd member node-3 2 of 2 voters are healthy, quorum is 2, "
        "and no further loss could be borne",
    )


@pytest.mark.parametrize(
    "young", [{"whole": False}, {}], ids=["its pods do not run yet", "its member is not healthy yet"]
)
def test_a_new_machine_that_does_not_work_yet_is_not_taken_for_the_one_too_many(young: dict[str, Any]) -> None:
    """Seen on real hosts: the new one had a Node and no API server yet, went as the sickest, and so on for ever."""
    old = tuple(replace(each, up_to_date=False) for each in THREE)
    state = State(3, (*old, machine("cp-4", created=9, **young)), tuple(member(n) for n in (1, 2, 3)))
    if young:
        state = replace(state, members=(*state.members, member(4)))
    decision = decide(state)
    assert isinstance(decision.step, Wait)
    assert "cp-4" in decision.step.why
    grown = replace(state, machines=(*old, machine("cp-4", created=9)), members=tuple(member(n) for n in (1, 2, 3, 4)))
    step = decide(grown).step
    assert isinstance(step, Remove)
    assert step.machine == "cp-1"


def test_two_of_five_dead_are_both_removed_before_anybody_joins() -> None:
    """Cluster API issue 10125: it hung after the first deletion."""
    machines = (*THREE, machine("cp-4", dead=True), machine("cp-5", dead=True))
    state = State(5, machines, tuple(member(number) for number in range(1, 6)))
    taken = []
    while not isinstance(step := decide(state).step, Join):
        taken.append(step)
        state = after(state, step)
    assert sum(isinstance(step, RemoveMember) for step in taken) == 2
    assert sum(isinstance(step, Remove) for step in taken) == 2


def test_without_a_quorum_nothing_is_removed() -> None:
    machines = (machine("cp-1"), machine("cp-2", dead=True), machine("cp-3", dead=True))
    decision = decide(State(3, machines, tuple(member(number) for number in (1, 2, 3))))
    assert isinstance(decision.step, Wait)
    assert decision.step.stuck
    assert "restore a snapshot" in decision.step.why


def test_a_drained_machine_keeps_its_host_while_its_member_is_needed() -> None:
    machines = (machine("cp-1", phase=Phase.DRAINED), machine("cp-2"), machine("cp-3"))
    members = (member(1), member(2), member(3, Health.UNKNOWN))
    decision = decide(State(3, machines, members))
    assert isinstance(decision.step, Wait)
    assert "cp-1 does not go" in decision.refusals[0]


def test_a_cluster_is_never_initialized_twice() -> None:
    assert isinstance(decide(State(1, initialized=False)).step, Init)
    assert not isinstance(decide(State(1, initialized=True)).step, Init)
    traces = State(1, initialized=False, members=(member(1),))
    assert not isinstance(decide(traces).step, Init)
    foreign = State(1, initialized=False, machines=(machine("cp-1"),))
    assert not isinstance(decide(foreign).step, Init)


def test_a_single_control_plane_is_updated_in_place_and_three_one_by_one() -> None:
    old = machine("cp-1", up_to_date=False)
    assert isinstance(decide(State(1, (old,), (member(1),), policy=IN_PLACE)).step, UpgradeInPlace)
    three = tuple(replace(each, up_to_date=False) for each in THREE)
    members = (member(1), member(2), member(3))
    assert decide(State(3, three, members, policy=IN_PLACE)).step == UpgradeInPlace(
        "cp-1", "Machine cp-1 gets the present template"
    )
    sick = (member(1), member(2), member(3, Health.UNKNOWN))
    refused = decide(State(3, (*three[:2], THREE[2]), sick, policy=IN_PLACE))
    assert isinstance(refused.step, Wait)


def test_a_broken_single_control_plane_gets_the_template_that_may_cure_it() -> None:
    broken = machine("cp-1", up_to_date=False, whole=False)
    state = State(1, (broken,), (), etcd_unknown="nobody answers", policy=IN_PLACE)
    assert isinstance(decide(state).step, UpgradeInPlace)
    assert isinstance(decide(replace(state, replicas=3, machines=(broken, THREE[1]))).step, Wait)


@pytest.mark.parametrize("replicas", [-1, 0, 2, 4, 8, 9])
def test_even_and_absurd_numbers_are_refused(replicas: int) -> None:
    step = decide(State(replicas)).step
    assert isinstance(step, Wait)
    assert step.stuck
    assert "spec.replicas" in step.why


def test_who_may_not_be_replaced_any_more_stays() -> None:
    limit = Policy(remediates="it was replaced 3 times, maxRetry is 3")
    state = State(3, (*THREE[:2], machine("cp-3", dead=True)), (member(1), member(2), member(3)), policy=limit)
    decision = decide(state)
    assert isinstance(decision.step, Wait)
    assert decision.refusals[0] == "Machine cp-3 is not replaced: it was replaced 3 times, maxRetry is 3"


def test_every_wait_says_why() -> None:
    for state in states(MORE_SLOTS, 3, (1, 3), (SURGE, FIXED)):
        decision = decide(state)
        assert decision.step.why
        assert all(decision.refusals)
