"""Nodes for gangs: in one plan, over as many groups as it takes, all or none.

A gang is tried on a fork of the picture. Only if all that it needs has room, its Nodes are added; else the picture, the
sizes and what the limits allow are as before, and the next one is tried. So no two gangs ever hold a half each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.gang_placement import domains_of, unplaced
from controllers.autoscaler.gang_rollback import resting
from controllers.autoscaler.gangs import Gang, in_turn, within
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.scale_up import Growth, Left
from controllers.kernel.conditions import counted, format_time
from controllers.scheduling.classes import Group
from controllers.scheduling.predicates import static_refusal
from controllers.scheduling.shapes import PodInfo


@dataclass(frozen=True, slots=True)
class _Try:
    """``nodes`` more would do, split into ``parts`` that are asked for one after the other."""

    domain: str
    nodes: int
    pods: tuple[PodInfo, ...]
    choosy_first: bool


@dataclass(slots=True)
class _Whole:
    growth: Growth
    cluster: ClusterState
    projected: ProjectedCluster
    why: Mapping[str, str] = field(default_factory=dict)
    short: int = 0

    def grow(self, gang: Gang) -> bool:
        """The cheapest of all ways by the number of Nodes, then by the name of the domain."""
        for pods in gang.choices():
            found = [each for domain in self._domains(gang) if (each := self._possible(gang, pods, domain)) is not None]
            if found:
                best = min(found, key=lambda each: (each.nodes, each.domain))
                mark = self.growth.mark()
                self.projected.snapshot.fork()
                self._run(gang, best)
                self.projected.snapshot.commit()
                self.growth.got(gang.id, self.growth.added_since(mark))
                return True
        return False

    def _possible(self, gang: Gang, pods: tuple[PodInfo, ...], domain: str) -> _Try | None:
        """All pods at once first; if that leaves any, those for which fewest groups will do go first."""
        for choosy_first in (False, True):
            attempt = _Try(domain, 0, pods, choosy_first)
            mark = self.growth.mark()
            self.projected.snapshot.fork()
            done = self._run(gang, attempt)
            nodes = sum(self.growth.added_since(mark).values())
            if not done:
                self.why = self.growth.refusals(next(iter(self.growth.left)))
                self.short = sum(map(len, self.growth.left.values()))
            self.growth.back(mark)
            self.projected.snapshot.revert()
            if done:
                return _Try(domain, nodes, pods, choosy_first)
        return None

    def _run(self, gang: Gang, attempt: _Try) -> bool:
        snapshot = self.projected.snapshot
        groups = within(attempt.pods, snapshot.classes, topology=gang.topology, domain=attempt.domain)
        left = unplaced(snapshot, groups)
        for part in self._choosy_first(left) if attempt.choosy_first else [left]:
            self.growth.take(part)
            while self.growth.left and self.growth.step():
                pass
            if self.growth.left:
                return False
        return True

    def _choosy_first(self, groups: Iterable[Group]) -> list[list[Group]]:
        templates = [state.template for state in self.cluster.all_groups if state.template is not None]

        def choices(group: Group) -> int:
            return sum(1 for template in templates if static_refusal(group.pod_class, template) is None)

        return [[group] for group in sorted(groups, key=choices)]

    def _domains(self, gang: Gang) -> list[str]:
        key, more = gang.topology, set[str]()
        for state in self.cluster.all_groups:
            if state.template is not None and state.template.labels.get(key):
                more.add(state.template.labels[key])
            if state.zone_order is not None and state.zone_order.label == key:
                more.update(state.zone_order.open)
        return domains_of(gang, self.projected.snapshot.nodes, more)


def grow_with_gangs(growth: Growth, cluster: ClusterState, projected: ProjectedCluster) -> None:
    """Gangs by priority, and single pods of a higher one before them."""
    rests = resting(cluster)
    for each in in_turn(projected.unschedulable, projected.gangs):
        if not isinstance(each, Gang):
            growth.run(each)
            continue
        gang, whole = each, _Whole(growth, cluster, projected)
        if gang.parent:
            growth.waits(Left(gang.pods, {}, f"{gang.id} is a part of CompositePodGroup {gang.parent}: not served"))
        elif gang.missing:
            growth.waits(Left(gang.pods, {}, f"{gang.id} waits for {counted(gang.missing, 'pod')} more"))
        elif gang.id in rests:
            until = format_time(rests[gang.id].until)
            growth.waits(Left(gang.pods, {}, f"{gang.id} rests until {until}: {rests[gang.id].why}"))
        elif not whole.grow(gang):
            growth.waits(Left(gang.pods, whole.why, _short(gang, whole)))


def _short(gang: Gang, whole: _Whole) -> str:
    where = f" in one {gang.topology}" if gang.topology else ""
    return f"{gang.id} needs room for {gang.need} pods at once{where}; {whole.short} of them would have none"
