"""What is asked once for many groups is the same as asked for each: whole scale-ups, compared with the long way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from controllers.autoscaler.balancing import Alike, AlikeGroups, alike
from controllers.autoscaler.cluster_state import ClusterState, GroupState, Workload
from controllers.autoscaler.estimates import Estimates, Refusals
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.projected import project
from controllers.autoscaler.scale_up import ScaleUp, plan_scale_up
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, Ref
from controllers.scaling.node_group import Bounds, NodeGroup
from controllers.scheduling.binpacking import Estimate, estimate, template
from controllers.scheduling.estimator import Estimator
from controllers.scheduling.ordered_estimate import asks_where
from controllers.scheduling.predicates import Judge, Occupied
from controllers.scheduling.shapes import Demand, NodeInfo, PodInfo, PodKind
from tests.controllers.autoscaler.fleet import START
from tests.controllers.scheduling.test_estimator import deployments, roomy_nodes
from tests.controllers.scheduling.worlds import NAMESPACES, nodes
from tests.examples import usually


@st.composite
def clusters(draw: Any) -> ClusterState:
    """Groups of a few looks, so that some are alike; pods on Nodes, and pods that wait."""
    there, known = draw(nodes(least=1)), draw(deployments())
    looks = draw(st.lists(roomy_nodes(), min_size=1, max_size=3))
    groups = []
    for index in range(draw(st.integers(1, 6))):
        ref = Ref(MACHINE_DEPLOYMENT, Key("ns", f"g-{index}"))
        bounds = Bounds(0, draw(st.integers(1, 8)))
        group = NodeGroup(ref=ref, bounds=bounds, replicas=draw(st.integers(0, 1)))
        look = draw(st.sampled_from(looks))
        labels = {**look.labels, "pool": str(index), **draw(st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}]))}
        groups.append(GroupState(group, template=template(replace(look, labels=labels), f"template-of-{index}")))
    seated = draw(st.lists(st.tuples(st.sampled_from(there), st.sampled_from(known)), max_size=6))
    waiting = draw(st.lists(st.tuples(st.sampled_from(known), st.integers(1, 8)), min_size=1, max_size=5))
    pods = [PodInfo(kind.namespace, f"p-{n}", kind, node=on.name) for n, (on, kind) in enumerate(seated)]
    pending = [
        PodInfo(kind.namespace, f"w-{n}-{i}", kind) for n, (kind, many) in enumerate(waiting) for i in range(many)
    ]
    daemons = [draw(st.sampled_from(known))] if draw(st.integers(0, 3)) == 0 else []
    return ClusterState(
        now=START,
        options=AutoscalerOptions(GrowthOptions(balance=draw(st.booleans()))),
        groups=tuple(groups),
        workload=Workload(
            nodes=tuple(there),
            pods=tuple(pods),
            pending=tuple(pending),
            daemons=tuple(daemons),
            namespaces=NAMESPACES,
        ),
    )


def estimated(self: Any, node: NodeInfo, limit: int, *, unknown: str = "") -> Estimate:
    snapshot = self._projected.snapshot
    counts = {each: len(pods) for each, pods in self._left.items()}
    if unknown:
        counts = {each: count for each, count in counts.items() if not asks_where(snapshot, each, unknown)}
    return estimate(snapshot, node, counts, limit, self._projected.daemons_on(node))


def refused(self: Any, node: NodeInfo) -> str:
    new = Occupied(node, Counter(self._projected.daemons_on(node)))
    there = self._projected.snapshot.occupied()
    return str(Judge(self._pod_class, [*there, new]).refusal(new) or "")


@contextmanager
def the_long_way(cluster: ClusterState) -> Iterator[None]:
    """Each group for itself: an estimate by rows of the snapshot, a judge, a comparison with each other group."""

    def like(_: Any, node: NodeInfo) -> Alike:
        return Alike(tuple(each.id for each in cluster.groups if each.template and alike(node, each.template)))

    with (
        patch.object(Estimates, "of", estimated),
        patch.object(Refusals, "of", refused),
        patch.object(AlikeGroups, "of", like),
    ):
        yield


def grown(cluster: ClusterState) -> ScaleUp:
    return plan_scale_up(cluster, project(cluster), resting={})


def told(found: ScaleUp) -> Any:
    left = [([str(pod) for pod in each.pods], dict(each.why)) for each in found.left]
    helped = [(each.group, [str(pod) for pod in each.pods]) for each in found.helped]
    return list(found.added.items()), helped, left, dict(found.skipped)


def check(cluster: ClusterState) -> None:
    found = told(grown(cluster))
    event(f"grows: {bool(found[0])}, leaves: {bool(found[2])}")
    with the_long_way(cluster):
        assert told(grown(cluster)) == found


@given(clusters())
@usually(20)
def test_a_scale_up_is_that_of_the_long_way(cluster: ClusterState) -> None:
    check(cluster)


@pytest.mark.slow
@given(clusters())
@settings(max_examples=1000, deadline=None)
def test_scale_ups_hold_in_very_many_clusters(cluster: ClusterState) -> None:
    check(cluster)


def test_groups_that_pods_cannot_tell_apart_are_estimated_once() -> None:
    """60 groups of 2 sizes, each with a pool of its own that nobody asks for: 2 estimates, not 60."""
    look = NodeInfo("n", {}, (("cpu", 4000), ("memory", 1 << 33), ("pods", 110)))
    big = replace(look, allocatable=(("cpu", 8000), ("memory", 1 << 34), ("pods", 110)))
    groups = []
    for index in range(60):
        group = NodeGroup(Ref(MACHINE_DEPLOYMENT, Key("ns", f"g-{index}")), Bounds(0, 10 + index), 0)
        node = replace((look, big)[index % 2], labels={"pool": str(index)})
        groups.append(GroupState(group, template=template(node, f"template-of-{index}")))
    cluster = ClusterState(now=START, groups=tuple(groups), workload=Workload(pending=_waiting(12)))
    with patch.object(Estimator, "estimate", autospec=True, side_effect=Estimator.estimate) as asked:
        found = grown(cluster)
    assert sum(len(each.pods) for each in found.helped) == 12
    assert asked.call_count == 2


def _waiting(count: int) -> tuple[PodInfo, ...]:
    kind = PodKind(Demand((("cpu", 1000),)), "default", {"app": "web"})
    return tuple(PodInfo("default", f"w-{index}", kind) for index in range(count))
