"""Pods go to the least allocated Node, small ones first; no Node gets more than it offers."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from api.selectors import EVERYTHING
from controllers.scheduling.classes import Classes, Group
from controllers.scheduling.least_allocated import spread_out
from controllers.scheduling.shapes import (
    CPU,
    HOSTNAME,
    MEMORY,
    PODS,
    Demand,
    NodeInfo,
    PodInfo,
    PodKind,
    PodTerm,
    Spread,
)
from controllers.scheduling.snapshot import Snapshot

GIB = 1024**3
TO_ITSELF = PodTerm(EVERYTHING, HOSTNAME, frozenset({"ns"}))


def node(name: str, cores: int) -> NodeInfo:
    """4 GiB for each core."""
    return NodeInfo(name, {HOSTNAME: name}, ((CPU, cores * 1000), (MEMORY, cores * 4 * GIB), (PODS, 30)))


def pods(name: str, count: int, cores: int, *, priority: int = 0, demand: Demand | None = None) -> list[PodInfo]:
    asked = demand or Demand(((CPU, cores * 1000), (MEMORY, cores * GIB)))
    kind = PodKind(demand=asked, namespace="ns", labels={"app": name}, priority=priority)
    return [PodInfo("ns", f"{name}-{number}", kind) for number in range(count)]


def played(nodes: Sequence[NodeInfo], waiting: Sequence[PodInfo]) -> tuple[Snapshot, list[Group]]:
    classes = Classes([pod.kind for pod in waiting])
    snapshot = Snapshot(nodes, [], classes)
    return snapshot, spread_out(snapshot, classes.group(waiting))


def on(snapshot: Snapshot, name: str) -> dict[int, int]:
    """Cores of a pod → such pods on the Node."""
    there = snapshot.pods[snapshot.row(name)].items()
    return {dict(each.requests)[CPU] // 1000: count for each, count in there if count}


def test_most_of_a_large_node_is_left_so_pods_go_there() -> None:
    """14, 12, 10 and 8 of 16 cores are left with them on the large Node, 2 of 4 with one on the small one."""
    snapshot, lost = played([node("small", 4), node("large", 16)], pods("a", 1, 2))
    assert (on(snapshot, "large"), on(snapshot, "small"), lost) == ({2: 1}, {}, [])
    snapshot, _ = played([node("small", 4), node("large", 16)], [*pods("a", 1, 2), *pods("b", 1, 3), *pods("c", 1, 4)])
    assert on(snapshot, "small") == {}


def test_equal_pods_go_one_to_each_node_before_any_gets_two() -> None:
    snapshot, _ = played([node(f"n-{number}", 8) for number in range(3)], pods("a", 4, 1))
    assert sorted(on(snapshot, f"n-{number}")[1] for number in range(3)) == [1, 1, 2]


def test_large_pods_lose_their_room_to_small_ones() -> None:
    """They would have it the other way round: 8 on one Node, 4 and 4 on the other."""
    snapshot, lost = played([node("a", 8), node("b", 8)], [*pods("large", 1, 8), *pods("small", 2, 4)])
    assert [(each.pods[0].name, len(each)) for each in lost] == [("large-0", 1)]
    assert on(snapshot, "a") == on(snapshot, "b") == {4: 1}


def test_a_higher_priority_goes_first() -> None:
    waiting = [*pods("large", 1, 8, priority=5), *pods("small", 2, 4)]
    assert not played([node("a", 8), node("b", 8)], waiting)[1]


def test_pods_that_keep_apart_stay_so() -> None:
    apart = Demand(((CPU, 1000),), anti_affinity=(TO_ITSELF,))
    snapshot, lost = played([node("a", 8), node("b", 8)], pods("a", 3, 1, demand=apart))
    assert sum(map(len, lost)) == 1
    assert on(snapshot, "a") == on(snapshot, "b") == {1: 1}


def test_pods_that_are_spread_over_nodes_are() -> None:
    spread = Demand(((CPU, 1000),), spread=(Spread(1, HOSTNAME, EVERYTHING),))
    snapshot, lost = played([node("a", 16), node("b", 8)], pods("a", 6, 1, demand=spread))
    assert not lost
    assert on(snapshot, "a") == on(snapshot, "b") == {1: 3}


@given(
    st.lists(st.integers(1, 16), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(0, 1)), min_size=1, max_size=5),
)
def test_no_pod_is_lost_twice_and_no_node_gets_too_much(sizes: list[int], rows: list[tuple[int, int, int]]) -> None:
    waiting = [
        pod
        for number, (count, cores, priority) in enumerate(rows)
        for pod in pods(f"w{number}", count, cores, priority=priority)
    ]
    snapshot, lost = played([node(f"n-{number}", cores) for number, cores in enumerate(sizes)], waiting)
    seated = sum(sum(each.values()) for each in snapshot.pods)
    assert seated + sum(map(len, lost)) == len(waiting)
    for name in (CPU, MEMORY, PODS):
        assert (snapshot.free(name) >= 0).all()
    for group in lost:  # what is lost fits nowhere even now
        assert not snapshot.headroom(group.pod_class.requests, snapshot.rows).any()
