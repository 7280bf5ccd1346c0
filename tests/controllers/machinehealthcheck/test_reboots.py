"""Reboots before a replacement: asked for once each, bounded, and within the same budgets."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.actions import Event
from controllers.kernel.conditions import parse_time
from controllers.kernel.plan import Failed, Plan, Wait
from controllers.kernel.refs import MACHINE
from tests.builders.clock import ago
from tests.builders.objects import Builder
from tests.builders.plans import patches
from tests.controllers.machinehealthcheck.checks import (
    CheckBuilder,
    check,
    dark,
    flat,
    plan,
    selected_for_deletion,
    well,
)


def rebooting(attempts: int = 2, **strategy: Any) -> CheckBuilder:
    return check().strategy(reboot={"maxAttempts": attempts, "timeout": "10m"}, **strategy)


def reboots(found: Plan) -> dict[str, dict[str, Any]]:
    """What is written of reboots, by Machine."""
    written = patches(found, MACHINE, "status")
    return {name: p.patch["status"]["reboot"] for name, p in written.items() if p.patch["status"].get("reboot")}


def asked(name: str, number: int, requested: float, *, left: float, sick: float = 900) -> list[Builder]:
    """Unhealthy for ``sick`` seconds, with a reboot asked for ``requested`` seconds ago and ``left`` until its end."""
    body, node = dark(name)
    said = "condition Ready of the Node is Unknown for 5m0s or longer"
    body.condition("HealthCheckSucceeded", "False", "UnhealthyNode", said, since=sick)
    request = {"attempt": f"at-{number}", "number": number, "requestedAt": ago(requested), "deadline": ago(-left)}
    body.status["reboot"] = request
    return [body, node]


def test_a_sick_machine_is_to_be_rebooted_and_its_owner_is_not_asked() -> None:
    found = plan(rebooting(), *dark("a"), *well("b"))
    (request,) = reboots(found).values()
    assert request["number"] == 1
    begun, ends = parse_time(request["requestedAt"]), parse_time(request["deadline"])
    assert begun is not None
    assert ends is not None
    assert (ends - begun).total_seconds() == 600
    assert selected_for_deletion(found) == []
    assert [action.reason for action in found.actions() if isinstance(action, Event)].count("RebootRequested") == 1


def test_without_attempts_it_is_replaced_as_ever() -> None:
    found = plan(check(), *dark("a"), *well("b"))
    assert (reboots(found), selected_for_deletion(found)) == ({}, ["a"])


def test_while_its_time_runs_nothing_more_is_asked_for_and_the_end_of_it_is_waited_for() -> None:
    found = plan(rebooting(), *asked("a", 1, 100, left=500), *well("b"))
    assert (reboots(found), selected_for_deletion(found)) == ({}, [])
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == pytest.approx(500, abs=1)
    assert [action for action in found.actions() if isinstance(action, Event)] == []


def test_a_reboot_that_did_not_help_is_followed_by_another_one_with_another_id() -> None:
    found = plan(rebooting(2), *asked("a", 1, 601, left=-1), *well("b"))
    assert reboots(found)["a"]["number"] == 2
    assert reboots(found)["a"]["attempt"] != "at-1"


def test_when_attempts_are_used_up_its_owner_replaces_it() -> None:
    found = plan(rebooting(2), *asked("a", 2, 601, left=-1), *well("b"))
    assert (reboots(found), selected_for_deletion(found)) == ({}, ["a"])


def test_the_id_depends_on_the_failure_and_the_number_alone() -> None:
    """A process that is killed before it is written asks for the same one."""
    first = plan(rebooting(2), *asked("a", 1, 601, left=-1), *well("b"))
    again = plan(rebooting(2), *asked("a", 1, 700, left=-100), *well("b"))
    assert reboots(first)["a"]["attempt"] == reboots(again)["a"]["attempt"]


def test_a_failure_soon_after_the_last_reboot_counts_on() -> None:
    """It came up, was healthy for a quarter of an hour and hangs again: that is no new beginning."""
    found = plan(rebooting(1), *asked("a", 1, 1800, left=-1200, sick=900), *well("b"))
    assert selected_for_deletion(found) == ["a"]


def test_one_long_after_it_is_rebooted_anew() -> None:
    found = plan(rebooting(1), *asked("a", 1, 9000, left=-8400, sick=900), *well("b"))
    assert reboots(found)["a"].get("number", 1) == 1, "a patch leaves out what stays"
    assert reboots(found)["a"]["attempt"] != "at-1"


def test_where_the_provider_can_not_reboot_it_is_replaced_at_once() -> None:
    body, node = asked("a", 1, 5, left=595)
    body.condition("HostRebooted", "False", "RebootUnsupported")
    found = plan(rebooting(), body, node, *well("b"))
    assert selected_for_deletion(found) == ["a"]


def test_one_whose_owner_was_asked_is_not_rebooted_any_more() -> None:
    body, node = asked("a", 1, 601, left=-1)
    body.condition("OwnerRemediated", "False", "WaitingForRemediation")
    found = plan(rebooting(3), body, node, *well("b"))
    assert reboots(found) == {}


def test_a_machine_without_an_owner_is_rebooted_and_then_left_at_that() -> None:
    """Nobody has to make another one."""
    body, node = dark("a")
    body.metadata.pop("ownerReferences", None)
    assert list(reboots(plan(rebooting(1), body, node, *well("b")))) == ["a"]
    body, node = asked("a", 1, 601, left=-1)
    body.metadata.pop("ownerReferences", None)
    found = plan(rebooting(1), body, node, *well("b"))
    assert (reboots(found), selected_for_deletion(found)) == ({}, [])


def test_a_person_who_asks_for_another_machine_gets_one() -> None:
    body, node = dark("a")
    body.annotated("cluster.x-k8s.io/remediate-machine", "")
    found = plan(rebooting(), body, node, *well("b"))
    assert (reboots(found), selected_for_deletion(found)) == ({}, ["a"])


def test_one_that_never_joined_or_failed_for_good_is_not_rebooted() -> None:
    body, node = dark("a")
    body.status.update(failureReason="CreateError", failureMessage="hardware failed")
    found = plan(rebooting(), body, node, *well("b"))
    assert (reboots(found), selected_for_deletion(found)) == ({}, ["a"])


def test_reboots_take_of_the_same_budget() -> None:
    many = flat(*(well(name) for name in "efghijkl"))
    found = plan(rebooting(maxInFlight=1), *asked("a", 1, 100, left=500), *dark("b"), *many)
    assert (reboots(found), selected_for_deletion(found)) == ({}, [])
    assert any("maxInFlight allows 1" in note for note in found.notes)


def test_nothing_is_rebooted_while_too_many_look_bad() -> None:
    found = plan(rebooting(), *flat(*(dark(name) for name in "abc")), *well("d"))
    assert reboots(found) == {}


def test_a_template_and_reboots_are_refused_by_field() -> None:
    template = {"apiVersion": "remedy.example.com/v1", "kind": "RebootTemplate", "name": "reboot"}
    found = plan(rebooting().having(remediationTemplate=template), *dark("a"))
    assert isinstance(found.outcome, Failed)
    assert "spec.remediationStrategy.reboot" in found.outcome.why


@pytest.mark.parametrize(
    "garbage",
    ["x", 7, [], {"attempt": 1}, {"attempt": "a", "number": "1"}, {"attempt": "a" * 64, "number": 1},
     {"attempt": "a", "number": 1, "requestedAt": "x", "deadline": ago(0)}],
)  # fmt: skip
def test_a_request_that_can_not_be_read_is_none(garbage: Any) -> None:
    body, node = dark("a")
    body.status["reboot"] = garbage
    assert reboots(plan(rebooting(), body, node, *well("b")))["a"].get("number", 1) == 1
