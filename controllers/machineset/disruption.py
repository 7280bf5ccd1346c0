"""In which order Machines go so that their pods are disturbed least: ``deletePolicy: LeastDisruptive``.

Asked only when Machines have to go. Pods, Nodes and budgets are looked at where this process reads them anyway, for
drains or for the autoscaler; where it does not, or what it reads is old, the order is that of Random, and it is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from api.names import DeletePolicy
from controllers.kernel.conditions import counted, is_true
from controllers.kernel.deletions import UNPLACED, Rank, rank
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import Members
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.refs import (
    MACHINE_SET,
    NAMESPACE,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    Obj,
    is_deleting,
    key_of,
    labels_of,
    spec_of,
)
from controllers.kernel.view import View
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.drainability import DrainRules, read_budget
from controllers.scheduling.reading import Reader, read_node
from controllers.scheduling.removal import Candidate, RemovalPlan, RemovalQuestion, Staying, plan_removal
from controllers.scheduling.shapes import NodeInfo, PodInfo
from controllers.scheduling.tables import PodsByNode

LOOKED_AT = (NODE, POD, POD_DISRUPTION_BUDGET, NAMESPACE)
_MOVABLE, _NO_CAPACITY, _BLOCKED = range(3)
_Disturbs = tuple[int, bool, float]
"""One of these three, whether pods have to leave, and how much of the Node is asked for."""


@dataclass(frozen=True, slots=True)
class Disruption:
    """``places``: uid → place in the order, the same for equals. ``why``: what there is to say of the pods of each.

    ``unknown``: why nobody can say; then there are no places.
    """

    places: Mapping[str, int] = field(default_factory=lambda: UNPLACED)
    why: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""


NO_MATTER = Disruption()


def disruption(body: Obj, members: Members, desired: tuple[int, str], view: View) -> Disruption:
    """``desired``: replicas and policy. Nothing is looked at unless a Ready Machine has to go."""
    replicas, policy = desired
    if policy != DeletePolicy.LEAST_DISRUPTIVE:
        return NO_MATTER
    excess = members.existing - replicas - len(members.pending)
    earlier = [machine for machine in members.active if rank(machine) < Rank.READY]
    ready = [machine for machine in members.active if rank(machine) is Rank.READY]
    if excess <= len(earlier) or excess >= len(members.active):
        return NO_MATTER
    there = view.of_cluster(cluster_key_of(MACHINE_SET, body))
    unread = [kind.plural for kind in LOOKED_AT if not there.complete(kind)]
    if unread:
        return Disruption(unknown=f"chosen by lot, since {', '.join(unread)} are not read here or not up to date")
    going = (*members.leaving, *members.deleting, *earlier)
    return _ordered(ready, {machine.node_name for machine in going}, there)


def _ordered(ready: list[MachineFacts], going: set[str], view: View) -> Disruption:
    """Those of the least priority don't come first here: the order of victims puts priority before this."""
    projected = _Projected(view, going)
    candidates = [Candidate(machine.node_name) for machine in ready if machine.node_name not in projected.unresolved]
    plan = plan_removal(
        RemovalQuestion(
            projected.nodes,
            projected.pods,
            candidates,
            DrainRules(view.now),
            tuple(read_budget(budget) for budget in view.all(POD_DISRUPTION_BUDGET)),
            {namespace["metadata"]["name"]: labels_of(namespace) for namespace in view.all(NAMESPACE)},
        ),
        pods_by_node=projected.pods_by_node,
    )
    order = _by_node(plan, projected)
    steps = {key: place for place, key in enumerate(sorted({key for _, key, _ in order}))}
    machines = {machine.node_name: machine.uid for machine in ready}
    places = {machines[node]: steps[key] for node, key, _ in order}
    return Disruption(places, {machines[node]: why for node, _, why in order})


def _by_node(plan: RemovalPlan, projected: _Projected) -> list[tuple[str, _Disturbs, str]]:
    """Those whose pods find a place together, then the others, those with a pod that blocks last; least used first."""
    found: list[tuple[str, _Disturbs, str]] = []
    for removed in plan.removed:
        pods = counted(len(removed.moves), "pod") if removed.moves else ""
        why = f"{pods} of it can move" if pods else "no pod has to leave it"
        found.append((removed.node, (_MOVABLE, bool(pods), projected.load(removed.node)), why))
    for kept in plan.kept:
        grade = _BLOCKED if kept.reason is Staying.BLOCKED_BY_POD else _NO_CAPACITY
        found.append((kept.node, (grade, True, projected.load(kept.node)), kept.why))
    return found


class _Projected:
    """The cluster as ``plan_removal`` asks for it. ``unresolved``: Nodes with a pod that can't be read."""

    def __init__(self, view: View, going: set[str]) -> None:
        reader, pods, self.unresolved = Reader(), list[PodInfo](), set[str]()
        for body in view.all(POD):
            try:
                pods.append(reader.pod(body))
            except ShapeError:
                self.unresolved.add(str(spec_of(body).get("nodeName") or ""))
        self.pods = pods
        self.pods_by_node = PodsByNode(pods)
        self.nodes = tuple(self._shapes(view.all(NODE), going))
        self._shape_of = {node.name: node for node in self.nodes}

    def load(self, node: str) -> float:
        shape = self._shape_of.get(node)
        return self.pods_by_node.load(shape) if shape is not None else 1.0

    def _shapes(self, nodes: Iterable[Obj], going: set[str]) -> Iterable[NodeInfo]:
        """Nodes that are not Ready, on their way out or not clear are no place for pods."""
        for body in nodes:
            name = key_of(body).name
            try:
                shape = read_node(body)
            except ShapeError:
                continue
            ready = is_true((body.get("status") or {}).get("conditions"), "Ready")
            takes = ready and not is_deleting(body) and name not in going and name not in self.unresolved
            yield shape if takes else replace(shape, unschedulable=True)
