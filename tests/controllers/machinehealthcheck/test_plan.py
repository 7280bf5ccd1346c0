"""Which unhealthy Machines the owner is asked to replace, and when none are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.plan import Blocked, Failed, Wait
from controllers.kernel.remediation import RemediationData
from tests.builders import NOW, FakeView, machine, machine_set
from tests.builders.objects import Builder, MachineBuilder, MachineSetBuilder
from tests.builders.plans import events
from tests.controllers.machinehealthcheck.checks import (
    POOL,
    allowed,
    check,
    dark,
    flat,
    its_node,
    marks,
    member,
    plan,
    plan_on,
    selected_for_deletion,
    status,
    unhealthy,
    well,
)


def many(kind: Any, count: int, zone: str = "", first: int = 0) -> list[Builder]:
    return flat(*(kind(f"{kind.__name__}-{n}", zone) for n in range(first, first + count)))


def heir(name: str, times: list[float], of: str = "gone") -> list[Builder]:
    """A sick Machine in the place of another; ``times``: seconds since each replacement of the place."""
    place = RemediationData(of, tuple(NOW - timedelta(seconds=ago) for ago in times))
    body, node = dark(name)
    return [body.annotated(names.REMEDIATION_FOR_ANNOTATION, place.to_text()), node]


def test_the_sick_one_is_marked_and_its_owner_is_asked() -> None:
    found = plan(check(), *dark("a"), *many(well, 3))
    said = marks(found)["a"]
    assert said["HealthCheckSucceeded"]["message"] == "condition Ready of the Node is Unknown for 5m0s or longer"
    assert said["OwnerRemediated"]["reason"] == "WaitingForRemediation"
    assert status(found)["unhealthyMachines"] == ["a"]
    assert (status(found)["expectedMachines"], status(found)["currentHealthy"]) == (4, 3)
    assert allowed(found) == ("True", "RemediationAllowed")
    assert len(events(found)) == 1


def test_the_marks_are_guarded_and_come_after_the_checks_own_guarded_status() -> None:
    found = plan(check().version("7"), member("a").version("9").ready(), dark("a")[1])
    first, second = found.steps[0], found.steps[1]
    assert [(a.target.kind.name, a.resource_version) for a in first if isinstance(a, Patch)] == [
        ("MachineHealthCheck", "7")
    ]
    assert [(a.target.key.name, a.resource_version) for a in second if isinstance(a, Patch)] == [("a", "9")]


def test_conditions_of_others_stay_as_they_are_and_where_they_are() -> None:
    body, node = dark("a")
    body.condition("Special", "True", "Custom", "kept")
    (patch,) = [
        a for a in plan(check(), body, node).actions() if isinstance(a, Patch) and a.target.kind.name == "Machine"
    ]
    before = body.build()["status"]["conditions"]
    assert patch.patch["status"]["conditions"][: len(before)] == before


def test_a_machine_that_is_well_again_is_said_to_be_and_no_longer_condemned() -> None:
    body = member("a").condition("HealthCheckSucceeded", "False", "UnhealthyNode")
    body.condition("OwnerRemediated", "False", "WaitingForRemediation")
    said = marks(plan(check(), body, its_node("a")))["a"]
    assert said["HealthCheckSucceeded"]["status"] == "True"
    assert "OwnerRemediated" not in said


def test_a_machine_without_an_owner_is_called_unhealthy_and_left_at_that() -> None:
    body, node = dark("a")
    found = plan(check(), body.orphan(), node)
    assert unhealthy(found) == {"a": "UnhealthyNode"}
    assert selected_for_deletion(found) == []
    assert "nobody owns it" in found.notes[0]


def test_what_fails_by_its_configuration_is_not_replaced() -> None:
    """machine-api-operator#736: the health check and the MachineSet fought for ever."""
    found = plan(check(), member("a").failed("InvalidConfiguration"))
    assert unhealthy(found) == {"a": "MachineFailed"}
    assert selected_for_deletion(found) == []


def test_a_person_may_have_even_that_replaced() -> None:
    asked = member("a").failed("InvalidConfiguration").annotated(names.REMEDIATE_ANNOTATION, "")
    assert selected_for_deletion(plan(check(), asked)) == ["a"]


