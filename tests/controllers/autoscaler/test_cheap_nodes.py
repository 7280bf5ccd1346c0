"""Nodes for many different pods cost little: pods are dealt to zones first, each Node is as small as they allow."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.prices import PriceTable
from controllers.autoscaler.right_sizing import Size, Sizes
from controllers.scheduling.binpacking import Estimate, Filled
from controllers.scheduling.classes import PodClass
from controllers.scheduling.shapes import CPU, PODS, Demand, NodeInfo
from hack.bench.mixed import ZONES, decided, played, types
from hack.race.workloads import ZONE, Workload
from tests.controllers.autoscaler.fleet import Fleet
from tests.examples import usually

ONE, TWO = (PodClass(Demand(((CPU, cpu),)), "", {}, {}) for cpu in (1000, 2000))


def node(cores: int, pods: int = 10) -> NodeInfo:
    return NodeInfo(f"of-{cores}", {}, ((CPU, cores * 1000), (PODS, pods)))


def test_a_node_of_which_little_is_needed_is_a_smaller_one() -> None:
    sizes = Sizes([Size("large", node(8), Fraction(8), "like"), Size("small", node(2), Fraction(2), "like")])
    found = Estimate(3, {ONE: 17}, {}, (Filled(2, {ONE: 8}), Filled(1, {ONE: 1})))
    assert sizes.cost("large", found) == 18
    parts = sizes.split("large", found)
    assert [(name, part.nodes, dict(part.placed)) for name, part in parts] == [
        ("large", 2, {ONE: 16}),
        ("small", 1, {ONE: 1}),
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Size("small", node(2), Fraction(2), "another place"), id="a pod tells it apart"),
        pytest.param(Size("small", node(2), Fraction(9), "like"), id="it costs more"),
        pytest.param(Size("small", node(2), Fraction(2), "like", (TWO,)), id="its daemons need the room"),
        pytest.param(Size("small", node(2, pods=0), Fraction(2), "like"), id="it takes no more pods"),
    ],
)
def test_a_smaller_node_that_would_not_do_is_not_taken(other: Size) -> None:
    sizes = Sizes([Size("large", node(8), Fraction(8), "like"), other])
    found = Estimate(1, {ONE: 1}, {}, (Filled(1, {ONE: 1}),))
    assert sizes.split("large", found) == [("large", found)]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=6))
def test_no_pod_and_no_node_is_lost_by_sizing(rows: list[tuple[int, int, int]]) -> None:
    offered = [Size(str(cores), node(cores), Fraction(cores), "like") for cores in (1, 2, 4, 8)]
    filled = tuple(Filled(copies, {ONE: ones, TWO: twos}) for copies, ones, twos in rows)
    placed = Counter[PodClass]()
    for copies, ones, twos in rows:
        placed.update({ONE: copies * ones, TWO: copies * twos})
    found = Estimate(sum(each.copies for each in filled), dict(placed), {}, filled)
    parts = Sizes(offered).split("8", found)
    assert sum(part.nodes for _, part in parts) == found.nodes
    assert sum((Counter(part.placed) for _, part in parts), Counter()) == +placed
    prices = {each.group: each.price for each in offered}
    assert sum(prices[name] * part.nodes for name, part in parts) == Sizes(offered).cost("8", found)


def test_pods_over_zones_get_nodes_in_all_of_them() -> None:
    """16 pods of 900m: 4 in each of the four zones, and one Node of 4 cores costs as much as four of one."""
    made = played([[Workload("web", 16, "900m", "1Gi", (ZONE,))]])
    zones = Counter[str]()
    for group, nodes in made.added.items():
        zones[group.rpartition(".")[2]] += nodes
    assert len(zones) == 4


@given(st.lists(st.tuples(st.integers(1, 14), st.sampled_from(["900m", "3300m"])), min_size=1, max_size=4))
@usually(10)
def test_no_zone_gets_more_pods_than_the_skew_allows(sizes: list[tuple[int, str]]) -> None:
    wave = [Workload(f"w-{number}", pods, cpu, "1Gi", (ZONE,)) for number, (pods, cpu) in enumerate(sizes)]
    decision = decided(wave)
    for each in wave:
        zones = Counter[str]()
        for helped in decision.scale_up.helped:
            mine = sum(1 for pod in helped.pods if pod.name.startswith(f"{each.name}-"))
            zones[helped.group.rpartition(".")[2]] += mine
        if each.replicas >= len(ZONES):
            assert max(zones.values()) - min(zones[zone] for zone in ZONES) <= 1
    assert not decision.scale_up.left


def test_pods_that_need_much_of_one_thing_share_nodes_with_those_that_need_much_of_another() -> None:
    """One by one, 8 cores of memory's Nodes would idle, and so would the memory of cpu's."""
    memory, cpu = Workload("memory", 8, "1", "56Gi"), Workload("cpu", 8, "6500m", "1Gi")
    together, apart = played([[memory, cpu]]), played([[memory], [cpu]])
    assert together.cost < 0.8 * apart.cost


def test_the_smallest_pods_are_not_what_is_cheapest() -> None:
    """Per pod a Node of one core is; then the large pods would be left alone on large Nodes."""
    fleet = Fleet(AutoscalerOptions(GrowthOptions(choosing=Choosing(("price",), prices=PriceTable(PRICES)))))
    fleet.group("one", cpu="1")
    fleet.group("eight", cpu="8")
    fleet.pod("large", "6")
    fleet.pod("small")
    fleet.pod("other")
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/eight": 1}


PRICES = {"MachineDeployment/ns/one": 1.0, "MachineDeployment/ns/eight": 7.0}


def test_prices_are_of_the_types_that_the_race_offers() -> None:
    assert round(types()["m-16x"][2], 6) == 0.537439
