"""A control plane over failure domains: where Machines join, which leave, and that no quorum is risked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.conditions import ControlPlaneCondition, MachineCondition, Reason
from api.validate import validate
from controllers.controlplane.course import after
from controllers.controlplane.placement import loads, next_domain
from controllers.controlplane.planner import decide
from controllers.controlplane.reconciler import same_to_control_planes
from controllers.controlplane.state import Health, InPlace, Machine, Member, Policy, Remove, State, Wait
from controllers.kernel.actions import Event
from controllers.kernel.failure_domains import is_even
from controllers.kernel.refs import MACHINE
from tests.builders.clock import ago
from tests.builders.machines import MachineBuilder
from tests.builders.plans import condition_of, creates, patches, status_of
from tests.controllers.controlplane.test_quorum import EVERY_POLICY, FIXED, SURGE, check_safe, heals
from tests.controllers.controlplane.test_reconciler import (
    ControlPlaneBuilder,
    cluster,
    machine,
    members,
    planned,
    world,
)
from tests.controllers.controlplane.worlds import MORE_SLOTS, Slot

ABC = ("a", "b", "c")


def state(
    placed: str, replicas: int, *, old: str = "", policy: Policy = SURGE, domains: tuple[str, ...] = ABC
) -> State:
    """A working member in the domain of each letter; those at the places in ``old`` are of an earlier template."""
    machines, listed = [], []
    for number, domain in enumerate(placed):
        name = f"cp-{number}"
        machines.append(Machine(name, number, domain=domain, up_to_date=str(number) not in old))
        listed.append(Member(number + 1, name, name, health=Health.HEALTHY))
    return State(replicas, tuple(machines), tuple(listed), policy=policy, domains=domains)


def settled(found: State, *, most: int = 200) -> State:
    for _ in range(most):
        check_safe(found)
        step = decide(found).step
        if isinstance(step, Wait) and step.settled:
            return found
        found = after(found, step)
    raise AssertionError(f"never settles: {decide(found)}")


@pytest.mark.parametrize(
    ("placed", "expected"), [("", "a"), ("a", "b"), ("ab", "c"), ("abc", "a"), ("aab", "c"), ("zz", "a")]
)
def test_a_machine_joins_where_the_fewest_are(placed: str, expected: str) -> None:
    assert next_domain(state(placed, 5)) == expected


def test_a_domain_without_hosts_is_left_out_as_long_as_another_has_some() -> None:
    found = state("ab", 3)
    assert next_domain(replace(found, exhausted=frozenset("c"))) == "a"
    assert next_domain(replace(found, exhausted=frozenset(ABC))) == "c"


def test_without_domains_the_provider_chooses() -> None:
    assert next_domain(state("ab", 3, domains=())) == ""


@pytest.mark.parametrize(
    ("placed", "victim"),
    [("abca", "cp-0"), ("abcb", "cp-1"), ("abcc", "cp-2"), ("azbc", "cp-1")],
    ids=["two in a", "two in b", "two in c", "one where none is to be"],
)
def test_the_one_too_many_leaves_the_fullest_domain(placed: str, victim: str) -> None:
    step = decide(state(placed, 3)).step
    assert isinstance(step, Remove)
    assert step.machine == victim


def test_the_spread_never_costs_a_healthy_member() -> None:
    """The sick one goes though its domain is the emptiest."""
    found = state("aabc", 3)
    sick = replace(found.members[3], health=Health.UNHEALTHY)
    step = decide(replace(found, members=(*found.members[:3], sick))).step
    assert isinstance(step, Remove)
    assert step.machine == "cp-3"


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize("domains", [("a", "b"), ABC, ("a", "b", "c", "d", "e")])
def test_an_upgrade_leaves_it_as_even_as_it_was(policy: Policy, domains: tuple[str, ...]) -> None:
    for placed in ("abc"[: len(domains)].ljust(3, "a"), "acbab" if len(domains) > 2 else "ababa"):
        everybody = "".join(map(str, range(len(placed))))
        done = settled(state(placed, len(placed), old=everybody, policy=policy, domains=domains))
        assert is_even(domains, loads(done)) or policy.in_place is not InPlace.NEVER
        assert all(each.up_to_date for each in done.machines)
        if policy.in_place is InPlace.NEVER:
            assert loads(done).total() == len(placed)


@given(
    st.text("abcz", max_size=7),
    st.sampled_from((1, 3, 5)),
    st.sampled_from((SURGE, FIXED)),
)
def test_whatever_there_was_an_upgrade_makes_it_even(placed: str, replicas: int, policy: Policy) -> None:
    """All hosts are made anew by it, so nothing stands in the way."""
    if not placed or (replicas == 1 and not policy.surge):
        return
    done = settled(state(placed, replicas, old="0123456", policy=policy))
    assert is_even(ABC, loads(done)), loads(done)
    scaled = settled(replace(done, replicas=5))
    assert is_even(ABC, loads(scaled)), loads(scaled)
    assert is_even(ABC, loads(settled(replace(scaled, replicas=3))))


@given(
    st.lists(st.tuples(st.sampled_from(MORE_SLOTS), st.sampled_from(("a", "b", "z", ""))), max_size=7),
    st.sampled_from((1, 3, 5)),
    st.sampled_from(EVERY_POLICY),
)
def test_domains_change_neither_what_is_safe_nor_what_heals(
    chosen: list[tuple[Slot, str]], replicas: int, policy: Policy
) -> None:
    hosts = [slot.numbered(number) for number, (slot, _) in enumerate(chosen)]
    machines = tuple(
        replace(host.machine, domain=domain)
        for host, (_, domain) in zip(hosts, chosen, strict=True)
        if host.machine is not None
    )
    listed = tuple(host.member for host in hosts if host.member is not None)
    bare = State(replicas, machines, listed, policy=policy)
    spread = replace(bare, domains=("a", "b"))
    check_safe(spread)
    assert type(decide(spread).step) is type(decide(bare).step)
    assert heals(spread, {}) == heals(bare, {})


# -- as objects


def in_domains(control_plane: ControlPlaneBuilder, *domains: str) -> list[MachineBuilder]:
    return [machine(control_plane, n).in_domain(domain) for n, domain in enumerate(domains, 1)]


def test_a_machine_is_made_in_the_clusters_emptiest_domain() -> None:
    control_plane = ControlPlaneBuilder()
    marked = cluster()
    marked.spec["failureDomains"] = ["a", "b", "c"]
    plan = planned(world(control_plane, *in_domains(control_plane, "a", "c"), marked=marked), members(True, True))
    [body] = creates(plan)
    assert body["spec"]["failureDomain"] == "b"


@pytest.mark.parametrize("given_", [{"failureDomains": []}, {"template": {"spec": {"failureDomain": "c"}}}])
def test_its_own_say_counts_before_the_clusters(given_: dict[str, object]) -> None:
    control_plane = ControlPlaneBuilder(**given_)
    marked = cluster()
    marked.spec["failureDomains"] = ["a", "b", "c"]
    plan = planned(world(control_plane, *in_domains(control_plane, "a", "c"), marked=marked), members(True, True))
    [body] = creates(plan)
    assert body["spec"].get("failureDomain") == (None if "failureDomains" in given_ else "c")


def test_a_domain_is_no_part_of_the_revision() -> None:
    control_plane = ControlPlaneBuilder(failureDomains=["a", "b", "c"])
    machines = in_domains(control_plane, "a", "b", "c")
    plan = planned(world(control_plane, *machines), members(True, True, True))
    assert not patches(plan, MACHINE)
    balanced = condition_of(plan, ControlPlaneCondition.BALANCED)
    assert (balanced["status"], balanced["reason"]) == ("True", Reason.BALANCED)


def test_an_uneven_spread_is_named_and_nothing_is_moved() -> None:
    control_plane = ControlPlaneBuilder(failureDomains=["a", "b"])
    plan = planned(world(control_plane, *in_domains(control_plane, "a", "a", "a")), members(True, True, True))
    assert not patches(plan, MACHINE)
    balanced = condition_of(plan, ControlPlaneCondition.BALANCED)
    assert (balanced["status"], balanced["reason"]) == ("False", Reason.UNBALANCED)
    assert balanced["message"] == "a: 3, b: 0"


def joining(control_plane: ControlPlaneBuilder, domain: str, reason: str = "StockOut") -> MachineBuilder:
    """It asks in vain for a host."""
    found = machine(control_plane, 3)
    found.metadata["annotations"].pop(names.CONTROL_PLANE_MEMBER)
    for key in ("nodeRef", "addresses", "conditions"):
        found.status.pop(key, None)
    found.spec.pop("providerID", None)
    found.spec["failureDomain"] = domain
    return found.condition(MachineCondition.INFRASTRUCTURE_READY, "False", reason)


def test_a_machine_leaves_a_domain_that_has_no_host_for_it() -> None:
    control_plane = ControlPlaneBuilder(failureDomains=["a", "b", "c"])
    machines = [*in_domains(control_plane, "a", "b"), joining(control_plane, "c")]
    plan = planned(world(control_plane, *machines), members(True, True))
    moved = patches(plan, MACHINE)["cp-3"]
    assert moved.patch["spec"]["failureDomain"] in ("a", "b")
    assert moved.resource_version == machines[2].metadata["resourceVersion"]
    [resting] = status_of(plan)["restingFailureDomains"]
    assert (resting["name"], resting["reason"]) == ("c", "StockOut")
    assert Reason.FAILURE_DOMAIN_EXHAUSTED in {e.reason for e in plan.actions() if isinstance(e, Event)}
    kinds = [getattr(action, "subresource", None) for action in plan.actions() if getattr(action, "patch", None)]
    assert kinds[0] == "status", "the record comes first"


def test_nobody_is_sent_back_while_the_domain_rests() -> None:
    control_plane = ControlPlaneBuilder(failureDomains=["a", "c"])
    control_plane.status["restingFailureDomains"] = [{"name": "c", "reason": "StockOut", "until": ago(-300)}]
    machines = [*in_domains(control_plane, "a", "a"), joining(control_plane, "a")]
    plan = planned(world(control_plane, *machines), members(True, True))
    assert not patches(plan, MACHINE), "all are exhausted: it waits"
    assert condition_of(plan, ControlPlaneCondition.BALANCED)["reason"] == Reason.FAILURE_DOMAIN_EXHAUSTED
    rested = planned(world(control_plane, *machines).at(301), members(True, True))
    assert patches(rested, MACHINE)["cp-3"].patch == {"spec": {"failureDomain": "c"}}


@pytest.mark.parametrize("reason", ["CreateFailed", Reason.HOST_MISSING])
def test_other_faults_move_nobody(reason: str) -> None:
    control_plane = ControlPlaneBuilder(failureDomains=["a", "b", "c"])
    machines = [*in_domains(control_plane, "a", "b"), joining(control_plane, "c", reason)]
    assert "cp-3" not in patches(planned(world(control_plane, *machines), members(True, True)), MACHINE)


def test_a_spread_control_plane_is_not_written_to() -> None:
    control_plane = ControlPlaneBuilder(failureDomains=["a", "b", "c"])
    view = world(control_plane, *in_domains(control_plane, "a", "b", "c"))
    control_plane.status.update(status_of(planned(view, members(True, True, True))))
    assert not list(planned(view.put(control_plane), members(True, True, True)).actions())


def test_its_clusters_domains_wake_it() -> None:
    old, new = cluster(), cluster()
    new.spec["failureDomains"] = ["a"]
    assert not same_to_control_planes(old.build(), new.build())
    assert same_to_control_planes(old.build(), cluster().build())


def test_two_says_on_domains_are_refused() -> None:
    body = ControlPlaneBuilder(failureDomains=["a"]).build()
    body["spec"]["template"]["spec"]["failureDomain"] = "b"
    assert [str(error.path) for error in validate(body)] == ["spec.failureDomains"]
