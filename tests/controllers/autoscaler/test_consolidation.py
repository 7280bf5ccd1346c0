"""Nodes that one cheaper or smaller Node takes the place of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from api import names
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.memory import Memory, read, write
from controllers.autoscaler.options import (
    AutoscalerOptions,
    ConsolidationOptions,
    GrowthOptions,
    ShrinkOptions,
    Window,
)
from controllers.autoscaler.prices import PriceTable
from tests.controllers.autoscaler.fleet import Fleet

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
