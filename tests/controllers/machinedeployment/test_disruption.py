"""Disruption budgets and windows: when a rollout may take Machines, and how many at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.names import DisruptionReason
from controllers.kernel.plan import Wait
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT
from controllers.machinedeployment.spec import allowance, read_budgets
from tests.builders import World, machine_deployment
from tests.builders.clock import NOW
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import condition_of, creates, sizes
from tests.controllers.machinedeployment.stories import (
    NEW,
    OLD,
    a_set,
    deployment,
    machines,
    next_sizes,
    plan,
    set_replicas,
    set_template,
    sets_of,
)

REPLACE, IN_PLACE = DisruptionReason.REPLACE, DisruptionReason.IN_PLACE_UPDATE
OFFICE = {"schedule": "0 9 * * mon-fri", "duration": "8h"}
"""NOW is a Monday noon."""


def limit(*budgets: dict[str, Any], at: datetime = NOW, reason: DisruptionReason = REPLACE) -> int | None:
    return allowance(read_budgets(list(budgets), 10), reason, at).limit


def test_without_budgets_nothing_is_limited() -> None:
    assert limit() is None


def test_a_budget_without_a_schedule_always_holds() -> None:
    assert limit({"nodes": 2}) == 2


def test_a_share_is_of_the_replicas_and_rounded_up() -> None:
    assert limit({"nodes": "15%"}) == 2
    assert limit({"nodes": "1%"}) == 1
    assert limit({"nodes": "0%"}) == 0


def test_the_smallest_of_those_that_hold_counts() -> None:
    assert limit({"nodes": 5}, {"nodes": 3}, {"nodes": 0, "schedule": "0 3 * * *", "duration": "1h"}) == 3


TIMES = {
    "before it begins": (datetime(2026, 6, 1, 8, 59, 59, tzinfo=UTC), None),
    "as it begins": (datetime(2026, 6, 1, 9, tzinfo=UTC), 0),
    "in the middle": (NOW, 0),
    "a second before its end": (datetime(2026, 6, 1, 16, 59, 59, tzinfo=UTC), 0),
    "as it ends": (datetime(2026, 6, 1, 17, tzinfo=UTC), None),
    "at the weekend": (datetime(2026, 6, 6, 12, tzinfo=UTC), None),
}


@pytest.mark.parametrize(("at", "want"), TIMES.values(), ids=TIMES.keys())
def test_a_window_holds_from_its_strike_for_its_duration(at: datetime, want: int | None) -> None:
    assert limit({"nodes": 0, **OFFICE}, at=at) == want


@given(st.integers(0, 7 * 24 * 3600), st.integers(1, 47))
def test_what_changes_next_is_known_to_the_second(offset: int, hours: int) -> None:
    """Just before the moment that is named everything is as it is now, and at that moment it is not."""
    budgets = read_budgets([{"nodes": 0, "schedule": "30 22 * * tue,fri", "duration": f"{hours}h"}], 10)
    now = NOW + timedelta(seconds=offset)
    found = allowance(budgets, REPLACE, now)
    assert found.changes is not None
    assert found.changes > now
    assert allowance(budgets, REPLACE, found.changes - timedelta(seconds=1)).limit == found.limit
    assert allowance(budgets, REPLACE, found.changes).limit != found.limit


def test_a_budget_may_limit_one_reason_only() -> None:
    assert limit({"nodes": 1, "reasons": ["InPlaceUpdate"]}) is None
    assert limit({"nodes": 1, "reasons": ["InPlaceUpdate"]}, reason=IN_PLACE) == 1


BAD = {
    "a schedule that is none": ({"nodes": 3, "schedule": "whenever", "duration": "1h"}, "[0].schedule"),
    "a schedule of six fields": ({"nodes": 3, "schedule": "0 0 * * * *", "duration": "1h"}, "[0].schedule"),
    "a schedule that never strikes": ({"nodes": 3, "schedule": "0 0 30 2 *", "duration": "1h"}, "[0].schedule"),
    "a schedule without a duration": ({"nodes": 3, "schedule": "@daily"}, "[0].schedule"),
    "a duration without a schedule": ({"nodes": 3, "duration": "1h"}, "[0].schedule"),
    "a duration that is none": ({"nodes": 3, "schedule": "@daily", "duration": "a while"}, "[0].duration"),
    "no nodes": ({}, "[0].nodes"),
    "nodes below zero": ({"nodes": -1}, "[0].nodes"),
    "a reason that nobody knows": ({"nodes": 3, "reasons": ["Boredom"]}, "[0].reasons"),
    "no object": ("x", "[0]"),
}


@pytest.mark.parametrize(("budget", "field"), BAD.values(), ids=BAD.keys())
def test_what_can_t_be_understood_allows_nothing_and_is_named(budget: Any, field: str) -> None:
    body = deployment(3).build()
    body["spec"]["strategy"]["disruptionBudgets"] = [budget, {"nodes": 3}]
    old, new = a_set("old", 3), a_set("new", 1, NEW)
    found = plan_for(World(body, old, new, *machines(old, 3), *machines(new, 1)).view(), MACHINE_DEPLOYMENT, "md")
    assert sizes(found) == {}
    condition = condition_of(found, "DisruptionAllowed")
    assert (condition["status"], condition["reason"]) == ("False", "InvalidConfiguration")
    assert condition["message"].startswith(f"spec.strategy.disruptionBudgets{field}:")
    assert condition_of(found, "Available")["status"] == "True", "nothing else suffers"


def test_machines_that_are_down_for_any_cause_use_the_budget_up() -> None:
    old, new = a_set("old", 8), a_set("new", 0, NEW)
    two_down = [*machines(old, 6, unready=1), machines(old, 7)[6].deleting()]
    assert next_sizes(deployment(8, 0, 4).budget(2), old, two_down, new)["old"] == 6, "those that are down, for free"
    assert next_sizes(deployment(8, 0, 4).budget(3), old, two_down, new)["old"] == 5


def test_machines_that_never_joined_disturb_nobody() -> None:
    old, new = a_set("old", 8), a_set("new", 2, NEW)
    found = next_sizes(deployment(8, 2, 2).budget(1), old, machines(old, 8), new, machines(new, pending=2))
    assert found == {"old": 7}


def test_a_closed_window_makes_no_new_machine_and_takes_no_old_one() -> None:
    old = a_set("old", 3)
    found = plan(deployment(3).budget(0, **OFFICE), old, machines(old, 3))
    (made,) = creates(found)
    assert made["spec"]["replicas"] == 0
    new = a_set("new", 1, NEW)
    assert next_sizes(deployment(3).budget(0, **OFFICE), old, machines(old, 3), new, machines(new, 1)) == {}


def test_a_closed_window_hinders_no_first_machines_and_no_scaling() -> None:
    world = World(machine_deployment("md").replicas(3).rolling(1, 0).kubelet(OLD).budget(0, **OFFICE))
    settle(world)
    set_template(world, NEW)
    settle(world)
    set_replicas(world, 5)
    settle(world)
    assert sets_of(world) == {OLD: 5, NEW: 0}


def test_the_rollout_begins_by_itself_when_the_window_opens_and_waits_until_then() -> None:
    world = World(machine_deployment("md").replicas(3).rolling(1, 0).kubelet(OLD).budget(0, **OFFICE))
    settle(world)
    set_template(world, NEW)
    settle(world)
    found = plan_for(world.view(), MACHINE_DEPLOYMENT, "md")
    assert isinstance(found.outcome, Wait)
    world.advance(found.outcome.after)
    assert world.now == NOW.replace(hour=17)
    settle(world)
    assert sets_of(world) == {OLD: 0, NEW: 3}


def test_a_rollout_that_waits_for_its_window_is_not_late_nor_right_after() -> None:
    owner = machine_deployment("md").replicas(3).rolling(1, 0).kubelet(OLD).budget(0, **OFFICE)
    world = World(owner.progress_deadline(60).rollout(onFailure="Rollback"))
    settle(world)
    set_template(world, NEW)
    settle(world)
    conditions = {c["type"]: c for c in world.get(MACHINE_DEPLOYMENT, "md")["status"]["conditions"]}
    assert conditions["Progressing"]["reason"] == "RollingOut"
    assert conditions["DisruptionAllowed"]["reason"] == "BudgetClosed"
    assert "until 2026-06-01T17:00:00Z" in conditions["DisruptionAllowed"]["message"]
    world.advance(6 * 3600)
    settle(world)
    assert sets_of(world) == {OLD: 0, NEW: 3}


def test_at_rest_no_window_writes_anything() -> None:
    world = World(machine_deployment("md").replicas(2).kubelet(OLD).budget(0, **OFFICE))
    settle(world)
    for _ in range(48):
        world.advance(1800)
        assert reconcile_once(world) == 0


@given(st.integers(1, 8), st.integers(0, 4), st.integers(0, 8), st.integers(0, 8))
def test_never_more_are_down_by_our_own_hand_than_the_budget_says(
    replicas: int, nodes: int, unready: int, going: int
) -> None:
    unready = min(unready, replicas)
    going = min(going, replicas - unready)
    old, new = a_set("old", replicas), a_set("new", 0, NEW)
    found = machines(old, replicas - unready, unready)
    for machine in found[:going]:
        machine.deleting()
    target = next_sizes(deployment(replicas, 0, replicas).budget(nodes), old, found, new).get("old", replicas)
    down_before = unready + going
    healthy_taken = max(replicas - target - unready - going, 0)
    assert healthy_taken == 0 or healthy_taken + down_before <= nodes


def test_all_machines_are_rolled_within_a_budget_of_one() -> None:
    world = World(machine_deployment("md").replicas(4).rolling(0, 4).kubelet(OLD).budget(1))
    settle(world)
    set_template(world, NEW)
    for _ in range(60):
        reconcile_once(world)
        down = [m for m in world.all(MACHINE) if (m.get("status") or {}).get("nodeRef")]
        assert len([m for m in down if m["metadata"].get("deletionTimestamp")]) <= 1
        world.make_ready()
        world.finish_deletions()
        world.advance(3)
    assert sets_of(world) == {OLD: 0, NEW: 4}
