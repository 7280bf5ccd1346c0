"""Counts, conditions, deadlines and bad input."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.plan import Blocked, Failed, Plan, Settled, Wait
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import FakeView, World, machine, machine_deployment
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import condition_of, creates, events, patches, sizes, status_of
from tests.controllers.machinedeployment.stories import NEW, OLD, a_set, deployment, machines, plan, set_template


def test_counts_come_from_the_machines_not_from_what_their_sets_say() -> None:
    old, new = a_set("old", 2), a_set("new", 2, NEW)
    old.status["replicas"] = 99
    status = status_of(plan(deployment(3), old, machines(old, 2), new, machines(new, 1, pending=1)))
    assert {key: status[key] for key in status if key.endswith("eplicas")} == {
        "replicas": 4,
        "updatedReplicas": 2,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "unavailableReplicas": 1,
        "deletingReplicas": 0,
    }
    assert status["labelSelector"] == "pool=md"


def test_reasons_of_machines_reach_the_deployment() -> None:
    """cluster-api#9262, #969, MCM#89: the failure stayed on the Machine."""
    new = a_set("new", 3, NEW)
    stuck = [machine(f"m-{n}").of(new).pending("QuotaExceeded", "cores") for n in range(3)]
    found = plan(deployment(3), new, stuck)
    assert condition_of(found, "MachinesReady")["message"] == "3× QuotaExceeded: cores"
    assert condition_of(found, "Available")["reason"] == "QuotaExceeded"


def test_what_its_sets_say_of_remediation_reaches_the_deployment() -> None:
    old, new = a_set("old", 1), a_set("new", 2, NEW)
    new.condition("Remediating", "True", "Remediating", "1 unhealthy Machine is being replaced")
    everything = (old, machines(old, 1), new, machines(new, 2))
    said = condition_of(plan(deployment(3), *everything), "Remediating")
    assert (said["status"], said["reason"]) == ("True", "Remediating")
    assert said["message"] == "MachineSet new: 1 unhealthy Machine is being replaced"
    old.condition("Remediating", "True", "RemediationDeferred", "kept")
    said = condition_of(plan(deployment(3), *everything), "Remediating")
    assert said["reason"] == "RemediationDeferred", "what is held up wants somebody's eye"
    assert said["message"] == "MachineSet new: 1 unhealthy Machine is being replaced; MachineSet old: kept"


def test_remediation_that_is_over_is_said_to_be_and_one_that_never_was_is_not_mentioned() -> None:
    new = a_set("new", 3, NEW)
    types = [c["type"] for c in status_of(plan(deployment(3), new, machines(new, 2)))["conditions"]]
    assert "Remediating" not in types
    owner = deployment(3).condition("Remediating", "True", "Remediating")
    new.condition("Remediating", "False", "NotRemediating")
    said = condition_of(plan(owner, new, machines(new, 3)), "Remediating")
    assert (said["status"], said["reason"]) == ("False", "NotRemediating")


def a_set_with(name: str, replicas: int, version: str, *counts: int) -> list[Any]:
    """A MachineSet and so many available, unready and pending Machines."""
    body = a_set(name, replicas, version)
    return [body, *machines(body, *counts)]


CONDITIONS: dict[str, tuple[list[Any], dict[str, str]]] = {
    "done": (
        a_set_with("new", 3, NEW, 3),
        {"Available": "True", "Progressing": "True", "RollingOut": "False", "ScalingUp": "False", "Paused": "False"},
    ),
    "in the middle": (
        [*a_set_with("old", 3, OLD, 3), *a_set_with("new", 1, NEW, 0, 0, 1)],
        {"Available": "True", "Progressing": "True", "RollingOut": "True", "MachinesReady": "False"},
    ),
    "below the minimum": (
        a_set_with("new", 3, NEW, 2, 1),
        {"Available": "False", "Progressing": "True", "RollingOut": "False"},
    ),
    "growing": (a_set_with("new", 3, NEW, 2), {"ScalingUp": "True"}),
}


