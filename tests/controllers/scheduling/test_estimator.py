"""Estimates by arithmetic are those of the long way: by rows of a snapshot, held to the predicates pod by pod."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from api.selectors import Operator, Requirement, Selector
from controllers.scheduling.binpacking import Estimate, estimate, template
from controllers.scheduling.classes import Classes, PodClass
from controllers.scheduling.estimator import Estimator
from controllers.scheduling.likeness import Likeness
from controllers.scheduling.predicates import static_refusal
from controllers.scheduling.shapes import HOSTNAME, Demand, HostPort, NodeInfo, PodInfo, PodKind, PodTerm, Spread
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.scheduling.test_properties import THOROUGH
from tests.controllers.scheduling.worlds import NAMESPACES, SPOT, ZONE, ZONES, kinds, node, nodes
from tests.examples import usually

MANY = usually(80)
HERE = frozenset({"default"})
COUNTS = st.lists(st.integers(1, 15), min_size=6, max_size=6)


def selecting(app: str) -> Selector:
    return Selector((Requirement("app", Operator.IN, (app,)),))


@st.composite
def own_constraints(draw: Any, app: str) -> PodKind:
    """What Deployments have: constraints on their own pods, or host ports, or on those of another app at most."""
    mine, other = selecting(app), selecting(draw(st.sampled_from(["a0", "a1", "a2", "old"])))
    key = draw(st.sampled_from([HOSTNAME, ZONE, "rack"]))
    extra: dict[str, Any] = draw(
        st.sampled_from(
            [
                {},
                {"anti_affinity": (PodTerm(mine, key, HERE),)},
                {"anti_affinity": (PodTerm(other, key, HERE),)},
                {"anti_affinity": (PodTerm(mine, HOSTNAME, HERE), PodTerm(selecting("old"), key, HERE))},
                {"affinity": (PodTerm(draw(st.sampled_from([mine, other])), key, HERE),)},
                {"spread": (Spread(draw(st.integers(1, 3)), key, mine, draw(st.integers(1, 4))),)},
                {"spread": (Spread(draw(st.integers(1, 3)), ZONE, mine), Spread(2, "rack", mine, 2))},
                {"spread": (Spread(draw(st.integers(1, 2)), ZONE, Selector((Requirement("app", Operator.EXISTS),))),)},
                {"spread": (Spread(1, ZONE, mine, honors_affinity=False, honors_taints=draw(st.booleans())),)},
                {"ports": (HostPort(draw(st.sampled_from(["0.0.0.0", "127.0.0.1"])), "TCP", 80),)},
                {"node_selector": (Requirement(ZONE, Operator.IN, (draw(st.sampled_from(ZONES)),)),)},
            ]
        )
    )
    requests = (("cpu", draw(st.integers(1, 6))), ("memory", draw(st.integers(1, 4))))
    return PodKind(Demand(requests, **extra), "default", {"app": app})


@st.composite
def deployments(draw: Any) -> list[PodKind]:
    """Pods of a few apps, of ``old``, which only has pods that are there, and sometimes of any kind whatever."""
    found = [draw(own_constraints(f"a{number}")) for number in range(draw(st.integers(1, 5)))]
    averse = Demand(
        (("cpu", 1),), anti_affinity=(PodTerm(selecting("a0"), draw(st.sampled_from([ZONE, "rack"])), HERE),)
    )
    old = draw(st.one_of(own_constraints("old"), st.just(PodKind(averse, "default", {"app": "old"}))))
    return [*found, *draw(st.lists(kinds(), max_size=1)), old]


@st.composite
def roomy_nodes(draw: Any) -> NodeInfo:
    """Mostly with room for several pods, and open to all."""
    found: NodeInfo = draw(node("new"))
    room = {"cpu": draw(st.integers(4, 24)), "memory": draw(st.integers(4, 24)), "pods": draw(st.integers(2, 12))}
    amounts = tuple(sorted({**dict(found.allocatable), **room}.items()))
    closed = draw(st.integers(0, 9)) == 0
    return replace(found, allocatable=amounts, unschedulable=closed, taints=found.taints if closed else ())


@st.composite
def scenes(draw: Any, waiting: Any = deployments()) -> tuple[Snapshot, list[PodClass], list[PodClass]]:  # noqa: B008
    """A cluster with pods (whether they would fit there or not), the classes that wait, and those of DaemonSets."""
    there = draw(nodes(least=1))
    known = draw(waiting)
    classes = Classes(known, NAMESPACES)
    whose = st.one_of(st.just(known[-1]), st.sampled_from(known))
    pairs = draw(st.lists(st.tuples(st.sampled_from(there), whose), min_size=1, max_size=8))
    pods = [PodInfo(kind.namespace, f"p-{index}", kind, node=on.name) for index, (on, kind) in enumerate(pairs)]
    waits = list(dict.fromkeys(classes.of(kind) for kind in known[:-1]))
    daemons = [classes.of(draw(st.sampled_from(known)))] if draw(st.integers(0, 3)) == 0 else []
    return Snapshot(there, pods, classes), waits, daemons


def picture(found: Estimate) -> Any:
    """Node by Node, in their order; how equal Nodes are taken together is of no account."""
    filled = [Counter(each.pods) for each in found.filled for _ in range(each.copies)]
    return found.nodes, dict(found.placed), dict(found.left), filled


def state(snapshot: Snapshot) -> Any:
    free = {name: snapshot.free(name).tolist() for name in ("pods", "cpu", "memory", "x/gpu")}
    return [dict(pods) for pods in snapshot.pods], snapshot.copies.tolist(), free


def check(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    snapshot, waits, daemons = scene
    new = template(new, "new")
    daemons = [each for each in daemons if static_refusal(each, new) is None]
    estimator, likeness = Estimator(snapshot, waits, daemons), Likeness(snapshot, waits, daemons)
    admitted = likeness.admitted(new)
    pods = {each: count for each, count in zip(waits, counts, strict=False) if count}
    asked = {each: count for each, count in pods.items() if each in admitted}
    simple = estimator.is_simple(asked)
    event(f"simple: {simple}, helps: {bool(asked)}")
    before = state(snapshot)
    found = estimator.estimate(new, asked, limit, daemons)
    assert state(snapshot) == before
    wanted = estimate(snapshot, new, pods, limit, daemons)
    refused = {each: count for each, count in pods.items() if each not in admitted}
    assert picture(replace(found, left={**found.left, **refused})) == picture(wanted)
    if found.most_tried <= limit:
        assert not found.hit_limit
        for other in {max(1, found.most_tried), limit + 1, limit + 50}:
            assert picture(estimate(snapshot, new, asked, other, daemons)) == picture(found)
    assert not simple or found.hit_limit or found.most_tried == found.nodes


@given(scenes(), roomy_nodes(), COUNTS, st.integers(1, 12))
@MANY
def test_an_estimate_is_that_of_the_long_way(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    check(scene, new, counts, limit)


@given(scenes(st.lists(kinds(), min_size=2, max_size=5)), roomy_nodes(), COUNTS, st.integers(1, 12))
@MANY
def test_so_it_is_for_pods_of_any_kind(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    check(scene, new, counts, limit)


@pytest.mark.slow
@given(scenes(), roomy_nodes(), COUNTS, st.integers(1, 12))
@THOROUGH
def test_estimates_hold_in_very_many_clusters(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    check(scene, new, counts, limit)


@pytest.mark.slow
@given(scenes(st.lists(kinds(), min_size=2, max_size=5)), roomy_nodes(), COUNTS, st.integers(1, 12))
@THOROUGH
def test_estimates_hold_for_very_many_kinds(scene: Any, new: NodeInfo, counts: list[int], limit: int) -> None:
    check(scene, new, counts, limit)


@given(scenes(), roomy_nodes(), node("other"), COUNTS)
@MANY
def test_nodes_that_are_alike_get_the_same_estimate(
    scene: Any, one: NodeInfo, other: NodeInfo, counts: list[int]
) -> None:
    """They differ in labels alone, as groups do."""
    snapshot, waits, _ = scene
    other = replace(one, name="other", labels=other.labels)
    likeness = Likeness(snapshot, waits)
    first, second = template(one, "one"), template(other, "two")
    if likeness.of(first) != likeness.of(second):
        event("told apart")
        return
    pods = dict(zip(waits, counts, strict=False))
    assert picture(estimate(snapshot, first, pods, 9)) == picture(estimate(snapshot, second, pods, 9))


def test_values_of_labels_that_nobody_names_are_one() -> None:
    """Of three pools one is asked for; zones count, since pods are spread over them."""
    demand = Demand((("cpu", 1),), node_selector=(Requirement("pool", Operator.IN, ("a",)),))
    spread = Demand((("cpu", 1),), spread=(Spread(1, ZONE, selecting("web")),))
    kinds_ = [PodKind(demand, "default", {"app": "db"}), PodKind(spread, "default", {"app": "web"})]
    classes = Classes(kinds_)
    likeness = Likeness(Snapshot([], [], classes), map(classes.of, kinds_))
    made = [
        template(
            NodeInfo("n", {HOSTNAME: "n", "pool": pool, ZONE: zone, "rack": pool}, (("pods", 9),)), f"{pool}{zone}"
        )
        for pool in ("a", "b", "c")
        for zone in ZONES
    ]
    assert len({likeness.of(each) for each in made}) == 2 * len(ZONES)
    assert likeness.of(made[0]) != likeness.of(replace(made[0], taints=(SPOT,)))


@pytest.mark.parametrize(("zone", "nodes_"), [("a", 0), ("b", 2)])
def test_pods_that_are_there_keep_others_out_of_their_zone(zone: str, nodes_: int) -> None:
    """A pod of ``old`` in zone a wants no pod of ``web`` there: 4 pods of ``web`` get 2 new Nodes in b, none in a."""
    averse = PodKind(Demand(anti_affinity=(PodTerm(selecting("web"), ZONE, HERE),)), "default", {"app": "old"})
    web = PodKind(Demand((("cpu", 1),)), "default", {"app": "web"})
    classes = Classes([averse, web])
    there = NodeInfo("n-0", {HOSTNAME: "n-0", ZONE: "a"}, (("cpu", 2), ("pods", 9)))
    snapshot = Snapshot([there], [PodInfo("default", "p", averse, node="n-0")], classes)
    new = template(replace(there, labels={HOSTNAME: "new", ZONE: zone}), "new")
    waits = {classes.of(web): 4}
    found = Estimator(snapshot, waits).estimate(new, waits, 9)
    assert picture(found) == picture(estimate(snapshot, new, waits, 9))
    assert found.nodes == nodes_