SHORT = {
    "as many as maxUnhealthy": ({"maxUnhealthy": 2}, 2, 0, "True", 2),
    "more than maxUnhealthy": ({"maxUnhealthy": 2}, 3, 0, "False", 0),
    "percentages round down": ({"maxUnhealthy": "39%"}, 2, 0, "False", 0),
    "one that only looks bad counts": ({"maxUnhealthy": 2}, 2, 1, "False", 0),
    "inside of the range": ({"unhealthyRange": "[2-3]"}, 2, 0, "True", 2),
    "below the range": ({"unhealthyRange": "[2-3]"}, 1, 0, "False", 0),
    "above the range": ({"unhealthyRange": "[1-2]"}, 3, 0, "False", 0),
    "none at all": ({"maxUnhealthy": 0}, 1, 0, "False", 0),
}


@pytest.mark.parametrize(("spec", "sick", "suspect", "want", "asked"), SHORT.values(), ids=SHORT.keys())
def test_short_circuit(spec: dict[str, Any], sick: int, suspect: int, want: str, asked: int) -> None:
    """Of five Machines in all."""
    objects = flat(
        many(dark, sick),
        flat(*(dark(f"suspect-{n}", since=10) for n in range(suspect))),
        many(well, 5 - sick - suspect),
    )
    found = plan(check().having(**spec).strategy(correlatedFailures="Remediate"), *objects)
    assert allowed(found)[0] == want
    assert len(selected_for_deletion(found)) == asked
    assert len(unhealthy(found)) == sick, "they are called unhealthy all the same"


def test_a_short_circuit_is_an_event_once_and_looked_at_again() -> None:
    bad = check().having(maxUnhealthy=1)
    objects = [*many(dark, 2), *many(well, 3)]
    found = plan(bad, *objects)
    assert [said for said in events(found) if "maxUnhealthy 1 allows 1" in said]
    assert isinstance(found.outcome, Blocked)
    bad.condition("RemediationAllowed", "False", "TooManyUnhealthy")
    assert not [said for said in events(plan(bad, *objects)) if "maxUnhealthy" in said]


def test_machines_that_are_being_replaced_stay_bad_until_their_replacement_is_well() -> None:
    """Else each deletion would make room for the next one."""
    going = dark("going")[0].condition("OwnerRemediated", "False", "WaitingForRemediation").deleting()
    found = plan(check().having(maxUnhealthy=1), going, *dark("a"), *many(well, 4))
    assert allowed(found)[0] == "False"
    assert selected_for_deletion(found) == []


def test_a_dark_zone_freezes_its_own_machines_only() -> None:
    objects = flat(many(dark, 3, "a"), many(well, 1, "a"), many(well, 6, "b", 10), dark("lonely", "b"))
    found = plan(check(), *objects)
    assert selected_for_deletion(found) == ["lonely"]
    assert allowed(found) == ("False", "CorrelatedFailures")
    assert "3 of 4 Machines of zone a look bad at once" in str(status(found)["conditions"])
    assert isinstance(found.outcome, Blocked)


def test_a_zone_freezes_at_the_first_of_its_machines_whose_clock_runs_out() -> None:
    first, rest = dark("first", "a", since=301), flat(dark("x", "a", since=299), dark("y", "a", since=290))
    assert selected_for_deletion(plan(check(), *first, *rest, *many(well, 6, "b"))) == []


def test_most_of_the_fleet_looks_like_an_outage() -> None:
    found = plan(check(), *many(dark, 3), *many(well, 2))
    assert selected_for_deletion(found) == []
    assert allowed(found) == ("False", "CorrelatedFailures")
    assert status(found)["remediationsAllowed"] == 0
    assert (
        len(
            selected_for_deletion(
                plan(check().strategy(correlatedFailures="Remediate"), *many(dark, 3), *many(well, 2))
            )
        )
        == 3
    )


def test_a_person_may_have_a_machine_of_a_dark_zone_replaced() -> None:
    body, node = dark("asked", "a")
    asked: list[Builder] = [body.annotated(names.REMEDIATE_ANNOTATION, ""), node]
    found = plan(check(), *asked, *many(dark, 3, "a"), *many(well, 6, "b"))
    assert selected_for_deletion(found) == ["asked"]


