"""View → Observed: the cluster, what is left alone and why, what is remembered and what was reported."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from api import names, yamltext
from controllers.autoscaler import expanders, memory, prices
from controllers.autoscaler.buffers import WORKLOADS, BufferObjects
from controllers.autoscaler.candidates import made_of, with_candidates
from controllers.autoscaler.cluster_state import (
    ClusterState,
    GroupObjects,
    NodeHealth,
    Objects,
    WorkloadObjects,
    read_cluster,
)
from controllers.autoscaler.expected_pods import OWNERS, OwnerObjects, wanted_by
from controllers.autoscaler.gangs import APIS
from controllers.autoscaler.gathering import arrivals_of
from controllers.autoscaler.offers import Offers, read_offers
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.templates import shape_of
from controllers.autoscaler.upcoming_zones import domain_order
from controllers.kernel.conditions import parse_time
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.ownership import cluster_of, controller_uid, paused_by
from controllers.kernel.refs import (
    CAPACITY_BUFFER,
    CAPACITY_QUOTA,
    CLUSTER,
    CONFIG_MAP,
    CSI_NODE,
    DAEMON_SET,
    LEASE,
    LIMIT_RANGE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    RESOURCE_QUOTA,
    STORAGE_CLASS,
    Key,
    Kind,
    Obj,
    Ref,
    key_of,
    ref_of,
    uid_of,
)
from controllers.kernel.view import ManagementCluster, ShapeUnknown, Unreachable, View
from controllers.scaling.node_group import BadGroup, NodeGroup, discover
from controllers.scheduling.reading import Reader
from controllers.scheduling.volumes import VolumeBook
from providers.base.contract import Shape

READS: tuple[Kind, ...] = (
    CONFIG_MAP,
    LEASE,
    CLUSTER,
    CSI_NODE,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    DAEMON_SET,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
)
"""All that ``observe`` looks at, itself or by asking where a group's Nodes live and what its hosts would be like."""
_OUTLIVES = 4
"""A Lease counts as held for so many times its duration: clocks differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is left alone. ``elsewhere`` and ``paused``: groups, with why. ``missing``: groups that an option names and
    that are not there.

    ``other_autoscaler``: the holder of the Cluster Autoscaler's Lease; "" if there is none. ``unresolved``: why it is
    not known yet in which cluster the Nodes of some group live. ``outage``: the cluster can't be seen now.
    """

    elsewhere: Mapping[Ref, str] = field(default_factory=dict)
    paused: Mapping[Ref, str] = field(default_factory=dict)
    missing: tuple[Key, ...] = ()
    other_autoscaler: str = ""
    unresolved: str = ""
    outage: Unreachable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """``unknown``: group id → why its provider did not say what its hosts would be like. ``awaiting``: groups whose
    providers have yet to say it.
    """

    unknown: Mapping[str, str] = field(default_factory=dict)
    awaiting: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What is written, and what was. ``memory`` and ``status``: the two ConfigMaps; None: not there yet.

    ``bodies``: by uid the MachineDeployments and MachineSets whose condition is ours to set; ``refs`` to all.
    ``misconfigured``: ConfigMaps that can't be used, with why.
    """

    memory: Obj | None = None
    status: Obj | None = None
    bodies: Mapping[str, Obj] = field(default_factory=dict)
    refs: Mapping[str, Ref] = field(default_factory=dict)
    misconfigured: Mapping[Ref, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that one reconcile depends on."""

    cluster: ClusterState
    scope: Scope = Scope()
    templates: Templates = Templates()
    records: Records = Records()
    arrivals: tuple[datetime, ...] = ()
    """When pods came that look for a Node (``gathering``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """What may be a group. ``bodies`` and ``refs`` by uid; ``bad``: what would be one but for a fault."""

    deployments: Sequence[Obj]
    sets: Sequence[Obj]
    bodies: Mapping[str, Obj]
    refs: Mapping[str, Ref]
    groups: tuple[NodeGroup, ...]
    bad: tuple[BadGroup, ...]

    def body(self, ref: Ref) -> Obj:
        return self.bodies[ref.uid]


def observe(view: View, options: AutoscalerOptions, *, reader: Reader | None = None) -> Observed:
    """``reader``: the one of the last reconcile, so that only pods that have changed since are read."""
    kept, status = (view.get(CONFIG_MAP, key) for key in (options.memory_key, options.status_key))
    options, misconfigured = _configured(options, view)
    candidates = _candidates(view, options)
    scope = _scope(view, options, candidates=candidates)
    apart = {ref.uid for ref in (*scope.elsewhere, *scope.paused)}
    reads = {g.id: shape_of(candidates.body(g.ref), view) for g in candidates.groups if g.ref.uid not in apart}
    unknown = {name: read for name, read in reads.items() if isinstance(read, ShapeUnknown)}
    shapes = {name: read for name, read in reads.items() if isinstance(read, Shape)}
    owners = _owners(view) if options.growth.proactive else OwnerObjects()
    objects = Objects(
        groups=_group_objects(view, candidates, apart=apart, shapes=shapes),
        workload=workload_of(view, options.growth.gangs),
        requests=view.all(PROVISIONING_REQUEST) if options.provisioning_requests else (),
        pod_templates=view.all(POD_TEMPLATE) if options.provisioning_requests else (),
        buffers=_buffers(view) if options.growth.buffers else BufferObjects(),
        owners=owners,
        quotas=view.all(CAPACITY_QUOTA) if options.growth.quotas else (),
        reader=reader or Reader(),
    )
    health = NodeHealth(
        followed_since=view.current_since(NODE) or view.now,
        unreachable=f"Cluster {options.cluster} can't be reached: {scope.outage.why}" if scope.outage else "",
    )
    remembered = memory.read(_data(kept, "memory"))
    cluster = read_cluster(objects, now=view.now, options=options, memory=remembered, health=health)
    offers = Offers()
    if options.growth.own_groups:
        offers = read_offers(view, options, left_alone=lambda body: _left_alone(body, view, options=options))
        made = {uid_of(body): key for body in candidates.deployments if (key := made_of(body)) is not None}
        taken = {key_of(body) for body in candidates.deployments}
        cluster = with_candidates(cluster, offers.offered, made=made, taken=taken)
    return Observed(
        cluster=cluster,
        scope=scope,
        templates=Templates(
            unknown={name: read.why for name, read in unknown.items()},
            awaiting=frozenset(name for name, read in unknown.items() if read.asked) | offers.awaiting,
        ),
        arrivals=_arrivals(view, owners, proactive=options.growth.proactive) if cluster.workload.pending else (),
        records=Records(
            memory=kept,
            status=status,
            bodies=_ours_to_speak_of(candidates.bodies, options.cluster, unreachable=scope.outage),
            refs=candidates.refs,
            misconfigured={**misconfigured, **offers.bad},
        ),
    )


def _buffers(view: View) -> BufferObjects:
    return BufferObjects(
        buffers=view.all(CAPACITY_BUFFER),
        pod_templates=view.all(POD_TEMPLATE),
        workloads={kind: view.all(kind) for kind in WORKLOADS},
        resource_quotas=view.all(RESOURCE_QUOTA),
        limit_ranges=view.all(LIMIT_RANGE),
    )


def _owners(view: View) -> OwnerObjects:
    return OwnerObjects(
        owners={kind: view.all(kind) for kind in OWNERS},
        resource_quotas=view.all(RESOURCE_QUOTA),
        limit_ranges=view.all(LIMIT_RANGE),
    )


def _arrivals(view: View, objects: OwnerObjects, *, proactive: bool) -> tuple[datetime, ...]:
    """Pods that are expected have come with their owners."""
    made = {
        uid_of(body): body["metadata"].get("creationTimestamp")
        for kind, bodies in objects.owners.items()
        for body in bodies
        if wanted_by(kind, body)
    }
    return arrivals_of(view.all(POD), owners=made, all_count=proactive)


def _left_alone(body: Obj, view: View, *, options: AutoscalerOptions) -> bool:
    """Whether a group would not be ours to scale if it were made."""
    return bool(_elsewhere(body, view, ours=options.cluster) or _paused(body, view))


def _candidates(view: View, options: AutoscalerOptions) -> _Candidates:
    deployments, sets = view.all(MACHINE_DEPLOYMENT), view.all(MACHINE_SET)
    refs = {uid_of(body): ref_of(MACHINE_DEPLOYMENT, body) for body in deployments}
    refs |= {uid_of(body): ref_of(MACHINE_SET, body) for body in sets}
    groups, bad = discover(deployments, sets, discovery=options.discovery)
    return _Candidates(
        deployments=deployments,
        sets=sets,
        bodies={uid_of(body): body for body in (*deployments, *sets)},
        refs=refs,
        groups=groups,
        bad=bad,
    )


def _scope(view: View, options: AutoscalerOptions, *, candidates: _Candidates) -> Scope:
    """The owners of faulty groups are reported too; pauses are read only for groups that would be scaled."""
    known = [*(group.ref for group in candidates.groups), *(each.ref for each in candidates.bad)]
    elsewhere = {ref: why for ref in known if (why := _elsewhere(candidates.body(ref), view, ours=options.cluster))}
    there = {ref.key for ref in candidates.refs.values()}
    return Scope(
        elsewhere=elsewhere,
        paused={g.ref: why for g in candidates.groups if (why := _paused(candidates.body(g.ref), view))},
        missing=tuple(sorted(options.discovery.given.keys() - there)),
        other_autoscaler=holder_of(view.get(LEASE, options.lease_key), view.now),
        unresolved=next((why for why in elsewhere.values() if why == _UNRESOLVED), ""),
        outage=view.workload if isinstance(view.workload, Unreachable) else None,
    )


def _group_objects(
    view: View, candidates: _Candidates, *, apart: Container[str], shapes: Mapping[str, Shape]
) -> GroupObjects:
    bodies = {group.id: candidates.body(group.ref) for group in candidates.groups if group.id in shapes}
    return GroupObjects(
        machine_deployments=[body for body in candidates.deployments if uid_of(body) not in apart],
        machine_sets=[body for body in candidates.sets if uid_of(body) not in apart],
        machines=view.all(MACHINE),
        shapes=shapes,
        domains=_domains(bodies, candidates.sets, view=view),
    )


def workload_of(view: View, gangs: Iterable[str] = ()) -> WorkloadObjects:
    """``gangs``: APIs of groups of pods."""
    return WorkloadObjects(
        nodes=view.all(NODE),
        pods=view.all(POD),
        daemon_sets=view.all(DAEMON_SET),
        budgets=view.all(POD_DISRUPTION_BUDGET),
        namespaces=view.all(NAMESPACE),
        csi_nodes=view.all(CSI_NODE),
        book=_book(view),
        pod_groups={name: view.all(APIS[name].kind) for name in gangs},
    )


def _domains(groups: Mapping[str, Obj], sets: Iterable[Obj], *, view: View) -> dict[str, tuple[str, ...]]:
    """Of groups that go over several, by id. Asked for those alone whose provider says what their hosts are like."""
    sets_of: dict[tuple[str, str], list[Obj]] = {}
    for body in sets:
        sets_of.setdefault((key_of(body).namespace, controller_uid(body)), []).append(body)
    found = {
        name: domain_order(body, sets_of.get((key_of(body).namespace, uid_of(body)), ()), view=view)
        for name, body in groups.items()
    }
    return {name: domains for name, domains in found.items() if domains}


_UNRESOLVED = "it is being found out where its Nodes live"


def _ours_to_speak_of(
    bodies: Mapping[str, Obj], ours: Key | None, *, unreachable: Unreachable | None
) -> Mapping[str, Obj]:
    """Of groups of other Clusters others speak; and of our own, if it may have its Nodes in the management cluster
    after all.
    """
    if ours is None:
        return bodies
    if unreachable is not None and not unreachable.secret:
        return {}
    return {uid: body for uid, body in bodies.items() if cluster_key_of(MACHINE_SET, body) == ours}


def _elsewhere(body: Obj, view: View, *, ours: Key | None) -> str:
    """Why its Nodes are not ours to count; "" if they are. ``ours`` None: those in the management cluster."""
    cluster = cluster_key_of(MACHINE_SET, body)
    if ours is not None:
        whose = f"of Cluster {cluster}" if cluster is not None else "of no Cluster"
        return "" if cluster == ours else f"it is {whose}, and this autoscaler is for Cluster {ours}"
    if cluster is None:
        return ""
    workload = view.of_cluster(cluster).workload
    if isinstance(workload, ManagementCluster):
        return ""
    if isinstance(workload, Unreachable) and (workload.finding_out or not workload.secret):
        return _UNRESOLVED
    return f"its Nodes live in a cluster of their own ({cluster}); it takes an autoscaler with --cluster={cluster}"


def _paused(body: Obj, view: View) -> str:
    return paused_by((body, cluster_of(body, view)))


def _book(view: View) -> VolumeBook:
    claims = {(key_of(claim).namespace, key_of(claim).name): claim for claim in view.all(PERSISTENT_VOLUME_CLAIM)}
    return VolumeBook(claims, _by_name(view, PERSISTENT_VOLUME), _by_name(view, STORAGE_CLASS))


def _by_name(view: View, kind: Kind) -> dict[str, Obj]:
    return {key_of(body).name: body for body in view.all(kind)}


def holder_of(lease: Obj | None, now: datetime) -> str:
    """Holder of the Lease; "" if it has expired or has none."""
    spec = (lease or {}).get("spec") or {}
    holder, renewed = spec.get("holderIdentity"), parse_time(spec.get("renewTime"))
    seconds = spec.get("leaseDurationSeconds")
    if not holder or renewed is None:
        return ""
    lasts = timedelta(seconds=_OUTLIVES * (seconds if isinstance(seconds, int) else 15))
    return str(holder) if now - renewed < lasts else ""


def _configured(options: AutoscalerOptions, view: View) -> tuple[AutoscalerOptions, dict[Ref, str]]:
    """The options with what ConfigMaps say of how to choose, and what is wrong with those."""
    choosing, wrong = options.growth.choosing, {}
    for expander, name, read in (
        ("priority", names.AUTOSCALER_PRIORITIES, _with_priorities),
        ("price", names.AUTOSCALER_PRICES, _with_prices),
    ):
        key = Key(options.namespace, name)
        compares = expander == "price" and options.consolidation.enabled
        config = view.get(CONFIG_MAP, key) if compares or expander in choosing.names else None
        if config is not None:
            choosing, problem = read(choosing, config)
        else:
            problem = f"the expander {expander} needs the ConfigMap {key}" if expander in choosing.names else ""
        if problem:
            wrong[Ref(CONFIG_MAP, key)] = problem
    return replace(options, growth=replace(options.growth, choosing=choosing)), wrong


def _with_priorities(choosing: expanders.Choosing, config: Obj) -> tuple[expanders.Choosing, str]:
    try:
        found = yamltext.load(_data(config, "priorities"))
        priorities = expanders.priorities_of(found if isinstance(found, Mapping) else {})
    except (yamltext.TextError, expanders.ExpanderError) as error:
        return choosing, f"data.priorities: {error}"
    return replace(choosing, priorities=priorities), ""


def _with_prices(choosing: expanders.Choosing, config: Obj) -> tuple[expanders.Choosing, str]:
    try:
        return replace(choosing, prices=prices.read_table(_data(config, "prices"))), ""
    except prices.PriceTableError as error:
        return choosing, f"data.prices: {error}"


def _data(config: Obj | None, key: str) -> str:
    found: Any = ((config or {}).get("data") or {}).get(key)
    return found if isinstance(found, str) else ""
