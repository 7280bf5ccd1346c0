"""Machines of a set are spread over failure domains; those without a host leave one that has none."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import format_time
from controllers.kernel.deletions import in_order
from controllers.kernel.machine_facts import read
from controllers.kernel.names import machine_name, machine_prefix
from controllers.kernel.plan import Plan, Wait
from controllers.kernel.refs import MACHINE, MACHINE_SET
from controllers.machineset.creation import REST, TRIED_AT_ONCE
from controllers.machineset.propagation import record_text
from tests.builders import FakeView, World, cluster, machine, machine_set
from tests.builders.clock import NOW
from tests.builders.loop import plan_for, reconcile_once
from tests.builders.objects import Builder, MachineSetBuilder
from tests.builders.plans import condition_of, creates, deletes, events, patches, status_of
from tests.examples import usually

PREFIX = machine_prefix("pool", "uid-pool")


def pool(replicas: int = 3) -> MachineSetBuilder:
    return machine_set("pool").replicas(replicas).spread_over("a", "b", "c").observed()


def member(ordinal: int, domain: str, of: MachineSetBuilder | None = None) -> Any:
    """As the set made it, so that nothing else is left to be written."""
    owner = of or pool()
    builder = machine(machine_name(PREFIX, ordinal)).of(owner).ordinal(ordinal).in_domain(domain)
    builder.labelled({names.MACHINESET_NAME_LABEL: "pool"})
    return builder.annotated(names.PROPAGATED_ANNOTATION, record_text(owner.template))


def ready(ordinal: int, domain: str) -> Any:
    return member(ordinal, domain).ready().in_domain(domain)


def plan(*objects: Builder) -> Plan:
    return plan_for(FakeView(*objects), MACHINE_SET, "pool")


def domains(found: Plan) -> Counter[str]:
    return Counter(body["spec"].get("failureDomain", "") for body in creates(found))


def moves(found: Plan) -> dict[str, str]:
    return {name: patch.patch["spec"]["failureDomain"] for name, patch in patches(found, MACHINE).items()}


def resting(*domains: str, seconds: float = 300) -> list[dict[str, str]]:
    until = format_time(NOW + timedelta(seconds=seconds))
    return [{"name": domain, "reason": "StockOut", "until": until} for domain in domains]


class TestCreation:
    def test_machines_are_created_evenly(self) -> None:
        assert domains(plan(pool(6))) == {"a": 2, "b": 2, "c": 2}

    def test_the_emptiest_domain_gets_the_next_one(self) -> None:
        found = plan(pool(3).ordinals(2), ready(0, "a"), ready(1, "c"))
        assert domains(found) == {"b": 1}

    def test_where_a_host_really_is_counts_before_where_it_was_asked_for(self) -> None:
        strayed = ready(0, "a")
        strayed.status["failureDomain"] = "b"
        assert domains(plan(pool(3).ordinals(1), strayed)) == {"a": 1, "c": 1}

    def test_without_domains_the_template_stays_as_it_is(self) -> None:
        assert domains(plan(machine_set("pool").replicas(2))) == {"": 2}

    def test_domains_of_the_cluster_hold_for_its_sets(self) -> None:
        home = cluster("c")
        home.spec["failureDomains"] = ["x", "y"]
        assert domains(plan(machine_set("pool").replicas(2).in_cluster("c"), home)) == {"x": 1, "y": 1}

    def test_a_domain_that_rests_gets_none(self) -> None:
        tired = pool(4)
        tired.status["restingFailureDomains"] = resting("a")
        assert domains(plan(tired)) == {"b": 2, "c": 2}

    def test_a_domain_in_which_one_waits_for_stock_gets_none(self) -> None:
        assert domains(plan(pool(3).ordinals(1), member(0, "a").short())) == {"b": 1, "c": 1}

    def test_where_all_are_exhausted_machines_wait_in_the_emptiest(self) -> None:
        tired = pool(3)
        tired.status["restingFailureDomains"] = resting("a", "b", "c")
        assert domains(plan(tired)) == {"a": 1, "b": 1, "c": 1}

    def test_bad_domains_are_told_and_nothing_is_made(self) -> None:
        found = plan(machine_set("pool").replicas(1).spread_over("a", "a"))
        assert creates(found) == []
        assert "spec.failureDomains: names a failure domain twice" in status_of(found)["errorMessage"]


STAYS: dict[str, Any] = {
    "it has a host": ready(0, "a").condition("InfrastructureReady", "False", "StockOut"),
    "it waits for something else": member(0, "a").pending().condition("InfrastructureReady", "False", "Unavailable"),
    "what was said is of an older spec, perhaps of another domain": member(0, "a").short().generation(2),
    "nobody spread it": member(0, "elsewhere").short(),
    "it is going": member(0, "a").short().deleting(),
}


class TestFallback:
    def test_a_machine_without_a_host_leaves_the_domain_that_has_none(self) -> None:
        found = plan(pool(3).ordinals(3), member(0, "a").short(), ready(1, "b"), ready(2, "c"))
        assert list(moves(found)) == [machine_name(PREFIX, 0)]
        assert set(moves(found).values()) <= {"b", "c"}

    def test_what_is_remembered_of_it_is_written_first_and_told(self) -> None:
        found = plan(pool(3).ordinals(3), member(0, "a").short(), ready(1, "b"), ready(2, "c"))
        (first,) = found.steps[0]
        assert isinstance(first, Patch)
        assert first.subresource == "status"
        want = {"name": "a", "reason": "StockOut", "until": format_time(NOW + REST)}
        assert status_of(found)["restingFailureDomains"] == [want]
        balanced = condition_of(found, "Balanced")
        assert (balanced["status"], balanced["reason"]) == ("True", "FailureDomainExhausted")
        assert "failure domain a has no host (StockOut)" in balanced["message"]
        assert any("failure domain a has no host (StockOut) and rests until" in text for text in events(found))

    def test_a_move_is_refused_if_the_machine_has_got_its_host_meanwhile(self) -> None:
        waiting = member(0, "a").short().version("77")
        (patch,) = patches(plan(pool(1).ordinals(1), waiting), MACHINE).values()
        assert patch.resource_version == "77"

    @pytest.mark.parametrize("stays", STAYS.values(), ids=STAYS.keys())
    def test_a_machine_stays_where_it_is(self, stays: Builder) -> None:
        assert moves(plan(pool(1).ordinals(1), stays)) == {}

    def test_nobody_moves_while_every_domain_has_one_that_waits(self) -> None:
        """Their own calls try each domain again and again; sending them round would only cost writes."""
        waiting = [member(n, domain).short() for n, domain in enumerate("abc")]
        found = plan(pool(3).ordinals(3), *waiting)
        assert moves(found) == {}
        assert "restingFailureDomains" not in status_of(found)

    def test_only_so_many_try_a_domain_at_once(self) -> None:
        many = [member(n, "a").short() for n in range(30)]
        tired = pool(30).ordinals(30)
        tired.status["restingFailureDomains"] = resting("b")
        assert Counter(moves(plan(tired, *many)).values()) == {"c": TRIED_AT_ONCE}

    def test_a_rest_is_forgotten_and_looked_at_when_it_is_over(self) -> None:
        tired = pool(3).ordinals(3)
        tired.status["restingFailureDomains"] = resting("a", seconds=90)
        there = [ready(n, domain) for n, domain in enumerate("abc")]
        found = plan(tired, *there)
        assert isinstance(found.outcome, Wait)
        assert found.outcome.after == 90
        tired.status["restingFailureDomains"] = resting("a", seconds=-1)
        assert status_of(plan(tired, *there))["restingFailureDomains"] is None

    def test_nothing_of_it_is_written_twice(self) -> None:
        world = World(pool(3).ordinals(3), member(0, "a").short(), ready(1, "b"), ready(2, "c"))
        assert reconcile_once(world) == 3  # the record, the Event, the Machine
        assert world.get(MACHINE, machine_name(PREFIX, 0))["metadata"]["generation"] == 2
        assert reconcile_once(world) <= 1
        assert reconcile_once(world) == 0


class TestDeletion:
    def test_the_fullest_domain_gives_first(self) -> None:
        there = [ready(n, domain) for n, domain in enumerate("aaabc")]
        gone = deletes(plan(pool(3).ordinals(5), *there))
        kept = [m for m in there if m.metadata["name"] not in gone]
        assert sorted(m.spec["failureDomain"] for m in kept) == ["a", "b", "c"]

    def test_a_domain_that_is_no_longer_listed_gives_first(self) -> None:
        there = [ready(n, domain) for n, domain in enumerate("abz")]
        assert deletes(plan(pool(2).ordinals(3), *there)) == [machine_name(PREFIX, 2)]

    def test_an_imbalance_alone_moves_and_deletes_nothing(self) -> None:
        there = [ready(n, "a") for n in range(3)]
        found = plan(pool(3).ordinals(3), *there)
        assert (moves(found), deletes(found)) == ({}, [])
        balanced = condition_of(found, "Balanced")
        assert (balanced["status"], balanced["reason"], balanced["message"]) == (
            "False",
            "Unbalanced",
            "a: 3, b: 0, c: 0",
        )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 2**32))
@usually(10)
def test_however_it_is_scaled_it_stays_even(sizes: list[int], salt: int) -> None:
    world = World(pool(3).uid(f"uid-{salt}"))
    for size in sizes:
        world.change(MACHINE_SET, "pool", lambda body, size=size: body["spec"].update(replicas=size))
        for _ in range(6):
            reconcile_once(world)
            world.make_ready()
            world.finish_deletions()
            world.advance(3)
        loads = Counter(m["spec"]["failureDomain"] for m in world.all(MACHINE))
        assert sum(loads.values()) == size
        assert max(loads[d] for d in "abc") - min(loads[d] for d in "abc") <= 1
    edits = [write.patch for write in world.writes if isinstance(write, Patch) and write.target.kind == MACHINE]
    assert not any("failureDomain" in patch.get("spec", {}) for patch in edits), "a Machine was moved for balance"


def test_the_order_of_the_set_is_the_one_that_its_deployment_plans_with() -> None:
    """Both ask ``in_order`` with the domains of the set; a second opinion would scale the wrong Machine away."""
    there = [ready(n, domain) for n, domain in enumerate("aab")]
    gone = deletes(plan(pool(2).ordinals(3), *there))
    first = in_order([read(m.build()) for m in there], "Random", ("a", "b", "c"))[0]
    assert gone == [first.key.name]
