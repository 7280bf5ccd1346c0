"""New Nodes that come in an order which nobody chose: how many of them pods need."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.selectors import Operator, Requirement, Selector
from controllers.scheduling.binpacking import template
from controllers.scheduling.classes import Classes
from controllers.scheduling.ordered_estimate import asks_where, estimate_in_order
from controllers.scheduling.predicates import static_refusal
from controllers.scheduling.shapes import Demand, NodeInfo, NodeTerm, PodInfo, PodKind, PodTerm, Spread, Volume
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.scheduling.test_properties import scenes
from tests.controllers.scheduling.worlds import NAMESPACES
from tests.examples import usually

ZONE = "topology.kubernetes.io/zone"
IN_A = (Requirement(ZONE, Operator.IN, ("a",)),)
WEB = Selector((Requirement("app", Operator.IN, ("web",)),))
HERE = frozenset({"default"})


def coming(zones: str) -> list[Any]:
    shape = NodeInfo("new", {}, (("cpu", 2), ("pods", 10)))
    return [(template(NodeInfo("new", {ZONE: zone}, shape.allocatable), "new"), ()) for zone in zones]


def kind(**demand: Any) -> PodKind:
    return PodKind(Demand((("cpu", 1),), **demand), "default", {"app": "web"})


ASKING = {
    "by its node selector": {"node_selector": IN_A},
    "by its node affinity": {"node_terms": (NodeTerm(IN_A),)},
    "by whom it wants beside it": {"affinity": (PodTerm(WEB, ZONE, HERE),)},
    "by whom it does not": {"anti_affinity": (PodTerm(WEB, ZONE, HERE),)},
    "by how it is spread": {"spread": (Spread(1, ZONE, WEB),)},
    "by a volume": {"volumes": (Volume("v", terms=(NodeTerm(IN_A),)),)},
    "by the zone of a volume": {"volumes": (Volume("v", zones=IN_A),)},
}


@pytest.mark.parametrize("how", ASKING)
def test_a_pod_asks_where(how: str) -> None:
    asking = kind(**ASKING[how])
    classes = Classes([asking])
    snapshot = Snapshot([], [], classes)
    assert asks_where(snapshot, classes.of(asking), ZONE)
    assert not asks_where(snapshot, classes.of(asking), "rack")


def test_a_pod_asks_where_if_another_does_not_want_it_near() -> None:
    averse, plain = kind(anti_affinity=(PodTerm(WEB, ZONE, HERE),)), kind()
    classes = Classes([averse, plain])
    node = NodeInfo("n", {ZONE: "a"}, (("cpu", 2), ("pods", 10)))
    snapshot = Snapshot([node], [PodInfo("default", "p", averse, node="n")], classes)
    assert asks_where(snapshot, classes.of(plain), ZONE)
    assert not asks_where(Snapshot([node], [], classes), classes.of(plain), ZONE)


@pytest.mark.parametrize(
    ("zones", "pods", "nodes", "placed"),
    [
        ("abcabc", 2, 1, 2),
        ("bca", 1, 3, 1),
        ("abcabc", 3, 4, 3),
        ("abcabcabc", 99, 7, 6),
        ("bcbc", 1, 0, 0),
        ("", 1, 0, 0),
    ],
)
def test_nodes_before_the_right_one_stay_empty(zones: str, pods: int, nodes: int, placed: int) -> None:
    asking = kind(node_selector=IN_A)
    classes = Classes([asking])
    found = estimate_in_order(Snapshot([], [], classes), coming(zones), {classes.of(asking): pods}, 3)
    assert (found.nodes, found.pods, sum(found.left.values())) == (nodes, placed, pods - placed)
    assert [bool(each.pods) for each in found.filled] == [zone == "a" for zone in zones[:nodes]]


@given(scenes(), st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.integers(1, 4), max_size=4))
@usually(30)
def test_every_pod_is_placed_once_or_left_and_the_snapshot_is_as_before(
    scene: Any, zones: list[str], counts: list[int]
) -> None:
    nodes, there, wanted = scene
    classes = Classes([*(pod.kind for pod in there), *wanted], NAMESPACES)
    snapshot = Snapshot(nodes, there, classes)
    before = [dict(pods) for pods in snapshot.pods], snapshot.free("cpu").tolist()
    pods = {classes.of(each): count for each, count in zip(wanted, counts, strict=False)}
    offered = coming("".join(zones))
    found = estimate_in_order(snapshot, offered, pods, 3)
    assert ([dict(pods) for pods in snapshot.pods], snapshot.free("cpu").tolist()) == before
    for pod_class, count in pods.items():
        seated = sum(each.pods.get(pod_class, 0) for each in found.filled)
        assert seated == found.placed.get(pod_class, 0) == count - found.left.get(pod_class, 0)
    for (node, _), filled in zip(offered, found.filled, strict=False):
        assert not any(static_refusal(pod_class, node) for pod_class in filled.pods)
    assert found.nodes == len(found.filled) <= len(offered)
    assert not found.filled or found.filled[-1].pods, "none behind the last that is needed"
