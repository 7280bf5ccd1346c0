"""Which groups grow, and by how many Nodes, so that pods which find no place get one.

Several groups may grow in one plan: the expander chooses one, its Nodes are added to the picture, and the pods that are
still left are asked for again, until no group helps any more. (The Cluster Autoscaler grows one and looks again.)
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controllers.autoscaler.backoff import Backoff
from controllers.autoscaler.balancing import Alike, AlikeGroups, balance
from controllers.autoscaler.cluster_state import ClusterState, GroupState
from controllers.autoscaler.estimates import Estimates, Refusals
from controllers.autoscaler.expanders import Option, choose
from controllers.autoscaler.projected import ProjectedCluster
from controllers.autoscaler.resource_limits import ResourceLimits
from controllers.autoscaler.right_sizing import Size, Sizes
from controllers.autoscaler.scale_up_result import Apart as Apart  # noqa: PLC0414 - readers import them from here
from controllers.autoscaler.scale_up_result import Helped as Helped  # noqa: PLC0414 - likewise
from controllers.autoscaler.scale_up_result import Left as Left  # noqa: PLC0414 - likewise
from controllers.autoscaler.scale_up_result import ScaleUp as ScaleUp  # noqa: PLC0414 - likewise
from controllers.autoscaler.scale_up_result import planned
from controllers.autoscaler.upcoming_zones import UpcomingZones
from controllers.autoscaler.zone_shares import Dealt, deal
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import Key
from controllers.scaling.node_group import NodeGroup
from controllers.scheduling.binpacking import Estimate, commit, filled_up
from controllers.scheduling.classes import Group, PodClass
from controllers.scheduling.ordered_estimate import estimate_in_order
from controllers.scheduling.placement import place
from controllers.scheduling.shapes import NodeInfo, PodInfo

_MOST_IN_TURN = 100
"""Nodes that a group gets one by one, each in its failure domain, in one step; asking for each is slow."""
MOST_EXPLAINED = 20
"""Classes of pods for which each group is asked why it does not help; asking is slow."""


def plan_scale_up(
    cluster: ClusterState, projected: ProjectedCluster, *, resting: Mapping[str, Backoff], explained: bool = True
) -> ScaleUp:
    """For single pods. The new Nodes with their pods are in ``projected`` afterwards. Not ``explained``: pods are left
    without why.
    """
    growth = Growth(cluster, projected, resting)
    growth.run(projected.unschedulable)
    return growth.result(MOST_EXPLAINED if explained else 0)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """Groups among which new Nodes are shared out, and how many Nodes they may still get together."""

    groups: list[NodeGroup]
    headroom: int

    @classmethod
    def of(cls, groups: list[NodeGroup]) -> _Sharing:
        return cls(groups, sum(group.headroom for group in groups))


@dataclass(slots=True)
class _Step:
    """What many groups ask for in one step, in which no size changes."""

    sharing: dict[Alike, _Sharing] = field(default_factory=dict)
    made: Counter[Key] | None = None
    """MachineClass → Nodes of all groups that are made of it."""


class Growth:
    """Groups that grow, one choice after the other; what was added stays added."""

    def __init__(self, cluster: ClusterState, projected: ProjectedCluster, resting: Mapping[str, Backoff]) -> None:
        self._cluster = cluster
        self._projected = projected
        self._resting = resting
        self._allowance = ResourceLimits(cluster, projected)
        self._groups = {state.id: state.group for state in (*cluster.all_groups, *cluster.own.in_place)}
        self._states = {state.id: state for state in cluster.all_groups}
        self._own_states = [state for state in cluster.all_groups if state.making is not None]
        self.left: dict[PodClass, list[PodInfo]] = {}
        self._over: dict[PodClass, list[PodInfo]] = {}
        self._gangs_left: list[Left] = []
        self._for_gangs: dict[str, dict[str, int]] = {}
        self._added: Counter[str] = Counter()
        self._asked: Sequence[GroupState] = ()
        self._useless: set[str] = set()
        self._helped: list[Helped] = []
        self._skipped: dict[str, str] = {}
        self._estimates = Estimates(projected)
        self._dealt_pods: Mapping[tuple[str, str], PodInfo] = {}
        shares = {s.id: s.template for s in cluster.groups if s.template is not None and _shares(s)}
        self._alike = AlikeGroups(shares if cluster.options.growth.balance else {})
        self._step = _Step()

    def run(self, groups: Iterable[Group]) -> None:
        """Until no group helps any of the pods any more."""
        dealt = self._dealt(groups)
        self._dealt_pods = dealt.as_they_are
        self._grow(dealt.groups)
        if dealt.as_they_are or dealt.rest:
            left = dealt.undone(itertools.chain.from_iterable(self.left.values()), self._projected.snapshot.classes)
            self._grow(self._seated(left))
        self._dealt_pods = {}
        for pod_class, pods in self.left.items():
            self._over.setdefault(pod_class, []).extend(pods)
        self.left = {}

    def _grow(self, groups: Iterable[Group]) -> None:
        self.take(groups)
        while self.left and self.step():
            pass

    def _dealt(self, groups: Iterable[Group]) -> Dealt:
        """Pods that are to be spread over zones ask for theirs."""
        growing = [state for state in self._cluster.all_groups if not self._hindrance(state)]
        templates = [state.template for state in growing if state.template is not None and state.zone_order is None]
        uncertain = {state.zone_order.label for state in growing if state.zone_order is not None}
        return deal(groups, self._projected.snapshot, templates, uncertain=uncertain)

    def _seated(self, groups: Iterable[Group]) -> list[Group]:
        """Those that are still left once what is left has been tried on the Nodes that were added."""
        left = []
        for group in groups:
            done = place(self._projected.snapshot, group.pod_class, len(group)).count
            if done < len(group):
                left.append(Group(group.pod_class, group.pods[done:]))
        return left

    def take(self, groups: Iterable[Group]) -> None:
        self.left, self._asked = {}, self._cluster.all_groups
        for group in groups:
            self.left.setdefault(group.pod_class, []).extend(group.pods)
        self._estimates.expect(self.left)

    def run_apart(self, group: Group, *, explained: bool) -> Apart:
        """As ``run``, for what is no pod: neither those that get room nor those that don't are in the result."""
        mark, helped = self.mark(), len(self._helped)
        self.take([group])
        while self.left and self.step():
            pass
        short = sum(map(len, self.left.values()))
        found = Apart(self.added_since(mark), short, self.refusals(group.pod_class) if short and explained else {})
        del self._helped[helped:]
        self.left = {}
        return found

    def mark(self) -> tuple[Any, ...]:
        """To go back to with ``back``; the snapshot is the caller's to fork."""
        return dict(self._groups), Counter(self._added), len(self._helped), self._allowance.copy(), dict(self._skipped)

    def back(self, mark: tuple[Any, ...]) -> None:
        groups, added, helped, allowance, skipped = mark
        self._groups, self._added, self._allowance, self._skipped = groups, added, allowance, skipped
        del self._helped[helped:]
        self.left = {}

    def added_since(self, mark: tuple[Any, ...]) -> dict[str, int]:
        return {name: count - mark[1][name] for name, count in self._added.items() if count > mark[1][name]}

    def got(self, gang: str, added: Mapping[str, int]) -> None:
        """All of the gang has room now."""
        self._for_gangs[gang] = dict(added)

    def waits(self, left: Left) -> None:
        """A gang that gets nothing."""
        self._gangs_left.append(left)

    def step(self) -> bool:
        """Grow one group, and those that share with it; False if none helps."""
        self._estimates.look(self.left)
        self._step = _Step()
        options = [option for state in self._asked if (option := self._option(state)) is not None]
        if self._useless:
            self._asked, self._useless = [each for each in self._asked if each.id not in self._useless], set()
        choosing = self._cluster.options.growth.choosing
        sizes = Sizes(())
        if "price" in choosing.names:
            sizes = self._sizes(options)
            options = [replace(option, cost=sizes.cost(option.group, option.estimate)) for option in options]
        chosen = choose(options, replace(choosing, seed=choosing.seed or format_time(self._cluster.now)))
        if chosen is None:
            return False
        by_group = {option.group: option for option in options}
        parts = [replace(by_group[name], estimate=part) for name, part in sizes.split(chosen.group, chosen.estimate)]
        if not [part for part in parts if self._add(part)]:
            self._take(chosen)
        return True

    def _sizes(self, options: Iterable[Option]) -> Sizes:
        """Groups whose Nodes may stand in for larger ones: those that are there, and get their Nodes one by one."""
        found = []
        for option in options:
            state, price = self._states[option.group], option.price
            if price is None or option.new or option.in_zone_order or state.is_whole or state.zone_order is not None:
                continue
            like = self._estimates.like_but_for_size(option.node)
            found.append(Size(option.group, option.node, price, like, self._estimates.daemons_on(option.node)))
        return Sizes(found)

    def _add(self, chosen: Option) -> bool:
        """Take a part of what was chosen, unless a limit is against it: then its pods are left for the next step."""
        state = self._states[chosen.group]
        self._step = _Step()
        allowed, _ = self._allowance.nodes(chosen.node)
        fits = chosen.estimate.nodes <= min(allowed, self._headroom(state, chosen.node))
        if fits:
            self._take(chosen)
        return fits

    def _take(self, chosen: Option) -> None:
        shared = self._shared(chosen)
        self._commit(chosen, alone=shared.keys() == {chosen.group})
        for name, nodes in shared.items():
            self._added[name] += nodes
            self._groups[name] = replace(self._groups[name], replicas=self._groups[name].replicas + nodes)
        self._allowance.take(chosen.node, chosen.estimate.nodes)
        self._helped.append(self._help(chosen, shared))

    def result(self, explained: int) -> ScaleUp:
        left = list(self._gangs_left)
        for position, (pod_class, pods) in enumerate(self._over.items()):
            left.append(Left(tuple(pods), self.refusals(pod_class) if position < explained else {}))
        return ScaleUp(
            added=dict(self._added),
            helped=tuple(self._helped),
            left=tuple(left),
            skipped=self._skipped,
            for_gangs=self._for_gangs,
        )

    def _option(self, state: GroupState) -> Option | None:
        template = state.template
        why = self._hindrance(state)
        if why or template is None:
            self._skipped[state.id] = why
            return None
        free = self._headroom(state, template)
        allowed, why = self._allowance.nodes(template)
        if not allowed or (state.is_whole and allowed < free):
            self._skipped[state.id] = f"it grows by {free} Nodes or not at all: {why}" if state.is_whole else why
            return None
        zone_order = state.zone_order
        found = self._estimates.of(template, min(free, allowed), unknown=zone_order.label if zone_order else "")
        if zone_order is None and not found.concerns:
            self._useless.add(state.id)
            return None
        if state.is_whole and found.nodes:
            found = filled_up(found, free)
        in_zone_order = zone_order is not None and not found.nodes
        if zone_order is not None and in_zone_order:
            limit = min(self._groups[state.id].headroom, free, allowed, _MOST_IN_TURN)
            found = self._estimated_in_order(template, zone_order, domains=self._next(state, limit))
        price = self._cluster.options.growth.choosing.price(state.id, template)
        return (
            Option(
                group=state.id,
                node=template,
                estimate=found,
                price=price,
                in_zone_order=in_zone_order,
                new=state.is_new,
            )
            if found.nodes
            else None
        )

    def _estimated_in_order(self, template: NodeInfo, zone_order: UpcomingZones, *, domains: Sequence[str]) -> Estimate:
        nodes = {domain: zone_order.node(template, domain) for domain in domains}
        kinds = {domain: (node, self._estimates.daemons_on(node)) for domain, node in nodes.items()}
        coming, pods = [kinds[domain] for domain in domains], self._estimates.choosy(zone_order.label)
        return estimate_in_order(self._projected.snapshot, coming, pods, len(zone_order.open))

    def _next(self, state: GroupState, number: int) -> list[str]:
        """Failure domains of the Nodes that the group gets next, in their order; none if that is not known."""
        return state.zone_order.after(state.unmade + self._added[state.id], number) if state.zone_order else []

    def _commit(self, chosen: Option, *, alone: bool) -> None:
        """Add the Nodes to the picture. ``alone``: all are of this group, so that it is known where each will be."""
        state, found, snapshot = self._states[chosen.group], chosen.estimate, self._projected.snapshot
        domains = self._next(state, found.nodes) if alone else []
        if not domains:
            commit(snapshot, chosen.node, found, self._estimates.coming_with(chosen.node, found.placed))
            return
        for filled in found.filled:
            here, domains = Counter(domains[: filled.copies]), domains[filled.copies :]
            for domain, copies in here.items():
                node = node_at(state, chosen.node, domain)
                part = replace(found, filled=(replace(filled, copies=copies),))
                commit(snapshot, node, part, self._estimates.coming_with(node, found.placed))

    def _hindrance(self, state: GroupState) -> str:
        rest = self._resting.get(state.id)
        if rest is not None and rest.is_on(self._cluster.now):
            return f"it rests until {format_time(rest.until)}: {rest.why}"
        if state.template is None:
            return f"nobody knows what its Nodes would be like: {state.problem}"
        group = self._groups[state.id]
        if not group.headroom:
            return f"it has its maximum of {group.bounds.max_size} Nodes"
        return self._own_limits(state)

    def refusal(self, state: GroupState) -> str:
        """Why the group may not get one Node more, whether or not that would help; "" if it may."""
        why = self._hindrance(state)
        if why or state.template is None:
            return why
        allowed, limit = self._allowance.nodes(state.template)
        return "" if allowed else limit

    def _own_limits(self, state: GroupState) -> str:
        """Why no more Nodes of its MachineClass, or no more groups, are made; "" for groups of people."""
        if state.making is None:
            return ""
        machine_class = state.making.machine_class
        limit = self._cluster.own.class_limits.get(machine_class, 0)
        if not limit:
            return f"MachineClass {machine_class} is not offered any more"
        if self._class_left(machine_class) <= 0:
            return f"groups of MachineClass {machine_class} have {limit} Nodes, as many as it offers"
        most = self._cluster.options.growth.own_groups
        is_new = state.is_new and not self._groups[state.id].replicas
        if is_new and self._own_groups() >= most:
            return f"there are {most} groups of the autoscaler's making, and no more may be made"
        return ""

    def _class_left(self, machine_class: Key) -> int:
        """Nodes that groups made of the class may still have."""
        if self._step.made is None:
            self._step.made = Counter()
            for state in self._own_states:
                assert state.making is not None
                self._step.made[state.making.machine_class] += self._groups[state.id].replicas
        return self._cluster.own.class_limits.get(machine_class, 0) - self._step.made[machine_class]

    def _own_groups(self) -> int:
        return sum(1 for state in self._own_states if not state.is_new or self._groups[state.id].replicas)

    def _headroom(self, state: GroupState, template: NodeInfo) -> int:
        """Nodes that it may still get, with those that share."""
        free = self._sharing(state, template).headroom
        return free if state.making is None else min(free, self._class_left(state.making.machine_class))

    def _sharing(self, state: GroupState, template: NodeInfo) -> _Sharing:
        """The group itself and those among which its new Nodes are shared out."""
        if not self._cluster.options.growth.balance or not _shares(state):
            return _Sharing.of([self._groups[state.id]])
        others = self._alike.of(template)
        found = self._step.sharing.get(others)
        if found is None:
            free = (name for name in others.names if not self._hindrance(self._states[name]))
            found = self._step.sharing[others] = _Sharing.of([self._groups[name] for name in free])
        return found

    def _shared(self, chosen: Option) -> dict[str, int]:
        if chosen.in_zone_order:
            return {chosen.group: chosen.estimate.nodes}
        return balance(self._sharing(self._states[chosen.group], chosen.node).groups, chosen.estimate.nodes)

    def _help(self, chosen: Option, shared: Mapping[str, int]) -> Helped:
        """The pods that get room. Which Node is for which is left open in a group over several failure domains."""
        seated: dict[PodClass, list[PodInfo]] = {}
        for pod_class, count in chosen.estimate.placed.items():
            pods = self.left[pod_class]
            seated[pod_class] = [self._dealt_pods.get((pod.namespace, pod.name), pod) for pod in pods[:count]]
            self.left[pod_class] = pods[count:]
        self.left = {pod_class: pods for pod_class, pods in self.left.items() if pods}
        in_domains = any(self._states[name].zone_order is not None for name in shared)
        nodes = () if in_domains else tuple(planned(shared, chosen.estimate, seated))
        return Helped(chosen.group, tuple(itertools.chain.from_iterable(seated.values())), nodes)

    def refusals(self, pod_class: PodClass) -> dict[str, str]:
        """Why each group does not help: what hinders it, else what its Nodes lack."""
        asked = Refusals(self._projected, pod_class)
        found = {}
        for state in self._cluster.all_groups:
            template = state.template
            why = self._skipped.get(state.id, "")
            if not why and template is not None:
                why = asked.of(node_at(state, template, next(iter(self._next(state, 1)), "")))
            found[state.id] = why or "no room within what it may grow"
        return found


def _shares(state: GroupState) -> bool:
    """Whether its new Nodes may be shared out among groups that are alike."""
    return not state.is_whole and state.making is None


def node_at(state: GroupState, template: NodeInfo, domain: str) -> NodeInfo:
    """A Node of the group in that failure domain."""
    return state.zone_order.node(template, domain) if state.zone_order else template