def test_machines_that_failed_by_themselves_are_no_outage() -> None:
    failed: list[Builder] = [member(f"f{n}").failed("HostFailed") for n in range(3)]
    assert len(selected_for_deletion(plan(check(), *failed, *many(well, 2)))) == 3


def test_a_pool_of_one_is_too_small_to_say_anything_of_others() -> None:
    assert selected_for_deletion(plan(check(), *dark("a", "zone"))) == ["a"]


def test_no_more_at_a_time_than_allowed_the_newest_first() -> None:
    old, young = dark("old"), dark("young")
    old[0].created(9000)
    young[0].created(1000)
    found = plan(check().strategy(maxInFlight=1), *old, *young, *many(well, 4))
    assert selected_for_deletion(found) == ["young"]
    assert status(found)["remediationsAllowed"] == 0
    assert selected_for_deletion(plan(check().strategy(maxInFlight="40%"), *old, *young, *many(well, 4))) == [
        "old",
        "young",
    ]


def test_who_was_asked_for_before_keeps_its_turn() -> None:
    old, young = dark("old"), dark("young")
    old[0].created(9000).condition("HealthCheckSucceeded", "False", "UnhealthyNode", "…")
    old[0].condition("OwnerRemediated", "False", "WaitingForRemediation")
    young[0].created(1000)
    found = plan(check().strategy(maxInFlight=1), *old, *young, *many(well, 4))
    assert "young" not in selected_for_deletion(found)
    assert "OwnerRemediated" in marks(found)["old"]


def deferring(deferred: str = "True") -> MachineSetBuilder:
    """The MachineSet of an old revision, which leaves its unhealthy Machines to a rollout."""
    return machine_set("pool").replicas(5).condition("Remediating", deferred, "RemediationDeferred")


def test_who_waits_for_a_rollout_gives_way_to_those_that_the_rollout_waits_for() -> None:
    """Found by simulation (seed 275): broken Machines of the old revision held the whole budget, so the broken one of
    the new revision was never replaced, and the rollout that was to replace the old ones waited for it."""
    old, new = dark("old"), dark("new")
    old[0].created(1000).condition("HealthCheckSucceeded", "False", "UnhealthyNode", "…")
    old[0].condition("OwnerRemediated", "False", "WaitingForRemediation")
    new[0].created(9000).owned_by(machine_set("current").build())
    others = [check().strategy(maxInFlight=1), *old, *new, *many(well, 4)]
    found = plan_on(FakeView(deferring(), machine_set("current"), *others))
    assert selected_for_deletion(found) == ["new"]
    assert "OwnerRemediated" not in marks(found)["old"], "else two could be replaced at once when the rollout is done"
    assert "new" not in selected_for_deletion(plan_on(FakeView(deferring("False"), machine_set("current"), *others)))


def test_who_waits_for_a_rollout_is_asked_for_while_nobody_else_needs_the_budget() -> None:
    found = plan_on(FakeView(deferring(), check().strategy(maxInFlight=1), *dark("a"), *dark("b"), *many(well, 4)))
    assert len(selected_for_deletion(found)) == 1


BUSY: dict[str, list[Builder]] = {
    "a condemned one is going": [
        dark("x")[0].condition("OwnerRemediated", "False", "WaitingForRemediation").deleting()
    ],
    "its replacement has not joined": [
        machine("y")
        .of(POOL)
        .pending()
        .created(60)
        .annotated(names.REMEDIATION_FOR_ANNOTATION, RemediationData("x", (NOW - timedelta(seconds=60),)).to_text())
    ],
}


@pytest.mark.parametrize("under_way", BUSY.values(), ids=BUSY.keys())
def test_a_replacement_is_under_way_until_it_is_well(under_way: list[Builder]) -> None:
    found = plan(check().strategy(maxInFlight=1), *under_way, *dark("a"), *many(well, 4))
    assert selected_for_deletion(found) == []


def test_a_replacement_that_does_not_exist_yet_is_under_way() -> None:
    owner = machine_set("pool").replicas(5)
    owner.status["remediated"] = [{"machine": "x", "times": []}]
    view = FakeView(owner, check().strategy(maxInFlight=1), *dark("a"), *many(well, 4))
    assert selected_for_deletion(plan_on(view)) == []


