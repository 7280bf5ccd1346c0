"""The journal of sizes: views that lag in one of several MachineSets can't spend a budget twice."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kernel.actions import Patch
from controllers.kernel.plan import Wait
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from tests.builders import World, ago
from tests.builders.loop import plan_for, settle
from tests.builders.objects import MachineDeploymentBuilder
from tests.builders.plans import patches, sizes
from tests.builders.schedule import Process
from tests.controllers.machinedeployment.stories import NEW, a_set, deployment, machines, plan


def decided(owner: MachineDeploymentBuilder, name: str, version: str, replicas: int, seconds_ago: float) -> Any:
    entry = {"name": name, "version": version, "replicas": replicas}
    owner.status["rollout"] = {"at": ago(seconds_ago), "sets": [entry]}
    return owner


def rollout() -> tuple[Any, Any, list[Any]]:
    old, new = a_set("old", 3).version("50"), a_set("new", 1, NEW).version("60")
    return old, new, [old, *machines(old, 3), new, *machines(new, 1)]


def test_sizes_are_recorded_with_their_versions_before_they_are_applied() -> None:
    _, _, objects = rollout()
    first, second, *_ = plan(deployment(3).version("40"), objects).steps
    (guard,) = first
    assert isinstance(guard, Patch)
    assert guard.resource_version == "40"
    assert guard.patch["status"]["rollout"]["sets"] == [{"name": "old", "version": "50", "replicas": 2}]
    scaling = next(a for a in second if isinstance(a, Patch) and a.target.key.name == "old")
    assert scaling.resource_version == "50"


def test_nothing_is_decided_while_a_decided_size_may_be_under_way() -> None:
    _, _, objects = rollout()
    found = plan(decided(deployment(3), "old", "50", 2, seconds_ago=1), objects)
    assert sizes(found) == {}
    assert isinstance(found.outcome, Wait)


def test_after_a_while_it_finds_out_by_a_write_that_is_refused_if_the_size_was_applied() -> None:
    _, _, objects = rollout()
    found = plan(decided(deployment(3), "old", "50", 2, seconds_ago=60), objects)
    touch = patches(found, MACHINE_SET)["old"]
    assert touch.resource_version == "50"
    assert "spec" not in touch.patch


def test_a_set_that_shows_another_version_has_answered() -> None:
    _, _, objects = rollout()
    assert sizes(plan(decided(deployment(3), "old", "49", 2, seconds_ago=1), objects)) == {"old": 2}


@pytest.mark.parametrize("damaged", ["text", {"sets": "x"}, {"sets": [7]}, {"sets": [{"name": "old"}]}])
def test_a_damaged_journal_decides_nothing(damaged: object) -> None:
    owner = deployment(3)
    owner.status["rollout"] = damaged
    _, _, objects = rollout()
    assert sizes(plan(owner, objects)) == {"old": 2}


def test_a_crash_after_the_journal_is_repaired() -> None:
    _, _, objects = rollout()
    world = World(deployment(3), *objects)
    world.run(plan_for(world.view(), MACHINE_DEPLOYMENT, "md"), limit=1)
    settle(world)
    assert {b["metadata"]["name"]: b["spec"]["replicas"] for b in world.all(MACHINE_SET)} == {"old": 0, "new": 3}


def test_two_old_sets_of_which_one_lags_do_not_give_the_same_share_twice() -> None:
    """cluster-api#9334: one set was lowered, its view lags, and the order between the sets changes."""
    older, old, new = a_set("older", 2, "1.33.0", age=3000), a_set("old", 2), a_set("new", 1, NEW)
    world = World(deployment(4), older, *machines(older, 2), old, *machines(old, 2), new, *machines(new, 1))
    process = Process(world)
    process.round(MACHINE_DEPLOYMENT, "md")
    assert sum(b["spec"]["replicas"] for b in world.all(MACHINE_SET)) == 4
    marked = {"cluster.k8s.io/delete-machine": "yes"}
    world.change(MACHINE, "old-ok-0", lambda m: m["metadata"].update(annotations=marked))
    process.catch_up(MACHINE, 1)
    process.catch_up(MACHINE_DEPLOYMENT, 5)
    for seconds in (0, 10, 10):
        world.advance(seconds)
        process.round(MACHINE_DEPLOYMENT, "md")
    assert sum(b["spec"]["replicas"] for b in world.all(MACHINE_SET)) == 4, "only one share was there to spend"
