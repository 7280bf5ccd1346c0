"""Counts, conditions and when they are written."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.plan import Failed, Plan, Settled, Wait
from controllers.kernel.refs import MACHINE, MACHINE_SET
from tests.builders import FakeView, World, machine, machine_set
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.objects import Builder, MachineSetBuilder
from tests.builders.plans import condition_of, creates, events, status_of


def pool(replicas: int) -> MachineSetBuilder:
    return machine_set("pool").replicas(replicas)


def member(name: str) -> Any:
    return machine(name).of(machine_set("pool"))


def plan(*objects: Builder) -> Plan:
    return plan_for(FakeView(*objects), MACHINE_SET, "pool")


def test_counts() -> None:
    found = plan(
        pool(4).min_ready(30),
        member("a").ready(since=60),
        member("b").ready(since=10),
        member("c").not_ready(),
        member("d").ready().deleting(60),
        member("e").ready(since=99).unlabelled("pool").labelled(pool="pool"),
    )
    status = status_of(found)
    counts = {key: status[key] for key in status if key.endswith("eplicas")}
    assert counts == {
        "replicas": 4,
        "fullyLabeledReplicas": 4,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "deletingReplicas": 1,
    }
    assert status["labelSelector"] == "pool=pool"
    assert status["observedGeneration"] == 1


def test_a_machine_whose_deletion_was_decided_is_not_counted_as_ready() -> None:
    owner = pool(0).observed()
    found = plan(owner, member("a").ready(since=60))
    status = status_of(found)
    assert status["ordinals"]["leaving"] == ["a"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (1, 0, 0)


def test_a_machine_without_a_label_of_the_template_is_not_fully_labelled() -> None:
    owner = pool(1).template_label("tier", "gpu")
    assert status_of(plan(owner, member("a").ready()))["fullyLabeledReplicas"] == 0


def test_reasons_of_machines_roll_up() -> None:
    """Peers leave the reason on the Machine, and people look at the set (cluster-api#5635, MCM#70, kubermatic#2616)."""
    found = plan(
        pool(4),
        *(member(name).pending("QuotaExceeded", "cores") for name in "abc"),
        member("d").pending("WaitingForNode"),
    )
    ready = condition_of(found, "MachinesReady")
    assert ready["status"] == "False"
    assert ready["message"] == "3× QuotaExceeded: cores; 1× WaitingForNode"
    assert condition_of(found, "Ready")["reason"] == "QuotaExceeded"


CONDITIONS: dict[str, tuple[tuple[Builder, ...], dict[str, str]]] = {
    "all is well": (
        (pool(1), member("a").ready()),
        {
            "Ready": "True",
            "Available": "True",
            "MachinesReady": "True",
            "ScalingUp": "False",
            "ScalingDown": "False",
            "Paused": "False",
        },
    ),
    "Machines are missing": ((pool(2), member("a").ready()), {"Ready": "False", "ScalingUp": "True"}),
    "none is asked for": ((pool(0),), {"Ready": "True", "Available": "True", "MachinesReady": "True"}),
    "too many": ((pool(0).observed(), member("a").ready()), {"Ready": "False", "ScalingDown": "True"}),
    "one is going": ((pool(0), member("a").ready().deleting(60)), {"Ready": "True", "ScalingDown": "True"}),
    "ready, not yet for long enough": (
        (pool(1).min_ready(60), member("a").ready(since=20)),
        {"Ready": "True", "Available": "False"},
    ),
    "failed": ((pool(1), member("a").failed()), {"Ready": "False", "MachinesReady": "False", "ScalingUp": "False"}),
}


@pytest.mark.parametrize(("objects", "want"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_conditions(objects: tuple[Builder, ...], want: dict[str, str]) -> None:
    found = plan(*objects)
    assert {type_: condition_of(found, type_)["status"] for type_ in want} == want
    for said in status_of(found)["conditions"]:
        assert said["reason"], said["type"]
        assert said["observedGeneration"] == 1


def test_it_looks_again_when_the_next_machine_becomes_available() -> None:
    found = plan(pool(2).min_ready(60), member("a").ready(since=20), member("b").ready(since=50))
    assert found.outcome == Wait(10.0, "the next Machine becomes available")


def test_availability_alone_is_written_when_its_time_has_come() -> None:
    world = World(pool(1).min_ready(60))
    settle(world)
    world.advance(60)
    reconcile_once(world)
    assert world.get(MACHINE_SET, "pool")["status"]["availableReplicas"] == 1


def test_a_settled_set_writes_nothing_and_waits_for_nothing() -> None:
    world = World(pool(3))
    settle(world)
    found = plan_for(world.view(), MACHINE_SET, "pool")
    assert found == Plan((), Settled())


def test_conditions_of_others_are_kept() -> None:
    foreign = pool(0).condition("Theirs", "True", "Because")
    assert condition_of(plan(foreign), "Theirs")["reason"] == "Because"


def test_counts_that_are_still_moving_are_held_back() -> None:
    world = World(pool(5))
    reconcile_once(world)
    world.advance(1)
    world.make_ready(world.all(MACHINE)[:2])
    found = plan_for(world.view(), MACHINE_SET, "pool")
    assert found.steps == ()
    assert isinstance(found.outcome, Wait)
    world.advance(2)
    assert status_of(plan_for(world.view(), MACHINE_SET, "pool"))["readyReplicas"] == 2


def test_the_last_machine_to_become_ready_is_written_at_once() -> None:
    world = World(pool(5))
    reconcile_once(world)
    world.make_ready()
    assert status_of(plan_for(world.view(), MACHINE_SET, "pool"))["readyReplicas"] == 5


def test_a_big_set_shows_its_progress_while_it_moves() -> None:
    world = World(pool(100))
    reconcile_once(world)
    world.make_ready(world.all(MACHINE)[:20])
    assert status_of(plan_for(world.view(), MACHINE_SET, "pool"))["readyReplicas"] == 20


def test_a_condition_that_turns_bad_is_written_at_once() -> None:
    world = World(pool(3))
    settle(world)
    world.break_down(world.all(MACHINE)[0]["metadata"]["name"])
    assert condition_of(plan_for(world.view(), MACHINE_SET, "pool"), "Ready")["status"] == "False"


def test_a_set_of_three_costs_at_most_three_status_writes_until_all_are_ready() -> None:
    world = World(pool(3))
    settle(world)
    assert len([write for write in world.writes if getattr(write, "subresource", "") == "status"]) <= 3


BAD_SPECS: dict[str, tuple[dict[str, Any], str]] = {
    "negative replicas": ({"replicas": -1}, "spec.replicas"),
    "replicas as text": ({"replicas": "3"}, "spec.replicas"),
    "a truth value for replicas": ({"replicas": True}, "spec.replicas"),
    "far too many replicas": ({"replicas": 10**9}, "spec.replicas"),
    "minReadySeconds as text": ({"minReadySeconds": "soon"}, "spec.minReadySeconds"),
    "an unknown policy": ({"deletePolicy": "Cheapest"}, "spec.deletePolicy"),
    "no selector": ({"selector": None}, "spec.selector"),
    "an empty selector": ({"selector": {}}, "spec.selector"),
    "a bad operator": (
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
        "spec.selector.matchExpressions[0].operator",
    ),
    "a selector that does not match the template": (
        {"selector": {"matchLabels": {"pool": "other"}}},
        "spec.template.metadata.labels",
    ),
    "no template": ({"template": None}, "spec.template"),
    "a template of text": ({"template": {"spec": "x"}}, "spec.template.spec"),
}


@pytest.mark.parametrize(("spec", "field"), BAD_SPECS.values(), ids=BAD_SPECS.keys())
def test_what_slipped_past_the_schema_is_reported_with_its_field_and_nothing_is_done(
    spec: dict[str, Any], field: str
) -> None:
    body = pool(3).build()
    body["spec"].update(spec)
    view = FakeView(body, member("a").ready(), member("b").ready())
    found = plan_for(view, MACHINE_SET, "pool")
    assert creates(found) == []
    assert isinstance(found.outcome, Failed)
    status = status_of(found)
    assert status["errorReason"] == status["failureReason"] == "InvalidConfiguration"
    assert status["errorMessage"].startswith(field)
    assert status["failureMessage"] == status["errorMessage"]
    assert events(found) == [status["errorMessage"]]


def test_a_bad_spec_is_reported_once_and_forgotten_when_it_is_mended() -> None:
    world = World(pool(1).selecting({}))
    reconcile_once(world)
    assert reconcile_once(world) == 0
    world.change(MACHINE_SET, "pool", lambda body: body["spec"].update(selector={"matchLabels": {"pool": "pool"}}))
    settle(world)
    status = world.get(MACHINE_SET, "pool")["status"]
    assert "errorReason" not in status
    assert "failureMessage" not in status
    assert status["readyReplicas"] == 1


def test_a_damaged_journal_stops_the_set_instead_of_guessing() -> None:
    broken = pool(3)
    broken.status["ordinals"] = {"next": "many"}
    found = plan(broken)
    assert creates(found) == []
    assert "status.ordinals" in status_of(found)["errorMessage"]
