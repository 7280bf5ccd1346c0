"""Groups that have all of their Nodes or none, as hosts of one accelerator slice do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, Range, ShrinkOptions
from tests.controllers.autoscaler.fleet import START, Fleet

WHOLE = f"{names.AUTOSCALING_OPTIONS_PREFIX}zeroormaxnodescaling"
LONG = timedelta(minutes=11)
SLICE = "MachineDeployment/ns/slice"


def fleet_of(most: int = 4, least: int = 0, **options: Any) -> Fleet:
    """One group that is scaled as a whole, without Nodes."""
    fleet = Fleet(AutoscalerOptions(**options))
    fleet.group("slice", least, most)["metadata"]["annotations"][WHOLE] = "true"
    return fleet


def there(most: int = 4, **options: Any) -> Fleet:
    """The same with all of its Nodes, and nothing on them."""
    fleet = fleet_of(most, **options)
    fleet.deployments["slice"]["spec"]["replicas"] = most
    fleet.settle()
    return fleet


def gone(decision: Decision) -> list[str]:
    return sorted(victim.node for victim in decision.scale_down.victims)


def test_one_pod_makes_all_nodes_come() -> None:
    fleet = fleet_of()
    fleet.pod("one")
    assert fleet.decide().scale_up.added == {SLICE: 4}


def test_pods_that_fit_on_no_node_of_it_make_none_come() -> None:
    fleet = fleet_of()
    fleet.pod("huge", "99")
    assert not fleet.decide().scale_up.added


def test_a_group_of_which_some_nodes_are_there_is_completed() -> None:
    fleet = there()
    fleet.deployments["slice"]["spec"]["replicas"] = 1
    fleet.settle()
    fleet.pod("fills", "4")
    fleet.schedule()
    fleet.pod("more")
    assert fleet.decide().scale_up.added == {SLICE: 3}


def test_pods_that_wait_find_room_on_the_nodes_that_nobody_needed_yet() -> None:
    fleet = fleet_of()
    fleet.pod("one")
    fleet.round()
    fleet.group("other")
    fleet.pod("two", "4")
    assert not fleet.decide().scale_up.added, "three Nodes are on their way with nothing on them"


@pytest.mark.parametrize(
    ("growth", "why"),
    [
        ({"nodes_per_scale_up": 3}, "it grows by 4 Nodes or not at all: 3 Nodes are added at a time"),
        ({"max_nodes": 2}, "it grows by 4 Nodes or not at all: the cluster may have 2 Nodes"),
        ({"cores": Range(0, 15)}, "it grows by 4 Nodes or not at all: the cluster may have 15 cores"),
    ],
)
def test_less_than_all_is_none(growth: dict[str, Any], why: str) -> None:
    fleet = fleet_of(growth=GrowthOptions(**growth))
    fleet.pod("one")
    decision = fleet.decide()
    assert not decision.scale_up.added
    assert decision.scale_up.skipped[SLICE] == why


def test_waste_counts_the_empty_nodes_too() -> None:
    fleet = fleet_of()
    fleet.group("single")
    fleet.pod("one")
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/single": 1}


def test_its_nodes_are_shared_out_to_nobody_and_it_takes_none_of_others() -> None:
    fleet = fleet_of(growth=GrowthOptions(balance=True))
    fleet.group("single", most=2)
    for number in range(12):
        fleet.pod(f"p{number}", "4")
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/single": 2, SLICE: 4}


def test_all_go_when_nobody_needs_any_though_only_some_may_go_at_a_time() -> None:
    fleet = there(shrink=ShrinkOptions(parallel=2))
    fleet.round(after=LONG)
    fleet.round()
    assert fleet.size("slice") == 0


def test_if_one_is_needed_all_stay() -> None:
    fleet = there()
    fleet.pod("busy", "3", node="slice-1")
    fleet.round()
    fleet.now += LONG
    decision = fleet.decide()
    assert gone(decision) == []
    assert decision.scale_down.unneeded == {}
    staying = decision.scale_down.staying["slice-2"]
    assert staying.reason == "AtomicScaleDownFailed"
    assert staying.why == f"{SLICE} is scaled as a whole, and not all of its 4 Machines may go"


def test_pods_of_a_whole_group_do_not_move_within_it() -> None:
    fleet = there(most=2)
    fleet.pod("small", "1", node="slice-1")
    fleet.round(after=LONG)
    fleet.round()
    assert fleet.size("slice") == 2
    fleet.group("other")["spec"]["replicas"] = 1
    fleet.settle()
    fleet.pod("stays", "3", node="other-3")
    fleet.round(after=LONG)
    fleet.round()
    assert fleet.size("slice") == 0


def test_all_are_drained_at_once_where_all_have_pods() -> None:
    fleet = there(most=3)
    fleet.group("other")["spec"]["replicas"] = 1
    fleet.settle()
    fleet.pod("stays", "2", node="other-4")
    for node in ("slice-1", "slice-2", "slice-3"):
        fleet.pod(f"on-{node}", "0.5", node=node)
    fleet.options = AutoscalerOptions(shrink=ShrinkOptions(parallel_drains=1, utilization_threshold=0.3))
    fleet.round(after=LONG)
    assert gone(fleet.decide()) == ["slice-1", "slice-2", "slice-3"]


def test_it_waits_until_what_is_going_has_gone() -> None:
    fleet = there(shrink=ShrinkOptions(parallel=2))
    fleet.group("other")["spec"]["replicas"] = 1
    fleet.settle()
    fleet.round()
    fleet.now += LONG
    machine = fleet.machines["other-5"]
    going = {**machine["metadata"], "deletionTimestamp": "2026-06-01T00:00:00Z"}
    fleet.machines["other-5"] = {**machine, "metadata": going}
    decision = fleet.decide()
    assert gone(decision) == []
    assert decision.scale_down.staying["slice-1"].why == "4 Nodes go at once, when the 1 that are going have gone"


def test_marks_that_were_set_on_some_when_we_died_are_completed_or_taken_back() -> None:
    fleet = there()
    fleet.round()
    fleet.now += LONG
    mark = {names.DELETE_MACHINE_ANNOTATION: "nodewright-autoscaler"}
    fleet.machines["slice-1"]["metadata"]["annotations"] |= mark
    assert gone(fleet.decide()) == [f"slice-{number}" for number in range(1, 5)]
    fleet.options = AutoscalerOptions(shrink=ShrinkOptions(enabled=False))
    decision = fleet.decide()
    assert gone(decision) == []
    assert [machine.key.name for machine in decision.scale_down.unmarked] == ["slice-1"]


def failing(fleet: Fleet, most: int = 4) -> None:
    """All but one host came, and for that one there is no stock."""
    fleet.deployments["slice"]["spec"]["replicas"] = most
    for _ in range(most - 1):
        fleet.join(fleet.machine("slice"))
    fleet.machine("slice", {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"})


def test_where_one_host_can_not_be_had_the_others_go_too_and_the_group_rests() -> None:
    fleet = fleet_of()
    failing(fleet)
    fleet.group("other")
    fleet.pod("one", "5")
    fleet.pod("two")
    decision = fleet.decide()
    assert len(decision.scale_down.victims) == 4
    (why,) = {victim.why for victim in decision.scale_down.victims}
    assert why == f"{SLICE} is scaled as a whole, and its Machine slice-4 is no Node: StockOut: none left"
    assert SLICE in decision.memory.backoffs
    fleet.round()
    assert fleet.size("slice") == 0


def hosts_on_their_way(fleet: Fleet) -> None:
    """One Node is there, one host can't be had, two are on their way."""
    fleet.deployments["slice"]["spec"]["replicas"] = 4
    fleet.join(fleet.machine("slice"))
    fleet.machine("slice", {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"})
    for _ in range(2):
        fleet.machine("slice")
    fleet.group("other")
    for number in range(2):
        fleet.pod(f"p{number}", "4")


def test_what_is_not_given_up_is_still_waited_for() -> None:
    """Its minimum keeps it: the two that come take the pods, and nobody else grows for them."""
    fleet = fleet_of(least=4)
    hosts_on_their_way(fleet)
    decision = fleet.decide()
    assert decision.scale_down.victims == ()
    assert decision.scale_up.added == {}


def test_a_group_is_given_up_as_a_whole_or_not_while_one_of_its_machines_goes_already() -> None:
    """It would be left with the Machine that is yet to be made in place of that one."""
    fleet = fleet_of()
    failing(fleet)
    machine = fleet.machines["slice-1"]
    going = {**machine["metadata"], "deletionTimestamp": "2026-06-01T00:00:00Z"}
    fleet.machines["slice-1"] = {**machine, "metadata": going}
    assert fleet.decide().scale_down.victims == ()


def test_a_group_with_a_node_that_is_not_ready_is_not_given_up() -> None:
    """Nobody sees the pods that it may carry."""
    fleet = fleet_of()
    failing(fleet)
    fleet.nodes["slice-1"]["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "NotReady"}]
    assert fleet.decide().scale_down.victims == ()


def test_nodes_with_work_on_them_stay_though_one_host_can_not_be_had() -> None:
    fleet = fleet_of()
    failing(fleet)
    fleet.pod("works", node="slice-1")
    assert fleet.decide().scale_down.victims == ()


come = st.tuples(st.just("come"), st.integers(1, 4), st.sampled_from(["0.5", "1", "3"]))
leave = st.tuples(st.just("leave"), st.integers(1, 9), st.just(""))
dies = st.tuples(st.just("dies"), st.integers(0, 2), st.just(""))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(come, leave, dies), max_size=8), st.booleans())
def test_whatever_happens_it_has_all_or_none(story: list[tuple[str, int, str]], hosts_are_slow: bool) -> None:
    fleet = fleet_of(shrink=ShrinkOptions(parallel=2, delay_after_add=timedelta(0)))
    for what, count, cpu in story:
        if what == "come":
            fleet.come(count, cpu)
        elif what == "leave":
            fleet.leave(count)
        fleet.round(steps=count if what == "dies" else 9, after=timedelta(minutes=4))
        assert fleet.size("slice") in {0, 4}
        if not hosts_are_slow:
            fleet.settle()
    for _ in range(6):
        fleet.settle()
        fleet.round(after=LONG)
    assert (fleet.size("slice") == 4) == bool(fleet.pods)
    assert not fleet.decide().steps


def test_a_minimum_between_none_and_all_is_refused_by_name() -> None:
    fleet = fleet_of(least=1)
    (bad,) = fleet.observed().bad
    assert bad.field == f"metadata.annotations[{WHOLE}]"
    assert bad.message == "a group that has no Nodes or 4 can't have a minimum of 1"
    assert not fleet_of(least=4).observed().bad


def test_a_group_whose_minimum_is_all_of_it_never_goes() -> None:
    fleet = there()
    fleet.deployments["slice"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "4"
    fleet.round(after=LONG)
    fleet.round()
    assert fleet.size("slice") == 4
    assert fleet.now > START