def test_a_replacement_that_fails_as_well_takes_no_second_place_of_the_budget() -> None:
    found = plan(check().strategy(maxInFlight=1), *heir("a", [600]), *many(well, 4))
    assert selected_for_deletion(found) == ["a"]


RETRIES: dict[str, tuple[dict[str, Any], list[float], bool]] = {
    "no wait is asked for": ({}, [600], True),
    "the wait is not over": ({"retryPeriod": "15m"}, [600], False),
    "the wait is over": ({"retryPeriod": "15m"}, [1000], True),
    "the second wait is twice as long": ({"retryPeriod": "15m"}, [2000, 1000], False),
    "the second wait is over": ({"retryPeriod": "15m"}, [4000, 1900], True),
    "no wait is longer than the longest": ({"retryPeriod": "15m", "maxRetryPeriod": "15m"}, [2000, 1000], True),
    "replaced too often": ({"maxRetry": 1}, [2000, 1000], False),
    "replaced once": ({"maxRetry": 1}, [1000], True),
    "not once more than the first time": ({"maxRetry": 0}, [1000], False),
    "it was well for long in between": ({"maxRetry": 0, "minHealthyPeriod": "10m"}, [1000], True),
}


@pytest.mark.parametrize(("strategy", "times", "want"), RETRIES.values(), ids=RETRIES.keys())
def test_retries(strategy: dict[str, Any], times: list[float], want: bool) -> None:
    found = plan(check().strategy(**strategy), *heir("a", times), *many(well, 4))
    assert selected_for_deletion(found) == (["a"] if want else [])


def test_the_next_look_is_when_the_wait_is_over() -> None:
    found = plan(check().strategy(retryPeriod="15m"), *heir("a", [600]), *many(well, 4))
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == 300


def test_what_replacing_is_not_known_to_help_waits_a_minute_at_least() -> None:
    """machine-api-operator#736, eks-anywhere#4709: no replacement right after another that failed."""
    place = RemediationData("x", (NOW - timedelta(seconds=50),))
    broken = member("a").failed("HostFailed").annotated(names.REMEDIATION_FOR_ANNOTATION, place.to_text())
    view = FakeView(POOL, check(), broken)
    assert selected_for_deletion(plan_on(view)) == []
    assert selected_for_deletion(plan_on(view.at(11))) == ["a"]


def test_a_given_up_machine_stays_given_up_though_time_passes() -> None:
    body, node = heir("a", [4000])
    assert isinstance(body, MachineBuilder)
    body.condition("HealthCheckSucceeded", "False", "UnhealthyNode", since=3900)
    found = plan(check().strategy(maxRetry=0), body, node, *many(well, 4))
    assert selected_for_deletion(found) == []
    assert "1 Machine was replaced too often: a" in str(status(found)["conditions"])


def test_a_spec_that_cannot_be_used_is_said_once_and_nothing_is_looked_at() -> None:
    bad = check().having(unhealthyMachineConditions=[{"type": "OwnerRemediated", "status": "False", "timeout": "1m"}])
    found = plan(bad, *dark("a"))
    assert isinstance(found.outcome, Failed)
    assert allowed(found) == ("False", "InvalidConfiguration")
    assert selected_for_deletion(found) == []
    bad.status["conditions"] = status(found)["conditions"]
    bad.status["observedGeneration"] = 1
    assert list(plan(bad, *dark("a")).actions()) == []


def test_a_new_generation_alone_is_no_reason_to_write_to_machines() -> None:
    body, node = dark("a")
    (patch,) = [
        a for a in plan(check(), body, node).actions() if isinstance(a, Patch) and a.target.kind.name == "Machine"
    ]
    body.status["conditions"] = patch.patch["status"]["conditions"]
    assert marks(plan(check(), body.generation(9), node)) == {}


def test_the_owner_of_a_protected_machine_is_not_asked_and_others_get_its_place_in_the_budget() -> None:
    sick, its = dark("a")
    protected = sick.annotated(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, '{"active":true,"evictable":false}')
    found = plan(check(), protected, its, *dark("b"), *many(well, 6))
    assert selected_for_deletion(found) == ["b"]
    assert unhealthy(found).keys() >= {"a", "b"}
    assert any("Machine a is not replaced now: its membership status protects it" in note for note in found.notes)
