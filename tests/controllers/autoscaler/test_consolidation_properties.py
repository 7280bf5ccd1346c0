"""Whatever the cluster is: consolidation leaves no pod without a place, saves what it must, and comes to rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from api import names
from controllers.autoscaler import replacements
from controllers.autoscaler.cluster_state import ClusterState, GroupState, Workload
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.memory import write
from controllers.autoscaler.options import AutoscalerOptions, ConsolidationOptions, GrowthOptions, ShrinkOptions
from controllers.autoscaler.prices import PriceTable
from controllers.autoscaler.projected import project
from controllers.autoscaler.scale_up import Growth
from controllers.autoscaler.scaledown.eligibility import Consolidating, context_of
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key, Ref
from controllers.scaling.node_group import Bounds, NodeGroup
from controllers.scheduling.binpacking import template
from controllers.scheduling.classes import Classes
from controllers.scheduling.drainability import PDBBudgets
from controllers.scheduling.shapes import Keeping, NodeInfo, PodInfo, PodKind
from controllers.scheduling.snapshot import Snapshot
from tests.controllers.autoscaler.fleet import START, Fleet
from tests.controllers.scheduling.test_estimator import deployments, roomy_nodes
from tests.controllers.scheduling.test_removal import budget, make_moves
from tests.controllers.scheduling.worlds import NAMESPACES, nodes
from tests.examples import usually

LEAST_GAIN = 0.2
SOON = ShrinkOptions(
    unneeded_time=timedelta(0), delay_after_add=timedelta(0), delay_after_failure=timedelta(0), parallel_drains=2
)


def group_of(index: int, there: list[NodeInfo], look: NodeInfo, draw: Any) -> GroupState:
    name = f"g-{index}"
    machines = [
        MachineFacts(Key("ns", f"m-{node.name}"), node.name, "1", START, "", {}, node_name=node.name) for node in there
    ]
    bounds = Bounds(draw(st.sampled_from([0, 0, 0, 1])), 9)
    group = NodeGroup(ref=Ref(MACHINE_DEPLOYMENT, Key("ns", name), name), bounds=bounds, replicas=len(there))
    return GroupState(
        group,
        machines=tuple(machines),
        joined=frozenset(node.name for node in there),
        template=template(replace(look, unschedulable=False), f"template-of-MachineDeployment/ns/{name}"),
    )


@st.composite
def clusters(draw: Any) -> ClusterState:
    """Nodes of three groups and of none, some protected; pods of all kinds that a scheduler knows, few budgets."""
    there, known = draw(nodes(least=2, most=6)), draw(deployments())
    of = [draw(st.sampled_from([0, 0, 0, 1, 1, 2, -1])) for _ in there]
    groups = [
        group_of(
            index, [node for node, mine in zip(there, of, strict=True) if mine == index], draw(roomy_nodes()), draw
        )
        for index in range(3)
    ]
    kept = draw(st.sampled_from([{}, {}, {}, {"safe_to_evict": "false"}, {"replicated": False}]))
    known = [PodKind(each.demand, each.namespace, each.labels, Keeping(**kept) if n == 0 else Keeping())
             for n, each in enumerate(known)]  # fmt: skip
    seated = draw(st.lists(st.tuples(st.sampled_from(there), st.sampled_from(known)), min_size=1, max_size=9))
    prices = {f"MachineDeployment/ns/g-{index}": float(draw(st.integers(1, 9))) for index in range(3)}
    choosing = Choosing(prices=PriceTable(nodes=prices if draw(st.booleans()) else {}))
    consolidation = ConsolidationOptions(enabled=True, least_gain=LEAST_GAIN)
    return ClusterState(
        now=START,
        options=AutoscalerOptions(GrowthOptions(choosing=choosing), SOON, consolidation=consolidation),
        groups=tuple(groups),
        workload=Workload(
            nodes=tuple(there),
            pods=tuple(PodInfo(k.namespace, f"p-{n}", k, node=on.name) for n, (on, k) in enumerate(seated)),
            budgets=tuple(budget(draw(st.integers(0, 2)), {"app": app}, app) for app in ("a0", "a1")),
            namespaces=NAMESPACES,
            protected={there[0].name: "somebody says so"} if draw(st.integers(0, 3)) == 0 else {},
        ),
    )


def cost(cluster: ClusterState, group: str, node: NodeInfo) -> float | None:
    return cluster.options.growth.choosing.prices.node(group, node.labels)


def check(cluster: ClusterState) -> bool:
    """Whether something was found, which holds then."""
    projected = project(cluster)
    context = context_of(cluster, projected, given_up={}, consolidating=Consolidating(any_use=True))
    found = replacements.best(context, Growth(cluster, projected, {}))
    if isinstance(found, str):
        return False
    workload = cluster.workload
    old = {node.name: node for node in workload.nodes if node.name in found.nodes}
    owners = {m.node_name: state for state in cluster.groups for m in state.machines}
    assert not old.keys() & workload.protected.keys()
    assert old.keys() <= owners.keys(), "no Node of nobody goes"
    for state in cluster.groups:
        assert sum(1 for name in old if owners[name] is state) <= state.group.spare
    running = [pod for pod in workload.pods if pod.node in old]
    assert all(pod.kind.keeping.replicated and pod.kind.keeping.safe_to_evict != "false" for pod in running)
    for name in old:
        assert PDBBudgets(workload.budgets).lacks([pod for pod in running if pod.node == name]) is None
    _saves(cluster, found, old, owners)
    snapshot = Snapshot(workload.nodes, workload.pods, Classes((pod.kind for pod in workload.pods), NAMESPACES))
    new = snapshot.add_nodes(found.new)
    for removed in found.removed:
        snapshot.close(snapshot.row(removed.node))
        moving = {pod.name for pod in running if pod.node == removed.node and not pod.kind.terminating}
        assert moving <= {move.pod.name for move in removed.moves}
        make_moves(snapshot, removed, new=new)
    return True


def _saves(
    cluster: ClusterState,
    found: replacements.Replacement,
    old: Mapping[str, NodeInfo],
    owners: Mapping[str, GroupState],
) -> None:
    new, prices = cost(cluster, found.state.id, found.new), [cost(cluster, owners[n].id, old[n]) for n in old]
    if new is not None:
        before = sum(price for price in prices if price is not None)
        assert None not in prices
        assert before - new >= LEAST_GAIN * before - 1e-9
    else:
        for name in ("cpu", "memory"):
            before = sum(node.amount(name) for node in old.values())
            assert before - found.new.amount(name) >= LEAST_GAIN * before - 1e-9


@given(clusters())
@usually(60)
def test_every_step_of_a_consolidation_leaves_all_pods_a_place(cluster: ClusterState) -> None:
    event("found" if check(cluster) else "nothing")


@pytest.mark.slow
@given(clusters())
@settings(max_examples=1000, deadline=None)
def test_consolidations_hold_in_very_many_clusters(cluster: ClusterState) -> None:
    assume(check(cluster))


def live(fleet: Fleet, most: int) -> None:
    """A look that ends after ``most`` writes: the memory is the first of them, and the process dies then."""
    decision = fleet.decide()
    text = write(decision.memory)
    writes = [action for step in decision.steps for action in step]
    if most and text != fleet.text:
        fleet.text, most = text, most - 1
    for action in writes[:most]:
        fleet._carry_out(action)
    fleet.now += timedelta(seconds=30)


def priced_fleet(sizes: list[int], prices: list[int], cores: list[int]) -> Fleet:
    groups = [f"g-{index}" for index in range(len(sizes))]
    table = PriceTable(
        nodes={f"MachineDeployment/ns/{name}": price for name, price in zip(groups, prices, strict=True)}
    )
    options = AutoscalerOptions(GrowthOptions(choosing=Choosing(("price",), prices=table)), SOON)
    fleet = Fleet(replace(options, consolidation=ConsolidationOptions(enabled=True, least_gain=LEAST_GAIN)))
    for name, size, each in zip(groups, sizes, cores, strict=True):
        fleet.group(name, cpu=str(each), memory="64Gi")["spec"]["replicas"] = size
        for _ in range(size):
            fleet.join(fleet.machine(name))
    return fleet


def bill(fleet: Fleet) -> float:
    prices = fleet.options.growth.choosing.prices.nodes
    return sum(prices[f"MachineDeployment/ns/{name}"] * fleet.size(name) for name in fleet.deployments)


def pending(fleet: Fleet) -> list[str]:
    return [name for name, pod in fleet.pods.items() if not pod["spec"]["nodeName"]]


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.lists(st.integers(1, 6), min_size=3, max_size=3),
    st.lists(st.integers(0, 4), max_size=25),
    st.data(),
)
@usually(12)
def test_it_comes_to_rest_cheaper_or_as_it_was_wherever_it_dies(
    sizes: list[int], prices: list[int], cores: list[int], deaths: list[int], data: Any
) -> None:
    """Pods of one core each: then it is nothing to them where the scheduler puts the others."""
    fleet = priced_fleet(sizes, prices, cores)
    for node in sorted(fleet.nodes):
        room = int(fleet.nodes[node]["status"]["allocatable"]["cpu"])
        for index in range(data.draw(st.integers(0, room))):
            fleet.pod(f"{node}-{index}", "1", node=node)
    before = bill(fleet)
    for most in (*deaths, *[99] * 60):
        live(fleet, most)
        fleet.settle()
        assert not pending(fleet), "a prefix of any plan is safe"
    after = bill(fleet)
    assert after <= before
    event("cheaper" if after < before else "as it was")
    assert not fleet.decide().steps, "it comes to rest"
    assert fleet.decide().memory.consolidation is None
    marks = [body["metadata"]["annotations"] for body in (*fleet.deployments.values(), *fleet.machines.values())]
    assert not any(names.CONSOLIDATION_ANNOTATION in each or names.DELETE_MACHINE_ANNOTATION in each for each in marks)
