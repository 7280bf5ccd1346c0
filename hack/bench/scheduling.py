"""The workloads of Cluster Autoscaler's Go benchmarks, on the planning part of ours: same inputs, same answers.

Its times were taken on a machine like this one (two cores); a figure that has none beside it was not measured there.
The Go benchmarks of RunOnce do more than the planning that is measured here (fake clients, their node group registry).
What is measured begins where the Go benchmark begins: with pods as the cache holds them, or, for the estimator, with
groups of equal pods. Each case runs a few times and the best counts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from api.selectors import Operator, Requirement, Selector
from controllers.kernel.refs import POD
from controllers.scheduling.binpacking import Estimate, estimate, template
from controllers.scheduling.classes import Classes, classes_of
from controllers.scheduling.drainability import DrainRules
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.removal import Candidate, RemovalQuestion, plan_removal
from controllers.scheduling.schedulable import filter_schedulable
from controllers.scheduling.shapes import (
    HOSTNAME,
    Demand,
    NodeInfo,
    PodInfo,
    PodKind,
    PodTerm,
    Spread,
    Taint,
    Toleration,
)
from controllers.scheduling.snapshot import Snapshot
from hack.bench.figures import Figure
from nodewright.runtime.cache.slimming import slim

REPEATS = 5
FAST_PATH, ORDINARY = 0.062, 10.9
"""Seconds of the Cluster Autoscaler for 51,000 pods: its newest fast path, and the way that all other pods go."""


def _timed(job: Callable[[], Any], check: Callable[[Any], bool]) -> float:
    """Seconds of CPU of the best run. Raises if the answer is wrong: a figure for a wrong answer is worth nothing."""
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        answer = job()
        seconds.append(time.process_time() - started)
        if not check(answer):
            raise RuntimeError(f"wrong answer: {answer!r:.200}")
    return min(seconds)


def _kind(cpu: int, memory: int, **more: Any) -> PodKind:
    return PodKind(Demand((("cpu", cpu), ("memory", memory)), **more), "default", {"app": "estimated"})


def _node(name: str, cpu: int, memory: int, pods: int, **more: Any) -> NodeInfo:
    labels = {HOSTNAME: name, "topology.kubernetes.io/zone": "zone-1", **more.pop("labels", {})}
    return NodeInfo(name, labels, (("cpu", cpu), ("memory", memory), ("pods", pods)), **more)


def binpack() -> list[Figure]:
    """BinpackingEstimate: 51,000 pods in two groups → 2595 Nodes; and a harder one with 500 classes."""
    small, large = _kind(50, 100), _kind(95, 190)
    old = _node("old", 100, 100, 10, labels={"topology.kubernetes.io/zone": "zone-2"})
    new = template(_node("new", 1000, 5000, 100), "new")

    def two_classes() -> Estimate:
        classes = Classes([small, large])
        snapshot = Snapshot([old], [], classes)
        return estimate(snapshot, new, {classes.of(small): 50_000, classes.of(large): 1_000}, 3000)

    plain = _timed(two_classes, lambda found: (found.nodes, found.pods) == (2595, 51_000))
    kinds, counts = _mixed_kinds()

    def many_classes() -> Estimate:
        classes = Classes(kinds)
        snapshot = Snapshot([old], [], classes)
        pods = {classes.of(kind): count for kind, count in zip(kinds, counts, strict=True)}
        return estimate(snapshot, new, pods, 10_000)

    mixed = _timed(many_classes, lambda found: found.pods > 25_000 and len(found.left) > 0)
    return [
        Figure("binpack_51000_seconds", plain, "s", "lower", "Cluster Autoscaler, fast path", FAST_PATH),
        Figure("binpack_51000_mixed_seconds", mixed, "s", "lower", "Cluster Autoscaler, 2 plain groups", ORDINARY),
    ]


def _mixed_kinds() -> tuple[list[PodKind], list[int]]:
    """500 classes, 51,000 pods: a third with taints and node affinity, a third apart or together, some spread."""
    dice = random.Random(20)
    kinds, counts = [], []
    for index in range(500):
        labels = {"app": f"app-{index}"}
        mine = Selector((Requirement("app", Operator.IN, (labels["app"],)),))
        other = Selector((Requirement("app", Operator.IN, (f"app-{dice.randrange(500)}",)),))
        here = frozenset({"default"})
        extra: dict[str, Any] = [
            {},
            {"tolerations": (Toleration("dedicated", "Exists", "", ""),)},
            {"node_selector": (Requirement("topology.kubernetes.io/zone", Operator.IN, ("zone-1",)),)},
            {"node_selector": (Requirement("topology.kubernetes.io/zone", Operator.IN, ("zone-9",)),)},
            {"anti_affinity": (PodTerm(mine, HOSTNAME, here),)},
            {"anti_affinity": (PodTerm(other, HOSTNAME, here),)},
            {"affinity": (PodTerm(mine, "topology.kubernetes.io/zone", here),)},
            {"spread": (Spread(1 + index % 3, HOSTNAME, mine),)},
        ][index % 8]
        requests = (("cpu", dice.randrange(10, 100)), ("memory", dice.randrange(20, 500)))
        kinds.append(PodKind(Demand(requests, **extra), "default", labels))
        counts.append(102)
    return kinds, counts


def scale_up() -> list[Figure]:
    """RunOnceScaleUp: 50,000 pods without owner, seen for the first time → 1000 Nodes, with all reading and sorting."""
    node = {
        "metadata": {"name": "new", "labels": {HOSTNAME: "new"}},
        "status": {"allocatable": _offer(10_000, 10_000, 110)},
    }
    figures = []
    for name, count, peer, value in (
        ("scaleup_10000_seconds", 10_000, "Cluster Autoscaler, whole RunOnce", 1.67),
        ("scaleup_50000_seconds", 50_000, "", None),
    ):
        pods = [_core_pod(index, 200, 200) for index in range(count)]

        def loop(pods: list[Any] = pods) -> Estimate:
            reader = Reader()
            shapes = [reader.pod(pod) for pod in pods]
            classes = classes_of(shapes)
            snapshot = Snapshot([], [], classes)
            left = filter_schedulable(snapshot, shapes).unschedulable
            wanted = {group.pod_class: len(group) for group in left}
            return estimate(snapshot, template(read_node(node), "new"), wanted, 10_000)

        seconds = _timed(loop, lambda found, count=count: (found.nodes, found.pods) == (count // 50, count))
        figures.append(Figure(name, seconds, "s", "lower", peer, value))
    return figures


def scale_down() -> list[Figure]:
    """RunOnceScaleDown: Nodes at 40 % in 40 pods each → three fifths of them go, every pod with its new place.

    In the first look all pods are new; in any other, as the autoscaler has them, those that did not change are known.
    """
    figures = []
    for name, count, peer, value in (
        ("scaledown_400", 400, "Cluster Autoscaler, whole RunOnce", 1.56),
        ("scaledown_2000", 2000, "", None),
    ):
        offer = {"allocatable": _offer(1000, 1000, 110)}
        nodes = [
            {"metadata": {"name": f"n-{index}", "labels": {HOSTNAME: f"n-{index}"}}, "status": offer}
            for index in range(count)
        ]
        pods = [_core_pod(index, 10, 10, f"n-{index % count}") for index in range(40 * count)]

        def loop(reader: Reader, nodes: list[Any] = nodes, pods: list[Any] = pods) -> int:
            reader.look()
            shapes = [shape for _, shape in reader.pods(pods) if isinstance(shape, PodInfo)]
            candidates = [Candidate(node["metadata"]["name"]) for node in nodes]
            rules = DrainRules(datetime(2026, 1, 1, tzinfo=UTC))
            plan = plan_removal(RemovalQuestion([reader.node(node) for node in nodes], shapes, candidates, rules))
            return len(plan.removed)

        def right(gone: int, count: int = count) -> bool:
            return gone == count * 3 // 5

        kept = Reader()
        first = _timed(lambda loop=loop: loop(Reader()), right)  # type: ignore[misc]
        again = _timed(lambda loop=loop, kept=kept: loop(kept), right)  # type: ignore[misc]
        figures.append(Figure(f"{name}_first_look_seconds", first, "s", "lower", peer, value))
        figures.append(Figure(f"{name}_seconds", again, "s", "lower", peer, value))
    return figures


def filtering() -> list[Figure]:
    """FilterOutSchedulable: 60,000 pending pods, none of which fits on 200 Nodes."""
    nodes = [_node(f"n-{index}", 2000, 200_000, 110) for index in range(200)]
    scheduled = [_core_pod(index, 1000, 2_000_000, f"n-{index}") for index in range(200)]
    pending = [_core_pod(1000 + index, 1000, 2_000_000) for index in range(60_000)]

    def loop() -> int:
        reader = Reader()
        there = [reader.pod(pod) for pod in scheduled]
        wanted = [reader.pod(pod) for pod in pending]
        snapshot = Snapshot(nodes, there, classes_of([*there, *wanted]))
        return sum(len(group) for group in filter_schedulable(snapshot, wanted).unschedulable)

    cluster = _cluster(5000)
    return [
        Figure("filter_60000_seconds", _timed(loop, lambda left: left == 60_000), "s", "lower"),
        Figure("filter_500_classes_5000_nodes_seconds", _timed(cluster, lambda left: left >= 0), "s", "lower"),
    ]


def _cluster(count: int) -> Callable[[], int]:
    """500 classes of mixed pods on 5000 Nodes with zones and taints."""
    kinds, counts = _mixed_kinds()
    spot = (Taint("dedicated", "x", "NoSchedule"),)
    nodes = []
    for index in range(count):
        labels = {"topology.kubernetes.io/zone": f"zone-{index % 3}"}
        taints = spot if index % 10 == 0 else ()
        nodes.append(_node(f"n-{index}", 4000, 20_000, 110, labels=labels, taints=taints))
    shapes = [shape for kind, number in zip(kinds, counts, strict=True) for shape in _shapes(kind, number)]

    def loop() -> int:
        snapshot = Snapshot(nodes, [], classes_of(shapes))
        return sum(len(group) for group in filter_schedulable(snapshot, shapes).unschedulable)

    return loop


def _shapes(kind: PodKind, count: int) -> list[Any]:
    return [PodInfo("default", f"{id(kind)}-{index}", kind) for index in range(count)]


def _offer(cpu: int, memory: int, pods: int) -> dict[str, str]:
    return {"cpu": f"{cpu}m", "memory": str(memory), "pods": str(pods)}


def _core_pod(index: int, cpu: int, memory: int, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": f"{cpu}m", "memory": str(memory)}}}]
    }
    annotations = {}
    if node:
        spec["nodeName"] = node
        annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    meta = {"namespace": "default", "name": f"p-{index}", "uid": f"u-{index}", "annotations": annotations}
    return slim(POD, {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
