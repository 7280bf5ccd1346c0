"""Groups, expanders, balancing and back-off: functions of values."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler.backoff import Pauses, failed
from controllers.autoscaler.balancing import balance
from controllers.autoscaler.expanders import Choosing, ExpanderError, Option, choose, priorities_of
from controllers.kernel.refs import MACHINE_SET, Key, Ref
from controllers.scaling.node_group import Bounds, NodeGroup, discover
from controllers.scheduling.binpacking import Estimate
from controllers.scheduling.classes import PodClass
from controllers.scheduling.shapes import Demand, NodeInfo

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MIN, MAX = names.AUTOSCALER_MIN_ANNOTATION, names.AUTOSCALER_MAX_ANNOTATION


def body(name: str, annotations: dict[str, Any], replicas: Any = 2, owner: str = "") -> dict[str, Any]:
    owners = [{"kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else []
    meta = {"namespace": "ns", "name": name, "annotations": annotations, "ownerReferences": owners}
    return {"metadata": meta, "spec": {"replicas": replicas}}


def test_one_bad_group_does_not_disturb_the_others() -> None:
    """The Cluster Autoscaler loses all groups on one malformed annotation."""
    capi = {names.CAPI_AUTOSCALER_MIN_ANNOTATION: "0", names.CAPI_AUTOSCALER_MAX_ANNOTATION: "9"}
    groups, bad = discover(
        [body("good", {MIN: "1", MAX: "5"}), body("bad", {MIN: "one", MAX: "5"}), body("none", {})],
        [
            body("alone", capi),
            body("owned", capi, owner="MachineDeployment"),
            body("crossed", {MIN: "3", MAX: "2"}),
            body("negative", {MAX: "-1"}),
            body("open", {MIN: "1"}),
            body("off", {MIN: "0", MAX: "0"}),
            body("odd", {MAX: "3"}, replicas="two"),
        ],
    )
    assert [(group.id, group.headroom, group.spare) for group in groups] == [
        ("MachineDeployment/ns/good", 3, 1),
        ("MachineSet/ns/alone", 7, 2),
    ]
    told = {each.ref.key.name: each.field for each in bad}
    assert told == {
        "bad": f"metadata.annotations[{MIN}]",
        "crossed": f"metadata.annotations[{MIN}]",
        "negative": f"metadata.annotations[{MAX}]",
        "open": f"metadata.annotations[{MAX}]",
        "odd": "spec.replicas",
    }


POD_CLASS = PodClass(Demand((("cpu", 100),)), "", {}, {})


def option(group: str, nodes: int, pods: int, cpu: int = 1000, price: int | None = None) -> Option:
    node = NodeInfo(group, {}, (("cpu", cpu),))
    return Option(group, node, Estimate(nodes, {POD_CLASS: pods}, {}), None if price is None else Fraction(price))


SMALL, WIDE, MANY = option("small", 2, 20, price=5), option("wide", 1, 20, 4000, 8), option("many", 4, 30, price=9)
CHOICES: dict[str, tuple[tuple[str, ...], str]] = {
    "least waste": (("least-waste",), "small"),
    "most pods": (("most-pods",), "many"),
    "fewest Nodes": (("least-nodes",), "wide"),
    "the cheapest for what it helps": (("price",), "wide"),
    "the first in the list": (("priority",), "many"),
    "ties go to the next": (("priority", "least-nodes"), "many"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_an_expander_chooses(name: str) -> None:
    expanders, wanted = CHOICES[name]
    priorities = {1: [re.compile("small")], 50: [re.compile("^many$")]}
    found = choose([SMALL, WIDE, MANY, option("nothing", 0, 0)], Choosing(expanders, "seed", priorities))
    assert found is not None
    assert found.group == wanted


def test_a_list_that_names_no_group_chooses_none() -> None:
    """As upstream: then the next expander decides."""
    nobody = {1: [re.compile("nobody")]}
    found = choose([SMALL, WIDE], Choosing(("priority", "least-nodes"), "", nobody))
    assert found is WIDE


def test_chance_is_the_seeds() -> None:
    options = [SMALL, WIDE, MANY]
    drawn = [choose(options, Choosing(("random",), str(seed))) for seed in range(30)]
    assert drawn == [choose(options[::-1], Choosing(("random",), str(seed))) for seed in range(30)]
    assert {each.group for each in drawn if each} == {"small", "wide", "many"}


@pytest.mark.parametrize("expanders", [("luck",), ("random", "price")])
def test_an_expander_that_can_not_be_is_refused(expanders: tuple[str, ...]) -> None:
    with pytest.raises(ExpanderError, match=expanders[-1]):
        choose([SMALL, WIDE], Choosing(expanders))


@pytest.mark.parametrize(
    ("found", "entry"),
    [({"x": []}, "priorities[x]"), ({1: "a"}, "priorities[1]"), ({1: ["a", "("]}, "priorities[1][1]")],
)
def test_a_bad_list_of_priorities_names_its_entry(found: Any, entry: str) -> None:
    with pytest.raises(ExpanderError, match=re.escape(entry)):
        priorities_of(found)


def group(name: str, replicas: int, largest: int) -> NodeGroup:
    return NodeGroup(Ref(MACHINE_SET, Key("ns", name)), Bounds(0, largest), replicas)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=5), st.integers(0, 40))
def test_the_smallest_groups_are_filled_first(sizes: list[tuple[int, int]], new: int) -> None:
    groups = [group(f"g-{index}", size, top) for index, (size, top) in enumerate(sizes)]
    expected = {each.id: each.replicas for each in groups}
    for _ in range(new):
        growing = [each for each in groups if expected[each.id] < each.bounds.max_size]
        if growing:
            expected[min(growing, key=lambda each: (expected[each.id], each.id)).id] += 1
    found = balance(groups, new)
    assert {each.id: each.replicas + found.get(each.id, 0) for each in groups} == expected


def test_a_group_that_fails_rests_longer_each_time() -> None:
    first_pause = Pauses().first
    first = failed(None, NOW, "no quota", Pauses())
    assert first.until == NOW + first_pause
    again = failed(first, NOW + timedelta(minutes=1), "no quota", Pauses())
    assert again.until == first.until, "failures of one attempt are one failure"
    later, pauses = first, []
    for _ in range(5):
        later = failed(later, later.until, "no quota", Pauses())
        pauses.append(later.pause)
    assert pauses == [first_pause * 2, first_pause * 4, *[Pauses().longest] * 3]
    assert failed(later, later.failed_at + Pauses().forget_after, "no quota", Pauses()).pause == first_pause
