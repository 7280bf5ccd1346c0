"""Nodes go together only if all their pods find room together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.scheduling.classes import classes_of
from controllers.scheduling.drainability import (
    Blocking,
    Blocks,
    DrainRules,
    Moves,
    PDBBudgets,
    Stays,
    Verdicts,
    read_budget,
    verdict,
)
from controllers.scheduling.predicates import Judge
from controllers.scheduling.reading import Reader
from controllers.scheduling.removal import Candidate, RemovalPlan, RemovalQuestion, Removed, Staying, plan_removal
from controllers.scheduling.shapes import Demand, Keeping, NodeInfo, Owner, PodInfo, PodKind
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.scheduling.worlds import NAMESPACES, kinds, nodes
from tests.examples import usually

NOW = datetime(2026, 6, 1, tzinfo=UTC)
RULES = DrainRules(NOW)


def machine(name: str, cpu: int = 10, **more: Any) -> NodeInfo:
    return NodeInfo(name, {}, (("cpu", cpu), ("pods", 100)), **more)


def kind(cpu: int = 1, labels: dict[str, str] | None = None, **keeping: Any) -> PodKind:
    return PodKind(Demand(requests=(("cpu", cpu),)), "default", labels or {}, Keeping(**keeping))


def pods(node: str, count: int, of: PodKind, **more: Any) -> list[PodInfo]:
    return [PodInfo(of.namespace, f"{node}-{id(of)}-{index}", of, node=node, **more) for index in range(count)]


def plan(nodes: list[NodeInfo], there: list[PodInfo], candidates: str, **more: Any) -> RemovalPlan:
    return plan_removal(RemovalQuestion(nodes, there, [Candidate(name) for name in candidates.split()], RULES, **more))


def budget(allowed: int | None, labels: dict[str, str], name: str = "pdb") -> Any:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    return read_budget(
        {
            "metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": labels}},
            "status": status,
        }
    )


def names(found: RemovalPlan) -> list[str]:
    return [each.node for each in found.removed]


def test_empty_nodes_go_before_the_least_used_ones() -> None:
    app = kind()
    found = plan(
        [machine("a"), machine("b"), machine("c"), machine("d")],
        [*pods("a", 3, app), *pods("b", 1, app), *pods("d", 5, app)],
        "a b c",
    )
    assert names(found) == ["c", "b", "a"]
    assert {move.to for each in found.removed for move in each.moves} == {"d"}


def test_the_pods_of_all_nodes_that_go_have_room_together() -> None:
    """kubeaware-cloudpool-proxy judged each Node alone: 3 → 1 was accepted although both did not fit on the third."""
    app = kind(cpu=2)
    found = plan([machine("a"), machine("b"), machine("c", cpu=4)], [*pods("a", 2, app), *pods("b", 2, app)], "a b")
    assert names(found) == ["a"]
    assert found.kept[0].reason in (Staying.NO_PLACE, Staying.RECEIVES_PODS)


def test_a_node_without_place_for_its_pods_says_why_node_by_node() -> None:
    found = plan([machine("a"), machine("b", cpu=1)], pods("a", 2, kind()), "a")
    assert found.kept[0].reason is Staying.NO_PLACE
    assert "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable." in found.kept[0].why


def test_budgets_are_spent_across_nodes() -> None:
    app = kind(labels={"app": "web"})
    there = [*pods("a", 1, app), *pods("b", 1, app), *pods("c", 1, app)]
    found = plan([machine(name) for name in "abcd"], there, "a b c", budgets=[budget(2, {"app": "web"})])
    assert names(found) == ["a", "b"]
    (kept,) = found.kept
    assert (kept.reason, kept.blocking) == (Staying.BLOCKED_BY_POD, Blocking.BUDGET)
    assert "PodDisruptionBudget default/pdb allows 2 disruptions, 2 of them taken by Nodes that go before" in kept.why


@pytest.mark.parametrize(
    ("budgets", "why"),
    [
        ([budget(None, {"app": "web"})], "its status is not filled yet"),
        ([budget(5, {"app": "web"}), budget(5, {"app": "web"}, "other")], "several PodDisruptionBudgets"),
        ([budget(0, {"app": "web"})], "allows 0 disruptions"),
    ],
)
def test_a_budget_that_allows_nothing_keeps_the_node(budgets: Any, why: str) -> None:
    found = plan([machine("a"), machine("b")], pods("a", 1, kind(labels={"app": "web"})), "a", budgets=budgets)
    assert names(found) == []
    assert why in found.kept[0].why


def test_a_group_keeps_its_minimum_and_only_so_many_go_at_a_time() -> None:
    there = [machine(name) for name in "abcde"]
    found = plan_removal(
        RemovalQuestion(
            there, [], [Candidate(name, "g") for name in "abc"] + [Candidate("d")], RULES, most=2, most_of={"g": 1}
        )
    )
    assert names(found) == ["a", "d"]
    assert [each.reason for each in found.kept] == [Staying.GROUP_MIN_SIZE, Staying.GROUP_MIN_SIZE]


def bundled(there: list[NodeInfo], running: list[PodInfo], of: dict[str, str], **more: Any) -> RemovalPlan:
    """``of``: Node → its bundle."""
    return plan_removal(
        RemovalQuestion(
            there, running, [Candidate(name, atomic_group=each) for name, each in of.items()], RULES, **more
        )
    )


def test_a_bundle_goes_as_a_whole_and_its_nodes_are_no_place_for_each_other() -> None:
    app = kind()
    there = [machine(name) for name in "abcd"]
    found = bundled(there, [*pods("a", 1, app), *pods("b", 1, app)], {"a": "whole", "b": "whole", "c": ""})
    assert names(found) == ["c", "a", "b"]
    assert {move.to for each in found.removed for move in each.moves} == {"d"}


def test_if_one_of_a_bundle_stays_all_stay_and_take_nothing() -> None:
    app, stuck = kind(), kind(cpu=9, labels={"app": "web"})
    there = [machine(name) for name in "abcd"]
    running = [*pods("a", 1, app), *pods("b", 1, stuck), *pods("c", 1, stuck)]
    found = bundled(there, running, {"a": "whole", "b": "whole", "c": ""}, budgets=[budget(2, {"app": "web"})])
    assert names(found) == ["a", "b"], "d takes the pod of b, nobody is left for that of c"
    found = bundled(there, running, {"a": "whole", "b": "whole", "c": ""}, budgets=[budget(0, {"app": "web"})])
    assert names(found) == []
    reasons = {kept.node: kept.reason for kept in found.kept}
    assert reasons == {"a": Staying.TOGETHER, "b": Staying.BLOCKED_BY_POD, "c": Staying.BLOCKED_BY_POD}
    (why,) = (kept.why for kept in found.kept if kept.node == "a")
    assert why.startswith("2 Nodes go together or not at all, and b stays: pod default/b-")


def test_a_bundle_without_place_gives_back_the_room_that_its_first_nodes_took() -> None:
    small, big = kind(cpu=4), kind(cpu=9)
    running = [*pods("a", 1, small), *pods("b", 1, big), *pods("c", 2, small)]
    found = bundled([machine(name) for name in "abcd"], running, {"a": "w", "b": "w", "c": ""})
    assert names(found) == ["c"], "d has room for the pods of c, as nothing of the bundle has moved there"
    assert [kept.reason for kept in found.kept] == [Staying.TOGETHER, Staying.NO_PLACE]


@pytest.mark.parametrize(
    ("most", "gone"), [(0, []), (1, ["a"]), (2, ["a"]), (3, ["a"]), (4, ["a", "b", "c", "d"]), (None, list("abcd"))]
)
def test_a_bundle_that_is_larger_than_what_may_go_at_a_time_waits_until_it_goes_alone(
    most: int | None, gone: list[str]
) -> None:
    there = [machine(name) for name in "abcdz"]
    assert names(bundled(there, [], {"a": "", "b": "w", "c": "w", "d": "w"}, most=most)) == gone
    alone = bundled(there, [], {"b": "w", "c": "w", "d": "w"}, most=most)
    assert names(alone) == ([] if most == 0 else ["b", "c", "d"])


def test_a_bundle_counts_as_a_whole_against_the_minimum_of_its_group() -> None:
    there = [machine(name) for name in "abc"]
    question = RemovalQuestion(
        there, [], [Candidate(each, "g", atomic_group="g") for each in "ab"], RULES, most_of={"g": 1}
    )
    assert [kept.reason for kept in plan_removal(question).kept] == [Staying.GROUP_MIN_SIZE, Staying.TOGETHER]


def test_a_node_that_takes_pods_does_not_go_itself() -> None:
    app = kind()
    found = plan([machine("a"), machine("b")], [*pods("a", 1, app), *pods("b", 1, app)], "a b")
    assert names(found) == ["a"]
    assert found.kept[0].reason is Staying.RECEIVES_PODS


def test_a_candidate_that_is_no_node_is_told() -> None:
    assert plan([machine("a")], [], "z").kept[0].reason is Staying.NOT_FOUND


OLD = (NOW - timedelta(hours=2)).isoformat()
YOUNG = (NOW - timedelta(minutes=5)).isoformat()


def core_pod(**changes: Any) -> dict[str, Any]:
    owner = changes.pop("owner", "ReplicaSet")
    owners = [{"kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else []
    meta = {"namespace": changes.pop("namespace", "default"), "name": "p", "ownerReferences": owners}
    meta["creationTimestamp"] = changes.pop("created", OLD)
    meta["annotations"] = changes.pop("annotations", {})
    if "deleting" in changes:
        meta["deletionTimestamp"] = changes.pop("deleting")
    return {
        "metadata": meta,
        "spec": {"containers": [{"name": "c"}], "volumes": changes.pop("volumes", [])},
        "status": changes,
    }


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LOCAL = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SCRATCH = [{"name": "scratch", "emptyDir": {}}]
VERDICTS: dict[str, tuple[dict[str, Any], Any]] = {
    "a pod of a ReplicaSet moves": ({}, Moves),
    "a pod of a StatefulSet moves": ({"owner": "StatefulSet"}, Moves),
    "a pod of a Job moves": ({"owner": "Job"}, Moves),
    "a mirror pod stays": ({"annotations": {"kubernetes.io/config.mirror": "x"}, "owner": "Node"}, Stays),
    "a pod of a DaemonSet stays": ({"owner": "DaemonSet"}, Stays),
    "a DaemonSet pod by annotation stays": (
        {"owner": None, "annotations": {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}},
        Stays,
    ),
    "a bare pod blocks": ({"owner": None}, Blocking.NOT_REPLICATED),
    "a pod of a custom controller blocks": ({"owner": "Rocket"}, Blocking.NOT_REPLICATED),
    "a bare pod that is safe to evict moves": ({"owner": None, "annotations": {SAFE: "true"}}, Moves),
    "a finished bare pod stays": ({"owner": None, "phase": "Succeeded"}, Stays),
    "a pod that is not safe to evict blocks": ({"annotations": {SAFE: "false"}}, Blocking.NOT_SAFE),
    "a pod to be completed blocks": ({"annotations": {SAFE: "on-completion"}}, Blocking.ON_COMPLETION),
    "a completed pod stays": ({"annotations": {SAFE: "on-completion"}, "phase": "Failed"}, Stays),
    "an emptyDir blocks": ({"volumes": SCRATCH}, Blocking.LOCAL_STORAGE),
    "a hostPath blocks": ({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, Blocking.LOCAL_STORAGE),
    "an emptyDir in memory moves": ({"volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}]}, Moves),
    "a volume that was given up moves": ({"volumes": SCRATCH, "annotations": {LOCAL: "other, scratch"}}, Moves),
    "a young system pod blocks": ({"namespace": "kube-system", "created": YOUNG}, Blocking.SYSTEM_POD),
    "an old system pod moves": ({"namespace": "kube-system"}, Moves),
    "a pod that hangs while terminating stays": ({"owner": None, "deleting": OLD}, Stays),
    "a pod that is just terminating is judged as before": ({"deleting": NOW.isoformat()}, Moves),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_may_a_pod_be_moved(name: str) -> None:
    changes, wanted = VERDICTS[name]
    found = verdict(Reader().pod(core_pod(**changes)), RULES, PDBBudgets([]))
    if isinstance(wanted, Blocking):
        assert isinstance(found, Blocks), found
        assert found.reason is wanted
    else:
        assert found == wanted()


def test_a_system_pod_with_a_budget_moves() -> None:
    cover = read_budget({"metadata": {"namespace": "kube-system", "name": "b"}, "spec": {"selector": {}}})
    pod = Reader().pod(core_pod(namespace="kube-system", created=YOUNG))
    assert verdict(pod, RULES, PDBBudgets([cover])) == Moves()


def test_controllers_that_are_known_are_asked() -> None:
    pod = Reader().pod(core_pod())
    assert pod.owner is not None
    gone = verdict(pod, DrainRules(NOW, replicas={}), PDBBudgets([]))
    few = verdict(pod, DrainRules(NOW, replicas={pod.owner: 1}, min_replicas=2), PDBBudgets([]))
    assert isinstance(gone, Blocks)
    assert isinstance(few, Blocks)
    assert (gone.reason, few.reason) == (Blocking.CONTROLLER_NOT_FOUND, Blocking.MIN_REPLICAS)


ALIKE = [
    PodKind(Demand(), namespace, {}, Keeping(replicated=replicated))
    for namespace in ("default", "kube-system")
    for replicated in (True, False)
]
OWNERS = (None, *(Owner(made_by, made_by, made_by) for made_by in ("ReplicaSet", "StatefulSet", "Rocket")))


@given(
    st.lists(
        st.builds(
            lambda kind, owner, created, deleting: PodInfo(
                kind.namespace, "p", kind, owner=owner, created=created, deleting=deleting
            ),
            st.sampled_from(ALIKE),
            st.sampled_from(OWNERS),
            st.sampled_from((YOUNG, OLD)),
            st.sampled_from(("", "", NOW.isoformat(), OLD)),
        )
    )
)
@usually(50)
def test_pods_that_are_alike_are_judged_together_as_each_alone(there: list[PodInfo]) -> None:
    rules = DrainRules(
        NOW, replicas={owner: number for number, owner in enumerate(OWNERS[1:3]) if owner}, min_replicas=1
    )
    pdb_budgets = PDBBudgets([])
    together = Verdicts(rules, pdb_budgets)
    assert [together.of(pod) for pod in there] == [verdict(pod, rules, pdb_budgets) for pod in there]


@st.composite
def clusters(draw: Any) -> RemovalQuestion:
    there = draw(nodes(least=2, most=5))
    known = draw(st.lists(kinds(), min_size=1, max_size=3))
    running = [
        PodInfo(each.namespace, f"p-{index}", each, node=node.name)
        for index, (node, each) in enumerate(
            draw(st.lists(st.tuples(st.sampled_from(there), st.sampled_from(known)), max_size=8))
        )
    ]
    budgets = [budget(draw(st.integers(0, 3)), {"app": app}, app) for app in ("web", "db")]
    chosen = draw(st.lists(st.sampled_from(there), unique_by=lambda each: each.name))
    bundles = st.sampled_from(("", "", "one", "other"))
    candidates = [Candidate(node.name, atomic_group=draw(bundles)) for node in chosen]
    return RemovalQuestion(there, running, candidates, RULES, budgets, NAMESPACES)


def make_moves(snapshot: Snapshot, removed: Removed, *, new: int = -1) -> None:
    """Each is allowed by the predicates at that moment. ``new``: row of a Node that is not there yet."""
    for move in removed.moves:
        is_new = new >= 0 and move.to == snapshot.nodes[new].name
        row = new if is_new else snapshot.row(move.to)
        assert not snapshot.closed[row], "pods must not move to a Node that goes"
        pod_class = snapshot.classes.of(move.pod.kind)
        everywhere = snapshot.occupied()
        assert Judge(pod_class, everywhere).refusal(everywhere[row]) is None
        snapshot.place(pod_class, row)


def replay(question: RemovalQuestion) -> None:
    """Every move, made one after the other, is allowed by the predicates at that moment."""
    found = plan_removal(question)
    assert sorted([*names(found), *(each.node for each in found.kept)]) == sorted(
        each.name for each in question.candidates
    )
    classes = classes_of(question.pods, question.namespaces)
    snapshot = Snapshot(question.nodes, question.pods, classes)
    atomic_group = {each.name: each.atomic_group for each in question.candidates}
    going = {each.node for each in found.removed}
    for name in {each for each in atomic_group.values() if each}:
        assert len({node in going for node, of in atomic_group.items() if of == name}) == 1
    for removed in found.removed:
        for node in going:
            if node == removed.node or atomic_group[node] == atomic_group[removed.node] != "":
                snapshot.close(snapshot.row(node))
        make_moves(snapshot, removed)
    for each in question.budgets:
        evicted = sum(
            each.namespace == move.pod.namespace and each.selector.matches(move.pod.kind.labels)
            for removed in found.removed
            for move in removed.moves
        )
        assert evicted <= each.allowed


@given(clusters())
@usually(12)
def test_a_removal_plan_leaves_no_pod_pending_and_keeps_the_budgets(question: RemovalQuestion) -> None:
    replay(question)


@pytest.mark.slow
@given(clusters())
@settings(max_examples=2000, deadline=None)
def test_removal_plans_hold_in_very_many_clusters(question: RemovalQuestion) -> None:
    replay(question)
