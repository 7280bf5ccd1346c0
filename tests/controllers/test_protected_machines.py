"""Machines whose membership status says ``evictable: false``: no decision takes them away, and owners say so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.names import StrategyType
from controllers.kernel import machine_facts
from controllers.kernel.in_place import forbids_replacement
from controllers.kernel.machine_facts import is_protected
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, annotations_of
from tests.builders import World, machine, machine_deployment, machine_set
from tests.builders.loop import plan_for, reconcile_once, settle
from tests.builders.plans import deletes
from tests.builders.world import conditions_of
from tests.controllers.machinedeployment.stories import NEW, OLD, set_replicas, set_template, sets_of

PROTECTED = '{"active":true,"evictable":false}'
SET_ASIDE = '{"active":false,"evictable":false}'
EVICTABLE = '{"active":true,"evictable":true}'
STAYS = "protected by membership status"


def protect(world: World, *machines: str, said: str = PROTECTED) -> None:
    for name in machines:
        world.annotate(MACHINE, name, names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, said)


def live(world: World) -> set[str]:
    """Names of the Machines that are not being deleted."""
    return {m["metadata"]["name"] for m in world.all(MACHINE) if not m["metadata"].get("deletionTimestamp")}


def said(world: World, kind: Any, name: str, type_: str) -> dict[str, Any]:
    return next((c for c in conditions_of(world.get(kind, name)) if c["type"] == type_), {})


def fleet(replicas: int, **strategy: Any) -> World:
    """A MachineDeployment ``md`` of that many Machines, all of them Ready."""
    deployment = machine_deployment("md").replicas(replicas).rolling(1, 0).kubelet(OLD)
    world = World(deployment)
    if strategy:
        world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(strategy=strategy))
    settle(world)
    return world


@pytest.mark.parametrize(
    "text", [PROTECTED, SET_ASIDE, '{"active":true}', "[", "[" * 250, "[" * 5000, "7", "null", '"x"']
)
def test_what_a_client_said_or_what_nobody_can_read_protects(text: str) -> None:
    body = machine("m").annotated(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, text).body
    assert is_protected(body)
    assert machine_facts.read(body).protected


@pytest.mark.parametrize("text", ["", EVICTABLE, '{"active":false,"evictable":true}'])
def test_others_are_not_protected(text: str) -> None:
    assert not is_protected(machine("m").annotated(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, text).body)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_value_of_the_annotation_can_be_read(value: Any) -> None:
    body = {"metadata": {"name": "m", "annotations": {names.CLOUDPOOL_MEMBERSHIP_ANNOTATION: value}}}
    assert is_protected(body) in (True, False)


@pytest.mark.parametrize("mark", [names.DELETE_MACHINE_ANNOTATION, names.CAPI_DELETE_MACHINE_ANNOTATION])
def test_a_smaller_size_takes_others_and_a_mark_says_nothing(mark: str) -> None:
    world = fleet(4)
    keep = sorted(live(world))[:2]
    protect(world, *keep)
    for name in keep:
        world.annotate(MACHINE, name, mark)
    set_replicas(world, 2)
    settle(world)
    assert live(world) == set(keep)


def test_what_can_not_be_reached_is_said_with_names_and_nobody_polls() -> None:
    world = fleet(8)
    keep = sorted(live(world))[:7]
    protect(world, *keep)
    set_replicas(world, 1)
    settle(world)
    assert live(world) == set(keep)
    condition = said(world, MACHINE_DEPLOYMENT, "md", "ScalingDown")
    assert (condition["status"], condition["reason"]) == ("True", "MachinesProtected")
    assert keep[0] in condition["message"]
    assert "and 2 more" in condition["message"]
    for kind, name in ((MACHINE_SET, world.all(MACHINE_SET)[0]["metadata"]["name"]), (MACHINE_DEPLOYMENT, "md")):
        plan = plan_for(world.view(), kind, name)
        assert not plan.steps
        assert getattr(plan.outcome, "after", 60.0) >= 60.0
    protect(world, *keep, said=EVICTABLE)
    settle(world)
    assert len(live(world)) == 1
    assert said(world, MACHINE_DEPLOYMENT, "md", "ScalingDown")["status"] == "False"


def test_a_machine_set_of_its_own_keeps_them_too() -> None:
    world = World(machine_set("ms").replicas(3).kubelet(OLD))
    settle(world)
    keep = sorted(live(world))[1]
    protect(world, keep, said=SET_ASIDE)
    world.change(MACHINE_SET, "ms", lambda body: body["spec"].update(replicas=0))
    settle(world)
    assert live(world) == {keep}
    assert said(world, MACHINE_SET, "ms", "Ready")["reason"] == "MachinesProtected"
    assert keep in said(world, MACHINE_SET, "ms", "ScalingDown")["message"]
    plan = plan_for(world.view(), MACHINE_SET, "ms")
    assert not plan.steps
    assert getattr(plan.outcome, "after", 60.0) >= 60.0


def test_one_that_is_protected_between_the_choice_and_the_delete_stays() -> None:
    world = World(machine_set("ms").replicas(2).kubelet(OLD))
    settle(world)
    world.change(MACHINE_SET, "ms", lambda body: body["spec"].update(replicas=1))
    while not (chosen := deletes(plan := plan_for(world.view(), MACHINE_SET, "ms"))):
        world.run(plan)
        world.advance(3)
    protect(world, *chosen)
    assert not world.run(plan)
    assert set(chosen) <= live(world)
    settle(world)
    assert live(world) == set(chosen)


@pytest.mark.parametrize("limits", [(1, 0), (0, 1), (2, 1)])
def test_a_rolling_update_waits_for_them_and_goes_on_when_they_may_go(limits: tuple[int, int]) -> None:
    surge, unavailable = limits
    world = fleet(4, type=StrategyType.ROLLING_UPDATE, rollingUpdate={"maxSurge": surge, "maxUnavailable": unavailable})
    keep = sorted(live(world))[2]
    protect(world, keep)
    set_template(world, NEW)
    settle(world)
    assert keep in live(world)
    assert sets_of(world) == {OLD: 1, NEW: 3}
    condition = said(world, MACHINE_DEPLOYMENT, "md", "RollingOut")
    assert (condition["status"], condition["reason"]) == ("True", "MachinesProtected")
    assert keep in condition["message"]
    world.advance(3600)
    settle(world)
    assert said(world, MACHINE_DEPLOYMENT, "md", "Progressing")["status"] == "True"
    protect(world, keep, said=EVICTABLE)
    settle(world)
    assert keep not in live(world)
    assert sets_of(world).get(NEW) == 4
    assert said(world, MACHINE_DEPLOYMENT, "md", "RollingOut")["status"] == "False"


def test_a_rollout_goes_on_when_a_person_deletes_the_machine() -> None:
    world = fleet(3)
    keep = sorted(live(world))[0]
    protect(world, keep)
    set_template(world, NEW)
    settle(world)
    body = world.get(MACHINE, keep)
    world.put({**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    settle(world)
    assert keep not in live(world)
    assert said(world, MACHINE_DEPLOYMENT, "md", "RollingOut")["status"] == "False"


def test_recreate_takes_nobody_while_one_is_protected() -> None:
    world = fleet(3, type=StrategyType.RECREATE)
    before = live(world)
    protect(world, sorted(before)[0])
    set_template(world, NEW)
    settle(world)
    assert live(world) == before
    assert said(world, MACHINE_DEPLOYMENT, "md", "RollingOut")["reason"] == "MachinesProtected"
    set_replicas(world, 2)
    settle(world)
    assert live(world) < before
    assert sorted(before)[0] in live(world)
    protect(world, sorted(before)[0], said=EVICTABLE)
    settle(world)
    assert not live(world) & before
    assert len(live(world)) == 2


def test_on_delete_scales_down_around_them() -> None:
    world = fleet(3, type=StrategyType.ON_DELETE)
    keep = sorted(live(world))[:2]
    protect(world, *keep)
    set_template(world, NEW)
    settle(world)
    set_replicas(world, 1)
    settle(world)
    assert live(world) == set(keep)


def test_scaling_in_a_rollout_goes_around_them() -> None:
    world = fleet(6)
    keep = sorted(live(world))[:2]
    protect(world, *keep)
    set_template(world, NEW)
    for _ in range(6):
        reconcile_once(world)
        world.make_ready()
        world.advance(3)
    for replicas in (3, 0, 5):
        set_replicas(world, replicas)
        settle(world)
        assert set(keep) <= live(world)
    assert sets_of(world) == {OLD: 2, NEW: 3}


def test_an_unhealthy_one_is_not_replaced_by_its_owner() -> None:
    world = World(machine_set("ms").replicas(2).kubelet(OLD))
    settle(world)
    sick = sorted(live(world))[0]
    protect(world, sick)
    condition = {"type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation", "message": ""}
    world.change(MACHINE, sick, lambda body: body["status"]["conditions"].append(condition))
    settle(world)
    assert sick in live(world)
    remediating = said(world, MACHINE_SET, "ms", "Remediating")
    assert remediating["reason"] == "RemediationDeferred"
    assert STAYS in remediating["message"]
    protect(world, sick, said=EVICTABLE)
    settle(world)
    assert sick not in live(world)


def test_the_mark_of_a_removal_is_still_there_when_it_may_go() -> None:
    world = World(machine_set("ms").replicas(3).kubelet(OLD))
    settle(world)
    marked = sorted(live(world))[1]
    protect(world, marked)
    world.annotate(MACHINE, marked, names.DELETE_MACHINE_ANNOTATION)
    assert not machine_facts.read(world.get(MACHINE, marked)).annotated
    protect(world, marked, said=EVICTABLE)
    assert annotations_of(world.get(MACHINE, marked))[names.DELETE_MACHINE_ANNOTATION]
    world.change(MACHINE_SET, "ms", lambda body: body["spec"].update(replicas=2))
    settle(world)
    assert marked not in live(world)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("size"), st.integers(0, 5)),
            st.tuples(st.just("template"), st.sampled_from((OLD, NEW, "1.36.0"))),
            st.tuples(st.just("protect"), st.integers(0, 5)),
            st.tuples(st.just("strategy"), st.sampled_from(tuple(StrategyType))),
            st.tuples(st.just("sick"), st.integers(0, 5)),
            st.tuples(st.just("lag"), st.integers(0, 6)),
        ),
        max_size=8,
    )
)
def test_whatever_is_asked_for_no_protected_machine_goes(story: list[tuple[str, Any]]) -> None:
    world = fleet(3)
    kept: set[str] = set()
    for what, value in story:
        there = sorted(live(world))
        if what == "size":
            set_replicas(world, value)
        elif what == "template":
            set_template(world, value)
        elif what == "strategy":
            world.change(MACHINE_DEPLOYMENT, "md", lambda body, v=value: body["spec"].update(strategy={"type": v}))  # type: ignore[misc]
        elif there and what == "protect":
            protect(world, there[value % len(there)])
            kept.add(there[value % len(there)])
        elif there and what == "sick" and (world.get(MACHINE, there[value % len(there)]).get("status") or {}):
            world.break_down(there[value % len(there)])
        for kind in (MACHINE_DEPLOYMENT, MACHINE_SET):
            for obj in world.all(kind):
                lag = {MACHINE: value} if what == "lag" else {}
                world.run(plan_for(world.view(lag), kind, obj["metadata"]["name"]))
        world.make_ready()
        world.finish_deletions()
        world.advance(3)
        assert kept <= live(world)
    settle(world)
    assert kept <= live(world)
    protect(world, *kept, said=EVICTABLE)
    for name in live(world):  # a new Machine that stays sick would hold a rollout up by itself
        world.change(MACHINE, name, lambda body: body["status"].pop("nodeRef", None))
    world.make_ready()
    world.change(MACHINE_DEPLOYMENT, "md", lambda body: body["spec"].update(strategy={"type": "RollingUpdate"}))
    settle(world)
    assert said(world, MACHINE_DEPLOYMENT, "md", "RollingOut")["status"] == "False"


@pytest.mark.parametrize("required", [False, True])
def test_its_host_is_not_replaced(required: bool) -> None:
    built = machine("m").annotated(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, PROTECTED)
    if required:
        built = built.annotated(names.IN_PLACE_ANNOTATION, "Require")
    assert forbids_replacement(built.build()) == "its membership status (evictable: false)"
    assert not forbids_replacement(machine("m").annotated(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, EVICTABLE).build())
