"""The cluster on which requests are tried one after the other: each sees what was promised to those before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from controllers.autoscaler.backoff import Backoff
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.health import resting
from controllers.autoscaler.projected import ProjectedCluster, project
from controllers.autoscaler.requests import Pods, Request
from controllers.autoscaler.reservations import Reservation, real_rows, reserve
from controllers.autoscaler.scale_up import ScaleUp, plan_scale_up
from controllers.kernel.conditions import counted
from controllers.kernel.refs import Ref
from controllers.provisioningrequest.classes import Growth, NotFound, ProvisioningClass, Verdict
from controllers.scheduling.classes import Group, PodClass
from controllers.scheduling.predicates import static_refusal
from controllers.scheduling.shapes import PodInfo

_MOST_NAMED = 5
"""Groups that are named with what hinders them."""


@dataclass(frozen=True, slots=True)
class _World:
    """What changes when Nodes are promised, beside the snapshot."""

    cluster: ClusterState
    projected: ProjectedCluster

    def grown(self, added: Mapping[str, int]) -> _World:
        """With the Nodes that were promised as Nodes on their way."""
        states = {state.id: state for state in self.cluster.all_groups}
        nodes = list(self.projected.nodes)
        upcoming = dict(self.projected.upcoming)
        for name, count in added.items():
            state = states[name]
            states[name] = replace(state, group=replace(state.group, replicas=state.group.replicas + count))
            upcoming[name] = upcoming.get(name, 0) + count
            if state.template is not None:
                nodes.append((state.template, count))
        projected = replace(self.projected, upcoming=upcoming, nodes=tuple(nodes))
        there = tuple(states[state.id] for state in self.cluster.groups)
        could_be = tuple(states[state.id] for state in self.cluster.own.candidates)
        return _World(
            replace(self.cluster, groups=there, own=replace(self.cluster.own, candidates=could_be)), projected
        )

    def added_to(self, before: _World) -> dict[str, int]:
        sizes = {state.id: state.group.replicas for state in before.cluster.all_groups}
        more = {state.id: state.group.replicas - sizes[state.id] for state in self.cluster.all_groups}
        return {name: count for name, count in more.items() if count}


class TrialSnapshot:
    """``held``: what each request holds, by its Ref; promises are added to it."""

    def __init__(self, cluster: ClusterState) -> None:
        asked = (shape.kind for request in cluster.requests for shape, _ in request.pods)
        self._world = _World(cluster, project(cluster, asked))
        self._resting: Mapping[str, Backoff] = resting(cluster)
        self.held: dict[Ref, Reservation] = dict(self._world.projected.held)
        self._refused: dict[object, NotFound] = {}
        """What was refused in this look, by what was asked: equal requests need not be tried again."""

    def decide(self, request: Request, class_: ProvisioningClass, parameters: Mapping[str, str]) -> Verdict:
        """Keep what was tried if there is room for all."""
        asked = _asked(request, class_, parameters)
        known = self._refused.get(asked)
        if known is not None:
            return known
        trial = _Trial(
            world=self._world, resting=self._resting, request=request, pods=request.left, parameters=parameters
        )
        verdict = self._try(trial, lambda: _asked_of(class_, trial))
        if isinstance(verdict, NotFound):
            self._refused[asked] = verdict
        return verdict

    def more(self, request: Request, parameters: Mapping[str, str]) -> Verdict:
        """Room for the pods of a request that are short although Nodes were made for it."""
        held = self.held[request.ref]
        trial = _Trial(
            world=self._world, resting=self._resting, request=request, pods=held.short, parameters=parameters
        )
        verdict = self._try(trial, trial.grow)
        if isinstance(verdict, NotFound):
            return verdict
        reservation = self.held[request.ref] = held.with_more(verdict.reservation)
        return replace(verdict, reservation=reservation)

    def move(self, request: Request) -> Reservation:
        """Room elsewhere for booked pods that have lost theirs: on Nodes that are there, else on those to come."""
        held = self.held[request.ref]
        snapshot = self._world.projected.snapshot
        moved = held.with_more(reserve(snapshot, held.short, real_rows(snapshot)))
        if moved.short:
            moved = moved.with_more(reserve(snapshot, moved.short, snapshot.rows))
        self.held[request.ref] = moved
        return moved

    def _try(self, trial: _Trial, decide: Callable[[], Verdict]) -> Verdict:
        verdict = decide()
        trial.end(keep=not isinstance(verdict, NotFound))
        if isinstance(verdict, Growth):
            self._world = self._world.grown(verdict.added)
        if not isinstance(verdict, NotFound):
            self.held[trial.request.ref] = verdict.reservation
        return verdict


@dataclass(slots=True)
class _Trial:
    """What is tried last is what counts; what was tried before it is undone."""

    world: _World
    resting: Mapping[str, Backoff]
    request: Request
    pods: Pods
    parameters: Mapping[str, str] = field(default_factory=dict)
    _forked: bool = False

    def fit(self) -> Reservation:
        self._begin()
        snapshot = self.world.projected.snapshot
        return reserve(snapshot, self.pods, real_rows(snapshot))

    def grow(self) -> Growth | NotFound:
        """All pods at once first; if that leaves any, those for which fewest groups will do go first."""
        found = self._grow(lambda groups: [groups])
        if isinstance(found, NotFound) and len(self.pods) > 1:
            otherwise = self._grow(self._choosy_first)
            return found if isinstance(otherwise, NotFound) else otherwise
        return found

    def end(self, *, keep: bool) -> None:
        snapshot = self.world.projected.snapshot
        if self._forked:
            snapshot.commit() if keep else snapshot.revert()
        self._forked = False

    def _begin(self) -> None:
        self.end(keep=False)
        self.world.projected.snapshot.fork()
        self._forked = True

    def _grow(self, in_order: Callable[[list[Group]], list[list[Group]]]) -> Growth | NotFound:
        self._begin()
        snapshot, world = self.world.projected.snapshot, self.world
        reservation = reserve(snapshot, self.pods, snapshot.rows)
        for groups in in_order(self._groups(reservation.short)):
            projected = replace(world.projected, unschedulable=tuple(groups), gangs=())
            growing = plan_scale_up(world.cluster, projected, resting=self.resting, explained=False)
            if growing.left:
                return NotFound(self._why(growing, world))
            reservation = reservation.with_more(Reservation(upcoming=growing.added))
            world = world.grown(growing.added)
        return Growth(reservation, world.added_to(self.world))

    def _groups(self, pods: Pods) -> list[Group]:
        merged: dict[PodClass, tuple[PodInfo, int]] = {}
        for shape, count in pods:
            pod_class = self.world.projected.snapshot.classes.of(shape.kind)
            merged[pod_class] = (shape, merged.get(pod_class, (shape, 0))[1] + count)
        return [Group(pod_class, (shape,) * count) for pod_class, (shape, count) in merged.items()]

    def _choosy_first(self, groups: list[Group]) -> list[list[Group]]:
        templates = [state.template for state in self.world.cluster.all_groups if state.template is not None]

        def choices(group: Group) -> int:
            return sum(1 for template in templates if static_refusal(group.pod_class, template) is None)

        return [[group] for group in sorted(groups, key=choices)]

    def _why(self, growing: ScaleUp, world: _World) -> str:
        """Which pods have no room, and what hinders each group."""
        missing = sum(len(left.pods) for left in growing.left)
        wanted = sum(count for _, count in self.request.pods)
        sentences = [f"{missing} of {wanted} pods would have no room"]
        pod_class = world.projected.snapshot.classes.of(growing.left[0].pods[0].kind)
        for state in world.cluster.all_groups[:_MOST_NAMED]:
            why = growing.skipped.get(state.id) or state.problem
            if not why and state.template is not None:
                why = str(static_refusal(pod_class, state.template) or "its Nodes are too small, or too few of them")
            sentences.append(f"{state.id}: {why}")
        more = len(world.cluster.all_groups) - _MOST_NAMED
        if more > 0:
            sentences.append(f"and {counted(more, 'group')} more")
        return "; ".join(sentences) if world.cluster.all_groups else f"{sentences[0]}; there is no node group"


def _asked_of(class_: ProvisioningClass, trial: _Trial) -> Verdict:
    """Its fault is raised to callers that ask for it, and affects no other request."""
    try:
        return class_.decide(trial)
    except Exception as error:
        return NotFound(f"the provisioning class {trial.request.class_name} failed: {error!r}")


def _asked(request: Request, class_: ProvisioningClass, parameters: Mapping[str, str]) -> object:
    pods = tuple((shape.kind, count) for shape, count in request.left)
    return class_.names, pods, tuple(sorted(parameters.items()))