@pytest.mark.parametrize(("objects", "want"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_conditions(objects: list[Any], want: dict[str, str]) -> None:
    found = plan(deployment(3), objects)
    assert {type_: condition_of(found, type_)["status"] for type_ in want} == want
    for said in status_of(found)["conditions"]:
        assert said["reason"], said["type"]
        assert said["observedGeneration"] == 1


def test_a_settled_deployment_writes_nothing() -> None:
    world = World(machine_deployment("md").replicas(3))
    settle(world)
    assert plan_for(world.view(), MACHINE_DEPLOYMENT, "md") == Plan((), Settled())


def test_a_rollout_that_stands_still_says_so_and_when() -> None:
    world = World(machine_deployment("md").replicas(3).kubelet(OLD).progress_deadline(100))
    settle(world)
    set_template(world, NEW)
    for _ in range(5):
        reconcile_once(world)
        world.advance(3)
    found = plan_for(world.view(), MACHINE_DEPLOYMENT, "md")
    assert isinstance(found.outcome, Wait)
    assert 80 <= found.outcome.after <= 100
    world.advance(100)
    found = plan_for(world.view(), MACHINE_DEPLOYMENT, "md")
    progressing = condition_of(found, "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert isinstance(found.outcome, Blocked)
    world.make_ready()
    settle(world)
    conditions = world.get(MACHINE_DEPLOYMENT, "md")["status"]["conditions"]
    assert [c["status"] for c in conditions if c["type"] == "Progressing"] == ["True"], "late is not never"


def test_a_node_that_fails_long_after_the_rollout_exceeds_no_deadline() -> None:
    world = World(machine_deployment("md").replicas(2).progress_deadline(100))
    settle(world)
    world.break_down(world.all(MACHINE)[0]["metadata"]["name"])
    world.advance(1000)
    found = plan_for(world.view(), MACHINE_DEPLOYMENT, "md")
    assert condition_of(found, "Progressing")["status"] == "True"
    assert condition_of(found, "Available")["status"] == "False"


def test_a_rollout_that_is_to_pause_on_failure_stops_where_it_is() -> None:
    owner = machine_deployment("md").replicas(4).rolling(1, 1).kubelet(OLD).progress_deadline(100)
    owner.spec["strategy"]["rollingUpdate"]["onFailure"] = "Pause"
    world = World(owner)
    settle(world)
    set_template(world, NEW)
    for _ in range(8):
        reconcile_once(world)
        world.advance(3)
    world.advance(200)
    reconcile_once(world)
    before = {b["metadata"]["name"]: b["spec"]["replicas"] for b in world.all(MACHINE_SET)}
    broken = next(m for m in world.all(MACHINE) if m["spec"]["versions"]["kubelet"] == OLD)
    assert sizes(plan_for(world.view(), MACHINE_DEPLOYMENT, "md")) == {}
    assert broken
    assert before == {b["metadata"]["name"]: b["spec"]["replicas"] for b in world.all(MACHINE_SET)}


def test_events_name_the_sets_that_are_scaled_in_one_sentence() -> None:
    old = a_set("old", 10)
    new = a_set("new", 0, NEW, age=10)
    found = plan(deployment(10, 3, 2), old, machines(old, 10), new)
    assert events(found) == ["Scaled MachineSet old from 10 to 8, MachineSet new from 0 to 3"]


BAD_SPECS: dict[str, tuple[dict[str, Any], str]] = {
    "negative replicas": ({"replicas": -1}, "spec.replicas"),
    "replicas as text": ({"replicas": "3"}, "spec.replicas"),
    "a negative history": ({"revisionHistoryLimit": -1}, "spec.revisionHistoryLimit"),
    "surge and unavailable both zero": (
        {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    "a surge of text": ({"strategy": {"rollingUpdate": {"maxSurge": "x"}}}, "spec.strategy.rollingUpdate.maxSurge"),
    "an unknown strategy": ({"strategy": {"type": "Magic"}}, "spec.strategy.type"),
    "a strategy of text": ({"strategy": "Magic"}, "spec.strategy"),
    "a selector that does not match": ({"selector": {"matchLabels": {"a": "b"}}}, "spec.template.metadata.labels"),
    "an empty selector": ({"selector": {}}, "spec.selector"),
    "a template of text": ({"template": "x"}, "spec.template"),
    "a partition below zero": (
        {"strategy": {"rollingUpdate": {"partition": -1}}},
        "spec.strategy.rollingUpdate.partition",
    ),
}


@pytest.mark.parametrize(("spec", "field"), BAD_SPECS.values(), ids=BAD_SPECS.keys())
def test_what_slipped_past_the_schema_is_reported_with_its_field_and_nothing_is_done(
    spec: dict[str, Any], field: str
) -> None:
    body = deployment(3).build()
    body["spec"].update(spec)
    old = a_set("old", 3)
    found = plan_for(FakeView(body, old, *machines(old, 3)), MACHINE_DEPLOYMENT, "md")
    assert creates(found) == []
    assert patches(found, MACHINE_SET) == {}
    assert isinstance(found.outcome, Failed)
    status = status_of(found)
    assert status["errorReason"] == status["failureReason"] == "InvalidConfiguration"
    assert status["errorMessage"].startswith(field)
    assert events(found) == [status["errorMessage"]]


def test_a_set_with_a_damaged_spec_does_not_stop_the_others() -> None:
    old, new = a_set("old", 1).build(), a_set("new", 3, NEW)
    old["spec"]["replicas"] = "many"
    old["spec"]["template"] = "gone"
    old["status"]["ordinals"] = "lost"
    found = plan(deployment(3), old, new, machines(new, 2))
    assert patches(found, MACHINE_SET).keys() == {"new"}
    assert status_of(found)["replicas"] == 2
