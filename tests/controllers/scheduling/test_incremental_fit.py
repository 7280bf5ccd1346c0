"""Looking again and again finds what looking anew finds, whatever was tried, taken back and closed before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.scheduling.classes import Classes, PodClass
from controllers.scheduling.incremental_fit import Seeker
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import NodeInfo, PodInfo, PodKind
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.scheduling.test_properties import scenes
from tests.controllers.scheduling.worlds import NAMESPACES
from tests.examples import usually

Scene = tuple[list[NodeInfo], list[PodInfo], list[PodKind]]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("close"), st.integers(0, 5), st.just(0)),
        st.tuples(st.sampled_from(["commit", "revert"]), st.just(0), st.just(0)),
    ),
    max_size=14,
)


def begin(scene: Scene) -> tuple[Snapshot, list[PodClass]]:
    nodes, there, wanted = scene
    classes = Classes([*(pod.kind for pod in there), *wanted], NAMESPACES)
    return Snapshot(nodes, there, classes), [classes.of(kind) for kind in wanted]


def anew(snapshot: Snapshot, pod_class: PodClass, count: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for share in place(snapshot, pod_class, count).shares:
        found[share.row] = found.get(share.row, 0) + share.per_node
    return found


def check(scene: Scene, played: list[Any]) -> None:
    (mine, classes), (theirs, same) = begin(scene), begin(scene)
    seeker = Seeker(mine, mine.rows)
    seeker.fork()
    theirs.fork()
    for what, which, count in played:
        if what == "place" and classes:
            number = which % len(classes)
            found: dict[int, int] = {}
            for row, taken in seeker.place(classes[number], count):
                found[row] = found.get(row, 0) + taken
            assert found == anew(theirs, same[number], count)
        elif what == "close" and len(mine) and not mine.closed[which % len(mine)]:
            mine.close(which % len(mine))
            theirs.close(which % len(theirs))
        elif what in ("commit", "revert"):
            getattr(seeker, what)()
            getattr(theirs, what)()
            seeker.fork()
            theirs.fork()


@given(scenes(), steps)
@usually(12)
def test_seeking_is_first_fit(scene: Scene, played: list[Any]) -> None:
    check(scene, played)


@pytest.mark.slow
@given(scenes(), steps)
@settings(max_examples=3000, deadline=None)
def test_seeking_is_first_fit_in_very_many_clusters(scene: Scene, played: list[Any]) -> None:
    check(scene, played)
