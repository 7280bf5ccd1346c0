"""Answers that people read: how many Nodes, and why not."""

from __future__ import annotations

from typing import Any

from api.selectors import Operator, Requirement, Selector
from controllers.scheduling.binpacking import Estimate, commit, estimate, template
from controllers.scheduling.classes import Classes
from controllers.scheduling.refusals import UNSCHEDULABLE, short_of, summary
from controllers.scheduling.schedulable import explain, filter_schedulable
from controllers.scheduling.shapes import HOSTNAME, Demand, NodeInfo, PodInfo, PodKind, PodTerm, Spread, Taint
from controllers.scheduling.snapshot import Snapshot

HERE = frozenset({"default"})


def kind(cpu: int, app: str = "web", priority: int = 0, **more: Any) -> PodKind:
    return PodKind(Demand((("cpu", cpu),), **more), "default", {"app": app}, priority=priority)


def selecting(app: str) -> Selector:
    return Selector((Requirement("app", Operator.IN, (app,)),))


def node(name: str, cpu: int, zone: str = "a", **more: Any) -> NodeInfo:
    return NodeInfo(name, {HOSTNAME: name, "zone": zone}, (("cpu", cpu), ("memory", 5000), ("pods", 100)), **more)


def pack(new: NodeInfo, *wanted: tuple[PodKind, int], there: list[NodeInfo] | None = None, **more: Any) -> Estimate:
    classes = Classes([each for each, _ in wanted])
    snapshot = Snapshot(there or [], [], classes)
    pods = {classes.of(each): count for each, count in wanted}
    return estimate(snapshot, template(new, "new"), pods, more.pop("limit", 10_000), **more)


def test_the_cluster_autoscalers_own_example() -> None:
    """BinpackingEstimate: 100 Nodes of ten large pods and a small one, 2495 of twenty small ones."""
    small = PodKind(Demand((("cpu", 50), ("memory", 100))), "default", {})
    large = PodKind(Demand((("cpu", 95), ("memory", 190))), "default", {})
    found = pack(node("n", 1000), (small, 50_000), (large, 1_000), limit=3000)
    assert (found.nodes, found.pods, dict(found.left)) == (2595, 51_000, {})
    assert [(each.copies, sorted(each.pods.values())) for each in found.filled] == [(100, [1, 10]), (2495, [20])]


def test_the_limit_leaves_pods_over() -> None:
    found = pack(node("n", 100), (kind(50), 9), limit=3)
    assert (found.nodes, found.pods, sum(found.left.values()), found.hit_limit) == (3, 6, 3, True)


def test_a_pod_that_never_fits_adds_no_node() -> None:
    found = pack(node("n", 100), (kind(101), 9), (kind(100), 1))
    assert (found.nodes, found.pods, sum(found.left.values())) == (1, 1, 9)


def test_pods_that_shun_each_other_get_a_node_each() -> None:
    apart = kind(1, anti_affinity=(PodTerm(selecting("web"), HOSTNAME, HERE),))
    assert pack(node("n", 100), (apart, 700)).nodes == 700


def test_pods_that_shun_each_others_zone_get_one_node() -> None:
    apart = kind(1, anti_affinity=(PodTerm(selecting("web"), "zone", HERE),))
    found = pack(node("n", 100), (apart, 5))
    assert (found.nodes, found.pods) == (1, 1)


def test_new_nodes_of_one_zone_take_what_the_skew_allows() -> None:
    """upstream#8161 added Nodes that no pod could use."""
    even = kind(60, spread=(Spread(2, "zone", selecting("web")),))
    found = pack(node("n", 100, "a"), (even, 9), there=[node("b", 0, "b")])
    assert (found.nodes, found.pods) == (2, 2)


def test_daemons_take_their_part_of_every_new_node() -> None:
    agent, app = kind(20, "agent"), kind(40)
    classes = Classes([agent, app])
    snapshot = Snapshot([], [], classes)
    new = template(node("n", 100), "new")
    daemons = (classes.of(agent),)
    assert estimate(snapshot, new, {classes.of(app): 5}, 10, daemons).nodes == 3
    found = estimate(snapshot, new, {classes.of(app): 5}, 10, daemons)
    commit(snapshot, new, found, daemons)
    assert estimate(snapshot, new, {classes.of(app): 5}, 10, daemons).nodes == 3, "Nodes of before are not new"
    pods = [PodInfo("default", f"p-{index}", app) for index in range(5)]
    assert len(filter_schedulable(snapshot, pods).schedulable[0]) == 1, "but the room on them is known"


def test_pods_that_can_not_be_told_from_a_daemon_sets_are_pods_still() -> None:
    """They were taken for the DaemonSet's: the Node that they needed was not added."""
    agent = kind(40)
    classes = Classes([agent])
    snapshot = Snapshot([], [], classes)
    daemons = (classes.of(agent), classes.of(agent))
    found = estimate(snapshot, template(node("n", 130), "new"), {classes.of(agent): 3}, 10, daemons)
    assert (found.nodes, found.pods) == (3, 3)
    assert [(each.copies, each.pods) for each in found.filled] == [(3, {classes.of(agent): 1})]


def test_the_important_pods_get_the_room() -> None:
    low, high = kind(60, priority=1), kind(60, priority=9)
    snapshot = Snapshot([node("n", 100)], [], Classes([low, high]))
    found = filter_schedulable(snapshot, [PodInfo("default", "low", low), PodInfo("default", "high", high)])
    assert [str(pod) for group in found.schedulable for pod in group.pods] == ["default/high"]
    assert [str(pod) for group in found.unschedulable for pod in group.pods] == ["default/low"]


def test_a_refusal_is_told_in_the_schedulers_words() -> None:
    classes = Classes([kind(60)])
    nodes = [node("a", 50), node("b", 100, taints=(Taint("x", "", "NoSchedule"),)), node("c", 0), node("d", 100)]
    snapshot = Snapshot(nodes, [], classes)
    assert explain(snapshot, classes.of(kind(60))) == "1/4 nodes are available"
    snapshot.close(3)
    why = (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu."
    )
    assert explain(snapshot, classes.of(kind(60))) == why
    assert summary([short_of(["pods", "cpu"]), UNSCHEDULABLE]) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) were unschedulable."
    )
