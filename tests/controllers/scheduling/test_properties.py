"""The arithmetic agrees with the predicates asked pod by pod, on random clusters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.scheduling.binpacking import estimate, template
from controllers.scheduling.classes import Classes, PodClass
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import NodeInfo, PodInfo, PodKind
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.scheduling import reference
from tests.controllers.scheduling.reference import Town
from tests.controllers.scheduling.worlds import NAMESPACES, kinds, node, nodes
from tests.examples import usually

MANY = usually(12)
THOROUGH = settings(max_examples=2000, deadline=None)


@st.composite
def scenes(draw: Any) -> tuple[list[NodeInfo], list[PodInfo], list[PodKind]]:
    """Nodes, pods on them (whether they would fit there or not), and kinds that are pending."""
    there = draw(nodes(least=1))
    known = draw(st.lists(kinds(), min_size=1, max_size=4))
    pod_counts = st.tuples(st.sampled_from(there), st.sampled_from(known))
    pods = [
        PodInfo(kind.namespace, f"p-{index}", kind, node=reserve.name)
        for index, (reserve, kind) in enumerate(draw(st.lists(pod_counts, max_size=6)))
    ]
    return there, pods, known


def begin(scene: tuple[list[NodeInfo], list[PodInfo], list[PodKind]]) -> tuple[Snapshot, Town, list[PodClass]]:
    there, pods, known = scene
    classes = Classes(known, NAMESPACES)
    town = Town(list(there))
    for pod in pods:
        index = next(index for index, each in enumerate(there) if each.name == pod.node)
        town.pods[index][classes.of(pod.kind)] += 1
    return Snapshot(there, pods, classes), town, list(dict.fromkeys(classes.of(kind) for kind in known))


def projected(snapshot: Snapshot) -> Any:
    return (
        [dict(pods) for pods in snapshot.pods],
        snapshot.copies.tolist(),
        {name: snapshot.free(name).tolist() for name in ("pods", "cpu", "memory", "x/gpu")},
        snapshot.closed.tolist(),
    )


def check_placing(scene: Any, counts: list[int]) -> None:
    snapshot, town, pending = begin(scene)
    order = list(range(len(town.nodes)))
    for pod_class, count in zip(pending, counts, strict=False):
        placed = place(snapshot, pod_class, count)
        assert placed.count == town.place(pod_class, count, order)
        assert [Counter(pods) for pods in snapshot.pods] == town.pods


def check_estimate(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    snapshot, town, pending = begin(scene)
    new = template(new, "new")
    pods = dict(zip(pending, counts, strict=False))
    before = projected(snapshot)
    found = estimate(snapshot, new, pods, limit)
    assert projected(snapshot) == before
    assert (found.nodes, dict(found.placed)) == reference.estimate(town, new, pods, limit)
    assert all(found.placed.get(each, 0) + found.left.get(each, 0) == count for each, count in pods.items() if count)
    held = Counter[PodClass]()
    for filled in found.filled:
        held.update({each: count * filled.copies for each, count in filled.pods.items()})
    assert held == Counter(found.placed)


@given(scenes(), st.lists(st.integers(0, 12), min_size=4, max_size=4))
@MANY
def test_placing_is_first_fit_pod_by_pod(scene: Any, counts: list[int]) -> None:
    check_placing(scene, counts)


@given(scenes(), node("new"), st.lists(st.integers(0, 15), min_size=4, max_size=4), st.integers(1, 12))
@MANY
def test_an_estimate_is_that_of_adding_node_by_node(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    check_estimate(scene, new, counts, limit)


@pytest.mark.slow
@given(scenes(), st.lists(st.integers(0, 12), min_size=4, max_size=4))
@THOROUGH
def test_placing_is_first_fit_in_very_many_clusters(scene: Any, counts: list[int]) -> None:
    check_placing(scene, counts)


@pytest.mark.slow
@given(scenes(), node("new"), st.lists(st.integers(0, 15), min_size=4, max_size=4), st.integers(1, 12))
@THOROUGH
def test_estimates_hold_in_very_many_clusters(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    check_estimate(scene, new, counts, limit)


@given(scenes(), st.lists(st.integers(0, 12), min_size=4, max_size=4))
@MANY
def test_revert_leaves_no_trace(scene: Any, counts: list[int]) -> None:
    (snapshot, _, pending), (untouched, _, others) = begin(scene), begin(scene)
    for pod_class, other in zip(pending, others, strict=True):
        assert placed(snapshot, pod_class, 1) == placed(untouched, other, 1)
    before = projected(snapshot)
    snapshot.fork()
    snapshot.close(0)
    snapshot.fork()
    for pod_class, count in zip(pending, counts, strict=False):
        place(snapshot, pod_class, count)
    snapshot.commit()
    snapshot.revert()
    assert projected(snapshot) == before
    assert [placed(snapshot, each, 3) for each in pending] == [placed(untouched, each, 3) for each in others]


def placed(snapshot: Snapshot, pod_class: PodClass, count: int) -> int:
    return place(snapshot, pod_class, count).count


@given(scenes(), st.lists(st.integers(1, 6), min_size=4, max_size=4), node("one-more"))
@MANY
def test_one_more_node_at_the_end_never_makes_a_pod_unplaceable(scene: Any, counts: list[int], extra: NodeInfo) -> None:
    """Without topology rules: with them a new domain may rightly forbid what was allowed before."""
    there, pods, known = scene
    plain = [kind for kind in known if not (kind.demand.spread or kind.demand.affinity or kind.demand.anti_affinity)]
    pods = [pod for pod in pods if pod.kind in plain]
    with_fewer = _left((there, pods, plain), counts)
    assert _left(([*there, extra], pods, plain), counts) <= with_fewer


def _left(scene: Any, counts: list[int]) -> int:
    snapshot, _, pending = begin(scene)
    return sum(count - place(snapshot, each, count).count for each, count in zip(pending, counts, strict=False))
