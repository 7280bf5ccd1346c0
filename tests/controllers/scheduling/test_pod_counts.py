"""What is counted class by class is what is on the rows, whenever one begins to count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.scheduling.classes import PodClass
from controllers.scheduling.shapes import NodeInfo
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.scheduling.test_properties import begin, projected, scenes
from tests.examples import usually


@dataclass(frozen=True)
class Only:
    """Of one class. ``asked`` tells two that count the same apart."""

    pod_class: PodClass
    asked: int
    marks: None = None

    def matches(self, pod_class: PodClass) -> bool:
        return pod_class is self.pod_class


def truth(snapshot: Snapshot, pod_class: PodClass) -> list[int]:
    return [pods.get(pod_class, 0) for pods in snapshot.pods]


def act(snapshot: Snapshot, pending: list[PodClass], what: int, where: int) -> None:
    row = where % len(snapshot)
    if what == 0:
        snapshot.place(pending[where % len(pending)], row)
    elif what == 1:
        for pod_class in list(snapshot.pods[row])[:1]:
            snapshot.place(pod_class, row, -1)
    elif what == 2 and not snapshot.closed[row]:
        snapshot.close(row)
    elif what == 3:
        snapshot.add_nodes(NodeInfo(f"more-{len(snapshot)}", hypothetical=True), 3)
    elif what == 4 and snapshot.copies[row] > 1:
        snapshot.split(row, 1)


@given(scenes(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99)), max_size=12), st.integers(0, 12))
@usually(15)
def test_counts_are_those_of_the_rows_before_during_and_after_a_try(
    scene: Any, acts: list[tuple[int, int]], kept: int
) -> None:
    snapshot, _, pending = begin(scene)

    def check(asked: int) -> None:
        for pod_class in pending:
            for number in range(asked + 1):
                assert snapshot.counts(Only(pod_class, number)).tolist() == truth(snapshot, pod_class)

    for what, where in acts[:kept]:
        act(snapshot, pending, what, where)
    check(0)
    before = projected(snapshot)
    snapshot.fork()
    for what, where in acts[kept:]:
        act(snapshot, pending, what, where)
    check(1)
    snapshot.revert()
    assert projected(snapshot) == before
    check(2)
