"""Objects → ClusterState: groups with their Machines, Nodes that take pods, pods that are there, pods that wait.

What can't be read is named and left out with all that depends on it; it never stops the rest.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api import names
from api.autoscaling import GroupOptions
from controllers.autoscaler import templates
from controllers.autoscaler.capacity import Capacity, GroupNode, read_capacity
from controllers.autoscaler.expected_pods import DEFAULT_SCHEDULER, OwnerObjects, expected_pods
from controllers.autoscaler.gangs import Gang, read_gangs
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.objects import GroupObjects as GroupObjects  # noqa: PLC0414 - readers import them from here
from controllers.autoscaler.objects import Objects as Objects  # noqa: PLC0414 - likewise
from controllers.autoscaler.objects import WorkloadObjects as WorkloadObjects  # noqa: PLC0414 - likewise
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.requests import Request, consumed_by, read_requests
from controllers.autoscaler.templates import Starting, Startup
from controllers.autoscaler.upcoming_zones import UpcomingZones, upcoming_zones_of
from controllers.kernel import machine_facts
from controllers.kernel.conditions import find, is_true, parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.node_policy import owner_uid
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import Key, Obj, annotations_of, is_deleting, key_of, labels_of, spec_of, uid_of
from controllers.scaling.node_group import BadGroup, NodeGroup, ScaledGroup, discover, is_rolling, with_options
from controllers.scaling.resize import Scaler
from controllers.scheduling.demand import ShapeError
from controllers.scheduling.drainability import Budget, read_budget
from controllers.scheduling.reading import Reader
from controllers.scheduling.shapes import NodeInfo, PodInfo, PodKind
from providers.base.contract import Shape

CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
DAWN = datetime.min.replace(tzinfo=UTC)
LOOKED_AT_WITHIN = timedelta(minutes=1)
"""What kube-scheduler has not looked at after so long, it leaves alone."""


@dataclass(frozen=True, slots=True)
class Making:
    """``body``: the MachineDeployment that is to be made of the class, without a size; None: it is there."""

    machine_class: Key
    body: Obj | None = None


@dataclass(frozen=True, slots=True)
class GroupState(ScaledGroup):
    """``joined``: names of its Ready Nodes that stay. ``template`` None: ``problem`` says why.

    ``starting``: those of ``joined`` that can't take their pods yet. ``promised``: devices → how many each Node has.
    """

    joined: frozenset[str] = frozenset()
    starting: Mapping[str, Starting] = field(default_factory=dict)
    promised: Mapping[str, int] = field(default_factory=dict)
    template: NodeInfo | None = None
    problem: str = ""
    options: GroupOptions = field(default_factory=GroupOptions)
    patience: timedelta = timedelta(minutes=15)
    """How long its Machines, and its Nodes that start, are waited for."""
    zone_order: UpcomingZones | None = None
    """Where its next Machines go, if they go to several failure domains; ``template`` is nowhere then."""
    making: Making | None = None
    """Of a group that the autoscaler made, or could make; None: a person's."""

    @property
    def is_whole(self) -> bool:
        """It has all of its Nodes or none: it grows to its maximum and goes at once."""
        return bool(self.options.zero_or_max)

    @property
    def marked(self) -> tuple[MachineFacts, ...]:
        """Those that the autoscaler marked and that are not going yet."""
        return self.marked_by(Scaler.AUTOSCALER)

    @property
    def unsettled(self) -> str:
        """Why the autoscaler can't say which Machines of the group go; "" if it can."""
        return next(iter(self.obstacles(Scaler.AUTOSCALER).values()), "")

    @property
    def is_new(self) -> bool:
        """It is not there, and could be made."""
        return self.making is not None and self.making.body is not None

    def awaited(self, now: datetime) -> frozenset[str]:
        """Names of its Nodes that have joined and may still take their time to start."""
        return frozenset(name for name, node in self.starting.items() if not node.is_late(now))

    def is_going(self, machine: MachineFacts) -> bool:
        return machine.deleting or (machine.annotated and self.surplus > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """``total`` counts Nodes too that are not Ready or on their way out, ``ready`` those that are Ready, ``unready``
    those that should be by now. ``followed_since``: since when Nodes have been seen to come without an outage.
    ``unreachable``: why the cluster can't be seen now, so that all else is old or empty; "" if it can.
    """

    total: int = 0
    ready: int = 0
    unready: int = 0
    followed_since: datetime = DAWN
    unreachable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """``nodes`` take pods, ``pods`` are on them, ``pending`` found no place. ``protected``: Node → why it must stay.
    ``starting``: names of ``nodes`` that are shown as they will be, and take no pods yet.

    ``daemons``: pods that come with every Node that they fit, one of each DaemonSet. ``namespaces``: name → labels.
    ``gangs``: those of ``pending`` that are of use only together.
    """

    nodes: tuple[NodeInfo, ...] = ()
    starting: frozenset[str] = frozenset()
    pods: tuple[PodInfo, ...] = ()
    pending: tuple[PodInfo, ...] = ()
    daemons: tuple[PodKind, ...] = ()
    budgets: tuple[Budget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    protected: Mapping[str, str] = field(default_factory=dict)
    gangs: tuple[Gang, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """``bad``: what would be a group but for a fault. ``unreadable``: object → what is wrong with it."""

    bad: tuple[BadGroup, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnGroups:
    """``candidates``: groups that could be made, for pending pods; ``in_place``: in place of Nodes that are there.
    ``class_limits``: MachineClass → Nodes that all groups which are made of it may have together.
    """

    candidates: tuple[GroupState, ...] = ()
    in_place: tuple[GroupState, ...] = ()
    class_limits: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """All that a size depends on. ``capacity``: what is asked for beside pods. ``own``: groups of its own making."""

    now: datetime
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    memory: Memory = field(default_factory=Memory)
    groups: tuple[GroupState, ...] = ()
    workload: Workload = Workload()
    health: NodeHealth = NodeHealth()
    capacity: Capacity = field(default_factory=Capacity)
    faults: Faults = Faults()
    own: OwnGroups = OwnGroups()

    @property
    def all_groups(self) -> tuple[GroupState, ...]:
        """Those that are there, then those that could be made."""
        return (*self.groups, *self.own.candidates)

    @property
    def requests(self) -> tuple[Request, ...]:
        """ProvisioningRequests in their order."""
        return self.capacity.requests

    @property
    def bad(self) -> tuple[BadGroup, ...]:
        return self.faults.bad

    @property
    def unreadable(self) -> Mapping[str, str]:
        return self.faults.unreadable


def read_cluster(
    objects: Objects, *, now: datetime, options: AutoscalerOptions, memory: Memory, health: NodeHealth = NodeHealth()
) -> ClusterState:
    """``health``: what only the caller knows of it; Nodes are counted here."""
    reading = _Reading(objects.workload, objects.reader, now=now)
    groups, bad = _groups(objects, options)
    ready = {node["metadata"]["name"]: node for node in objects.workload.nodes if _is_ready(node)}
    owners = _Owners(objects)
    states = [
        replace(owners.state(group, ready), options=own, patience=_patience(own, options)) for group, own in groups
    ]
    going = {m.node_name for state in states for m in state.machines if m.node_name and state.is_going(m)}
    pods, pending = reading.pods(going, staying=ready.keys() - going, options=options)
    nodes = reading.nodes(name for name in ready if name not in going)
    there = {node.name: node for node in nodes}
    bodies = {uid_of(body): body for body in (*objects.groups.machine_deployments, *objects.groups.machine_sets)}
    taints, followed_since = options.growth.startup_taints, health.followed_since
    startup = Startup(nodes=there, bodies=ready, now=now, followed_since=followed_since, taints=taints)
    shapes = objects.groups.shapes
    states = [
        _with_template(state, bodies[state.group.ref.uid], shape=shapes.get(state.id), startup=startup)
        for state in states
    ]
    awaited = {name: state for state in states for name in state.awaited(now)}
    unready = _unready(objects.workload.nodes, states, now=now, options=options)
    return ClusterState(
        now=now,
        options=options,
        memory=memory,
        groups=tuple(
            _with_zones(state, objects, sets=owners.sets(state.group), ready=ready, now=now) for state in states
        ),
        workload=Workload(
            nodes=tuple(_as_started(node, startup=startup, awaited=awaited) for node in nodes),
            starting=frozenset(awaited),
            pods=tuple(pod for pod in pods if pod.node in there),
            pending=(*pending, *reading.expected(objects.owners, options)),
            daemons=reading.daemons(),
            budgets=tuple(read_budget(budget) for budget in objects.workload.budgets),
            namespaces={each["metadata"]["name"]: labels_of(each) for each in objects.workload.namespaces},
            protected={name: why for name, node in ready.items() if (why := _protection(node))},
            gangs=_gangs(objects.workload, pending=pending, nodes=nodes),
        ),
        health=replace(health, total=len(objects.workload.nodes), ready=len(ready), unready=unready),
        capacity=_capacity(objects, states, ready=ready),
        faults=Faults(bad=bad, unreadable=reading.unreadable),
    )


def _as_started(node: NodeInfo, *, startup: Startup, awaited: Mapping[str, GroupState]) -> NodeInfo:
    return startup.shown(node.name, awaited[node.name].promised) if node.name in awaited else node


def _gangs(workload: WorkloadObjects, *, pending: Iterable[PodInfo], nodes: Iterable[NodeInfo]) -> tuple[Gang, ...]:
    if not any(workload.pod_groups.values()):
        return ()
    return read_gangs(workload.pod_groups, workload.pods, pending=pending, nodes=nodes)


def _capacity(objects: Objects, states: Iterable[GroupState], *, ready: Mapping[str, Obj]) -> Capacity:
    requests = _requests(objects)
    if not objects.buffers.buffers and not objects.quotas:
        return Capacity(requests=requests)
    bodies = {uid_of(body): body for body in (*objects.groups.machine_deployments, *objects.groups.machine_sets)}
    nodes = (
        GroupNode(state.id, bodies[state.group.ref.uid], ready.get(min(state.joined, default=""))) for state in states
    )
    return read_capacity(objects, nodes, requests=requests)


def _requests(objects: Objects) -> tuple[Request, ...]:
    if not objects.requests:
        return ()
    return read_requests(objects.requests, objects.pod_templates, pods=objects.workload.pods, reader=objects.reader)


def _groups(
    objects: Objects, options: AutoscalerOptions
) -> tuple[list[tuple[NodeGroup, GroupOptions]], tuple[BadGroup, ...]]:
    """Groups with what each wants for itself, and what is wrong with the others."""
    deployments, sets = objects.groups.machine_deployments, objects.groups.machine_sets
    discovered, bad = discover(deployments, sets, discovery=options.discovery)
    bodies = {uid_of(body): body for body in (*deployments, *sets)}
    willing, requested, unwilling = with_options(discovered, bodies)
    return [(group, requested[group.id]) for group in willing], (*bad, *unwilling)


def _patience(own: GroupOptions, options: AutoscalerOptions) -> timedelta:
    return options.growth.provision_time if own.provision_time is None else own.provision_time


def _unready(nodes: Iterable[Obj], states: Iterable[GroupState], *, now: datetime, options: AutoscalerOptions) -> int:
    """Nodes that are not Ready, but for those that have still time to become it."""
    patience = {m.node_name: each.patience for each in states for m in each.machines if m.node_name}

    def is_starting(node: Obj) -> bool:
        created = parse_time(node["metadata"].get("creationTimestamp"))
        own = patience.get(node["metadata"]["name"], options.growth.provision_time)
        return created is not None and now - created < own

    return sum(1 for node in nodes if not _is_ready(node) and not is_starting(node))


class _Reading:
    """Reads Nodes and pods. A Node with a pod that can't be read takes no pods: nobody knows its room."""

    def __init__(self, workload: WorkloadObjects, reader: Reader, *, now: datetime) -> None:
        self._workload = workload
        self._now = now
        self._reader = reader
        self._reader.look(workload.book)
        self._unresolved: set[str] = set()
        self.unreadable: dict[str, str] = {}

    def pods(
        self, going: Container[str], *, staying: Container[str], options: AutoscalerOptions
    ) -> tuple[tuple[PodInfo, ...], tuple[PodInfo, ...]]:
        """Those that are on Nodes, and those that look for one; pods of Nodes that go will. A pod for which others are
        evicted from a Node that stays is on it. Pods that take room of a ProvisioningRequest are left to the request.
        """
        expendable_below, asks = options.growth.expendable_below, options.provisioning_requests
        seated, coming, waiting = [], [], []
        for body, shape in self._reader.pods(self._workload.pods):
            if isinstance(shape, ShapeError):
                self._leave_out(body, shape)
                continue
            if shape.kind.keeping.finished:
                continue
            if shape.node in going:
                if _comes_again(shape):
                    coming.append(shape._replace(node=""))
            elif shape.node:
                seated.append(shape)
            elif (nominated := str((body.get("status") or {}).get("nominatedNodeName") or "")) in staying:
                seated.append(shape._replace(node=nominated))
            elif asks and consumed_by(body):
                continue
            elif shape.kind.priority >= expendable_below:
                waiting.append((body, shape))
        at_work = (DEFAULT_SCHEDULER,) if options.growth.proactive else ()
        return tuple(seated), (*coming, *_look_for_nodes(waiting, self._now, at_work=at_work))

    def expected(self, owners: OwnerObjects, options: AutoscalerOptions) -> tuple[PodInfo, ...]:
        """Pods that are not made yet."""
        if not options.growth.proactive:
            return ()
        pods = self._reader.pods(self._workload.pods)
        return expected_pods(owners, pods, reader=self._reader, now=self._now, options=options)

    def nodes(self, wanted: Iterable[str]) -> tuple[NodeInfo, ...]:
        chosen = set(wanted) - self._unresolved
        drivers = {csi_node["metadata"]["name"]: csi_node for csi_node in self._workload.csi_nodes}
        shapes = []
        for body in self._workload.nodes:
            name = body["metadata"]["name"]
            if name in chosen:
                try:
                    shapes.append(self._reader.node(body, drivers.get(name)))
                except ShapeError as error:
                    self.unreadable[f"Node {name}"] = str(error)
        return tuple(sorted(shapes, key=lambda shape: shape.name))

    def daemons(self) -> tuple[PodKind, ...]:
        found = []
        for body in self._workload.daemon_sets:
            template = spec_of(body).get("template") or {}
            meta = {**(template.get("metadata") or {}), "name": body["metadata"]["name"]}
            pod = {**template, "metadata": {**meta, "namespace": key_of(body).namespace}}
            try:
                found.append(self._reader.pod(pod).kind)
            except ShapeError as error:
                self.unreadable[f"DaemonSet {key_of(body)}"] = f"spec.template.{error}"
        return tuple(found)

    def _leave_out(self, body: Obj, error: ShapeError) -> None:
        if (body.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            self.unreadable[f"Pod {key_of(body)}"] = str(error)
            self._unresolved.add(str(spec_of(body).get("nodeName") or ""))


class _Owners:
    """Machines and MachineSets by their owners, looked up once for all groups."""

    def __init__(self, objects: Objects) -> None:
        self._sets: dict[tuple[str, str], list[Obj]] = {}
        self._machines: dict[tuple[str, str], list[MachineFacts]] = {}
        for found in objects.groups.machine_sets:
            for uid in {uid_of(found), controller_uid(found)}:
                self._sets.setdefault((key_of(found).namespace, uid), []).append(found)
        owners = {node["metadata"]["name"]: owner_uid(node) for node in objects.workload.nodes}
        for machine in map(machine_facts.read, objects.groups.machines):
            if owners.get(machine.node_name) not in {None, "", machine.uid}:
                # A user who may write a Machine's status can name any Node there, so the Node's own record decides.
                machine = replace(machine, node_name="")  # noqa: PLW2901
            self._machines.setdefault((machine.key.namespace, machine.owner_uid), []).append(machine)

    def sets(self, group: NodeGroup) -> Sequence[Obj]:
        return self._sets.get((group.ref.key.namespace, group.ref.uid), ())

    def state(self, group: NodeGroup, ready: Container[str]) -> GroupState:
        sets, namespace = self.sets(group), group.ref.key.namespace
        machines = [machine for found in sets for machine in self._machines.get((namespace, uid_of(found)), ())]
        machines.sort(key=lambda machine: machine.key)
        state = GroupState(group, tuple(machines), is_rolling(sets))
        joined = (m.node_name for m in state.machines if m.node_name in ready and not state.is_going(m))
        return replace(state, joined=frozenset(joined))


def _with_template(state: GroupState, body: Obj, *, shape: Shape | None, startup: Startup) -> GroupState:
    """With its Nodes that are still starting. One that has started is a better picture of the next one."""
    promised = templates.promised_devices(body, shape)
    joined = [machine for machine in state.machines if machine.node_name in state.joined]
    starting = startup.of(joined, promised, state.patience)
    state = replace(state, promised=promised, starting=starting)
    in_order = sorted(state.joined, key=lambda name: (name in starting, name))
    real = [node for name in in_order if (node := startup.nodes.get(name)) is not None and not node.unschedulable]
    if real:
        new = templates.from_node(real[0], state.id, promised=promised, startup_taints=startup.taints)
        return replace(state, template=new)
    try:
        new = templates.from_nothing(body, state.id, shape=shape, startup_taints=startup.taints)
        return replace(state, template=new)
    except ShapeError as error:
        return replace(state, problem=str(error))


def _with_zones(
    state: GroupState, objects: Objects, *, sets: Sequence[Obj], ready: Mapping[str, Obj], now: datetime
) -> GroupState:
    """Not for a group of which something else is under way, or whose own words say where its Nodes are."""
    shape, domains = objects.groups.shapes.get(state.id), objects.groups.domains.get(state.id, ())
    if shape is None or not domains or state.template is None or state.is_whole or state.surplus or state.rolling:
        return state
    label = shape.failure_domain_label
    zone_order = upcoming_zones_of(domains, label, machines=state.machines, sets=sets, now=now)
    joined = (machine for machine in state.machines if machine.node_name in state.joined)
    zones_known = all(labels_of(ready[machine.node_name]).get(label) == machine.failure_domain for machine in joined)
    if zone_order is None or not zones_known or (not state.joined and label in state.template.labels):
        return state
    return replace(state, template=zone_order.nowhere(state.template), zone_order=zone_order)


def _comes_again(pod: PodInfo) -> bool:
    keeping = pod.kind.keeping
    return keeping.replicated and not keeping.daemon_set and not keeping.mirror and not pod.kind.terminating


def _look_for_nodes(pods: Iterable[tuple[Obj, PodInfo]], now: datetime, *, at_work: Iterable[str]) -> list[PodInfo]:
    """Those for which kube-scheduler found none, and young ones that it has yet to look at, if it looks at all: decided
    on 300 of 1000 pods, Nodes would be chosen as if the others did not come. All are tried on Nodes that are there.

    ``at_work``: schedulers that look, whether or not they have found no Node for some pod.
    """
    found, unseen, schedulers = [], [], set[Any](at_work)
    for body, pod in pods:
        if is_unschedulable(body):
            found.append(pod)
            schedulers.add(spec_of(body).get("schedulerName"))
        elif not is_deleting(body) and find((body.get("status") or {}).get("conditions"), "PodScheduled") is None:
            unseen.append((body, pod))
    return found + [pod for body, pod in unseen if _is_next(body, pod, schedulers=schedulers, now=now)]


def _is_next(body: Obj, pod: PodInfo, *, schedulers: Container[Any], now: datetime) -> bool:
    created = parse_time(pod.created)
    return created is not None and now - created < LOOKED_AT_WITHIN and spec_of(body).get("schedulerName") in schedulers


def is_unschedulable(pod: Obj) -> bool:
    """Whether kube-scheduler has no Node for it.

    That of Kubernetes 1.37 has SchedulerError for all pods of a PodGroup while the cluster has no Node:
    PodGroupPostFilter of its plugin DynamicResources looks for what it keeps once a pod was tried on a Node
    (pkg/scheduler/framework/plugins/dynamicresources in 1.37.2).
    """
    if is_deleting(pod):
        return False
    condition: Mapping[str, Any] = find((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
    reason = condition.get("reason")
    no_node = reason == "Unschedulable" or (reason == "SchedulerError" and bool(spec_of(pod).get("schedulingGroup")))
    return no_node and condition.get("status") == "False"


def _is_ready(node: Obj) -> bool:
    return not is_deleting(node) and is_true((node.get("status") or {}).get("conditions"), "Ready")


def _protection(node: Obj) -> str:
    if annotations_of(node).get(names.SCALE_DOWN_DISABLED_ANNOTATION) == "true":
        return f'its annotation {names.SCALE_DOWN_DISABLED_ANNOTATION} is "true"'
    label = next((label for label in CONTROL_PLANE_LABELS if label in labels_of(node)), "")
    return f"it is a Node of the control plane ({label})" if label else ""
