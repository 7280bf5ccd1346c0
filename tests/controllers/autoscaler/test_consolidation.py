"""Nodes that one cheaper or smaller Node takes the place of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.explaining import explain_group, explain_node
from controllers.autoscaler.memory import Memory, read, write
from controllers.autoscaler.options import (
    AutoscalerOptions,
    ConsolidationOptions,
    GrowthOptions,
    ShrinkOptions,
    Window,
)
from controllers.autoscaler.prices import PriceTable
from controllers.autoscaler.status import status_of
from controllers.kernel.refs import CONFIG_MAP, MACHINE_DEPLOYMENT, ref_of
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.test_explaining import told
from tests.controllers.autoscaler.town import config_map, observed_of

PATIENCE = timedelta(minutes=15)
WAIT = timedelta(minutes=1)
QUICK = ShrinkOptions(unneeded_time=WAIT, delay_after_add=timedelta(0), delay_after_failure=timedelta(0))
DEAR, CHEAP, SMALL = "MachineDeployment/ns/dear", "MachineDeployment/ns/cheap", "MachineDeployment/ns/small"


def fleet_of(nodes: int = 2, *, prices: dict[str, float] | None = None, **more: Any) -> Fleet:
    """``nodes`` Nodes of the group dear, with a pod of 1.5 of their 4 cores each that no two of them could share."""
    priced = {DEAR: 1.0, CHEAP: 1.0} if prices is None else prices
    consolidation = ConsolidationOptions(enabled=True, **more)
    growth = GrowthOptions(choosing=Choosing(prices=PriceTable(nodes=priced)))
    fleet = Fleet(AutoscalerOptions(growth, QUICK, consolidation=consolidation))
    fleet.group("dear", cpu="4", memory="8Gi")["spec"]["replicas"] = nodes
    fleet.group("cheap", cpu="8", memory="16Gi")
    for _ in range(nodes):
        fleet.join(fleet.machine("dear"))
    for number, node in enumerate(sorted(fleet.nodes)):
        fleet.pod(f"p-{number}", "3", node=node)
    return fleet


def lived(fleet: Fleet, rounds: int = 12, **how: Any) -> list[dict[str, int]]:
    """Sizes after each look; no pod is ever left pending."""
    sizes = []
    for _ in range(rounds):
        fleet.round(after=WAIT, **how)
        fleet.settle()
        assert all(pod["spec"]["nodeName"] for pod in fleet.pods.values()), "no pod stays pending"
        sizes.append({name: fleet.size(name) for name in fleet.deployments})
    return sizes


def test_one_cheaper_node_takes_the_place_of_two() -> None:
    sizes = lived(fleet_of())
    assert sizes[-1] == {"dear": 0, "cheap": 1}
    assert {"dear": 2, "cheap": 1} in sizes, "the new one is there before an old one goes"


def test_nothing_is_consolidated_unless_it_is_asked_for() -> None:
    fleet = fleet_of()
    fleet.options = replace(fleet.options, consolidation=ConsolidationOptions())
    assert lived(fleet, 5)[-1] == {"dear": 2, "cheap": 0}


def test_one_node_is_replaced_by_a_cheaper_one_of_another_group() -> None:
    assert lived(fleet_of(1, prices={DEAR: 2.0, CHEAP: 1.0}))[-1] == {"dear": 0, "cheap": 1}


def test_never_for_a_gain_below_the_threshold() -> None:
    fleet = fleet_of(prices={DEAR: 1.0, CHEAP: 1.8})
    assert lived(fleet, 5)[-1] == {"dear": 2, "cheap": 0}
    assert "saves 10%, less than 15%" in fleet.decide().consolidation.why
    fleet.options = replace(fleet.options, consolidation=ConsolidationOptions(enabled=True, least_gain=0.1))
    assert lived(fleet)[-1] == {"dear": 0, "cheap": 1}


def test_without_prices_the_new_node_is_smaller_than_the_old_ones_together() -> None:
    fleet = fleet_of(1, prices={})
    fleet.group("small", cpu="3", memory="2Gi")
    assert lived(fleet)[-1] == {"dear": 0, "cheap": 0, "small": 1}


def test_nodes_with_a_price_are_not_compared_to_those_without() -> None:
    fleet = fleet_of(1, prices={DEAR: 1.0})
    fleet.group("small", cpu="3", memory="2Gi")
    assert lived(fleet, 5)[-1]["dear"] == 1


def test_it_waits_as_long_as_a_node_has_to_be_unneeded() -> None:
    fleet = fleet_of()
    first = fleet.round(after=timedelta(seconds=30))
    assert "in place of Nodes dear-1 and dear-2: 50% cheaper; so for 0s of 1m" in first.consolidation.why
    assert not first.steps
    assert not fleet.round(after=timedelta(seconds=30)).steps
    assert fleet.round().consolidation.begins is not None


def test_outside_its_windows_nothing_goes() -> None:
    """The story begins at midnight UTC."""
    later = fleet_of(windows=(Window("0 3 * * *", timedelta(hours=1)),))
    assert lived(later, 5)[-1] == {"dear": 2, "cheap": 0}
    assert later.decide().consolidation.why == "no window for consolidation is open"
    now = fleet_of(windows=(Window("0 0 * * *", timedelta(hours=1)),))
    assert lived(now)[-1] == {"dear": 0, "cheap": 1}


def test_the_new_machine_goes_again_when_the_window_closes_before_an_old_one_went() -> None:
    fleet = fleet_of(windows=(Window("0 0 * * *", timedelta(minutes=2)),))
    for _ in range(2):
        fleet.round(after=WAIT)
    assert fleet.size("cheap") == 1
    assert lived(fleet, 3)[-1] == {"dear": 2, "cheap": 0}
    assert names.CONSOLIDATION_ANNOTATION not in fleet.deployments["cheap"]["metadata"]["annotations"]


def test_a_machine_that_never_comes_is_given_up_and_the_old_nodes_stay() -> None:
    fleet = fleet_of()
    fleet.round(after=WAIT)
    fleet.round(after=WAIT)
    fleet.machine("cheap")
    fleet.round(after=PATIENCE)
    assert fleet.size("cheap") == 1
    fleet.round(after=WAIT)
    assert fleet.size("cheap") == 0
    fleet.machines = {name: each for name, each in fleet.machines.items() if name.startswith("dear")}
    fleet.round(after=WAIT)
    fleet.round(after=WAIT)
    decision = fleet.round(after=WAIT)
    assert names.CONSOLIDATION_ANNOTATION not in fleet.deployments["cheap"]["metadata"]["annotations"]
    assert decision.memory.consolidation is None
    assert "rests until" in decision.consolidation.why
    assert fleet.size("dear") == 2


def test_what_is_remembered_survives_a_restart() -> None:
    fleet = fleet_of()
    fleet.round(after=WAIT)
    fleet.round(after=WAIT)
    record = read(fleet.text).consolidation
    assert record is not None
    assert record.begun is not None
    assert sorted(record.machines.values()) == ["ns/dear-1", "ns/dear-2"]
    assert read(write(Memory(consolidation=record))).consolidation == record
    assert fleet.deployments["cheap"]["metadata"]["annotations"][names.CONSOLIDATION_ANNOTATION] == record.id


def test_an_annotation_of_which_nothing_is_remembered_is_taken_away_and_no_node_goes_for_it() -> None:
    fleet = fleet_of()
    fleet.deployments["cheap"]["metadata"]["annotations"][names.CONSOLIDATION_ANNOTATION] = "made-up"
    fleet.round()
    assert names.CONSOLIDATION_ANNOTATION not in fleet.deployments["cheap"]["metadata"]["annotations"]
    assert (fleet.size("dear"), fleet.size("cheap")) == (2, 0)


def test_a_forgotten_one_keeps_its_new_node_until_nobody_needs_it() -> None:
    fleet = fleet_of()
    fleet.round(after=WAIT)
    fleet.round(after=WAIT)
    fleet.settle()
    fleet.text = ""
    fleet.round(after=timedelta(0))
    assert fleet.size("dear") == 2, "nothing goes by what a group says of itself"
    assert lived(fleet)[-1]["dear"] + lived(fleet)[-1]["cheap"] <= 2


KEPT = ("annotation", "pod", "budget", "minimum", "nobody's")


@pytest.mark.parametrize("by", KEPT)
def test_what_keeps_a_node_from_going_keeps_it_from_being_replaced(by: str) -> None:
    fleet = fleet_of(1, prices={DEAR: 9.0, CHEAP: 1.0})
    (name,) = fleet.nodes
    if by == "annotation":
        fleet.nodes[name]["metadata"]["annotations"][names.SCALE_DOWN_DISABLED_ANNOTATION] = "true"
    elif by == "pod":
        fleet.pods["p-0"]["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    elif by == "budget":
        fleet.others["budgets"] = [pdb(0)]
        fleet.pods["p-0"]["metadata"]["labels"] = {"app": "web"}
    elif by == "minimum":
        fleet.deployments["dear"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "1"
    else:
        del fleet.machines[name]
        fleet.deployments["dear"]["spec"]["replicas"] = 0
    before = fleet.size("dear")
    assert lived(fleet, 4)[-1] == {"dear": before, "cheap": 0}
    assert name in fleet.nodes


def pdb(allowed: int) -> dict[str, Any]:
    meta = {"namespace": "default", "name": "web"}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": meta, "spec": spec, "status": {"disruptionsAllowed": allowed}}


def test_pods_of_one_budget_on_several_nodes_move_one_after_the_other() -> None:
    fleet = fleet_of()
    fleet.options = replace(fleet.options, shrink=replace(QUICK, parallel_drains=5))
    fleet.others["budgets"] = [pdb(1)]
    for pod in fleet.pods.values():
        pod["metadata"]["labels"] = {"app": "web"}
    sizes = [each["dear"] for each in lived(fleet)]
    assert sizes[-3:] == [0, 0, 0]
    assert 1 in sizes, "the budget lets one pod go at a time"


def test_with_consolidation_a_node_goes_however_much_of_it_is_used_if_its_pods_fit_elsewhere() -> None:
    """Three Nodes with 2.5 of 4 cores asked for, in pods of half a core: two of them and a half are enough."""
    fleet = fleet_of(0, prices={})
    fleet.deployments["dear"]["spec"]["replicas"] = 3
    for _ in range(3):
        node = fleet.join(fleet.machine("dear"))["metadata"]["name"]
        for index in range(5):
            fleet.pod(f"{node}-{index}", "0.5", node=node)
    usual = fleet.options
    fleet.options = replace(usual, consolidation=ConsolidationOptions())
    assert lived(fleet, 4)[-1]["dear"] == 3
    fleet.options = usual
    assert lived(fleet, 4)[-1]["dear"] == 2


def test_a_group_is_made_for_it_of_a_class_that_is_offered() -> None:
    fleet = fleet_of(1, prices={})
    growth = replace(fleet.options.growth, own_groups=2)
    fleet.options = replace(fleet.options, growth=growth)
    fleet.offer("tiny", cpu="3", memory="2Gi")
    sizes = lived(fleet)
    (own,) = [name for name in sizes[-1] if name.startswith("tiny-")]
    assert sizes[-1] == {"dear": 0, "cheap": 0, own: 1}


def test_pods_that_came_meanwhile_have_the_room_and_the_old_nodes_stay() -> None:
    fleet = fleet_of()
    fleet.round(after=WAIT)
    fleet.round(after=WAIT)
    fleet.pod("late", "6")
    for _ in range(8):
        fleet.settle()
        fleet.round(after=timedelta(minutes=5))
        assert all(pod["spec"]["nodeName"] for pod in fleet.pods.values())
    assert (fleet.size("dear"), fleet.size("cheap")) == (2, 1)
    assert names.CONSOLIDATION_ANNOTATION not in fleet.deployments["cheap"]["metadata"]["annotations"]


def test_explain_says_what_is_replaced_by_what_and_the_status_counts_it() -> None:
    fleet = fleet_of()
    assert "is to be replaced: 1 Node of MachineDeployment/ns/cheap in place of" in told(
        explain_node(observed_of(fleet), "dear-1")
    )
    fleet.round(after=WAIT)
    observed = observed_of(fleet, (CONFIG_MAP, config_map(names.AUTOSCALER_MEMORY, memory=fleet.text)))
    said = told(explain_group(observed, ref_of(MACHINE_DEPLOYMENT, fleet.deployments["cheap"])))
    assert "grows by 1 Node" in said
    assert "50% cheaper" in said
    groups = status_of(fleet.observed(), fleet.decide())["nodeGroups"]
    assert {each["name"]: each["health"]["cloudProviderTarget"] for each in groups}[CHEAP] == 1


def test_switched_off_one_that_is_under_way_is_forgotten_and_nothing_is_written_on_groups() -> None:
    fleet = fleet_of()
    fleet.round(after=WAIT)
    fleet.round(after=WAIT)
    fleet.options = replace(fleet.options, consolidation=ConsolidationOptions())
    decision = fleet.round()
    assert decision.memory.consolidation is None
    assert not decision.steps
    assert lived(fleet, 5)[-1]["cheap"] + fleet.size("dear") == 2


def test_a_tenant_who_writes_the_annotation_again_and_again_keeps_nobody_from_consolidating() -> None:
    fleet = fleet_of()
    fleet.group("theirs")
    for _ in range(9):
        fleet.deployments["theirs"]["metadata"]["annotations"][names.CONSOLIDATION_ANNOTATION] = "made-up"
        fleet.round(after=WAIT)
        fleet.settle()
    assert (fleet.size("dear"), fleet.size("cheap"), fleet.size("theirs")) == (0, 1, 0)
