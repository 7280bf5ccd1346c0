"""View → Observed: one MachineHealthCheck, the Machines it looks at, and the replacements that are under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason, SetCondition
from api.remediation import TemplateKind
from controllers.kernel import machine_facts
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.node_policy import claimed_by_another
from controllers.kernel.ownership import cluster_name_of, cluster_of, find_controller, paused_by
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    Key,
    Obj,
    Ref,
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    ref_of,
    spec_of,
    uid_of,
)
from controllers.kernel.remediation import (
    NO_REMEDIATION_DATA,
    RemediationData,
    read_remediation_data,
    remediation_data_of,
)
from controllers.kernel.view import NAMESPACE, View
from controllers.machinehealthcheck.health import DAWN, Trust, Unhealthy, Unseen, Verdict, judge
from controllers.machinehealthcheck.node_source import OUTAGE, NodeSource, NodeSources
from controllers.machinehealthcheck.spec import HealthCheckSpec, parse_spec

READS = (MACHINE_HEALTH_CHECK, MACHINE, MACHINE_SET, CLUSTER, NODE)
ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Target:
    """A Machine that is looked at. ``place``: whose it took, and when that was; ``zone`` "" if it has none.

    ``deferred``: it is unhealthy, and its owner replaces none now, since a rollout does or nothing would come of it.
    """

    machine: MachineFacts
    verdict: Verdict
    zone: str = ""
    place: RemediationData = NO_REMEDIATION_DATA
    deferred: bool = False

    @property
    def name(self) -> str:
        return self.machine.key.name


@dataclass(frozen=True, slots=True)
class Observed:
    """``outage``: why nothing can be concluded now, "" if it can.

    ``leaving``: Machines selected for deletion that are going.
    ``unborn``: names of Machines that are gone or going and whose replacement does not exist yet.
    ``elsewhere``: Machines selected that an older check looks at.
    """

    body: Obj
    desired: HealthCheckSpec
    now: datetime
    outage: str = ""
    paused: str = ""
    targets: tuple[Target, ...] = ()
    leaving: frozenset[str] = frozenset()
    unborn: frozenset[str] = frozenset()
    elsewhere: int = 0

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_HEALTH_CHECK, self.body)

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.body.get("status")
        return status if isinstance(status, Mapping) else {}

    @property
    def unseen(self) -> str:
        """Whose Machines are left alone because their cluster is lost, "" if none are. No numbers: those move."""
        lost = sorted({target.verdict.why for target in self.targets if isinstance(target.verdict, Unseen)})
        return f"Machines are left alone: {'; '.join(lost)}" if lost else ""

    @property
    def sees_none(self) -> bool:
        return bool(self.targets) and all(isinstance(target.verdict, Unseen) for target in self.targets)


def observe(key: Key, view: View, allowed: frozenset[TemplateKind] = frozenset()) -> Observed | None:
    """None if the check is gone. ``allowed``: kinds of remediation templates."""
    body = view.get(MACHINE_HEALTH_CHECK, key)
    if body is None:
        return None
    desired = parse_spec(body, allowed)
    machines = view.current_since(MACHINE)
    if machines is None or not all(view.complete(kind) for kind in READS if kind != NODE):
        return Observed(body, desired, view.now, outage=OUTAGE)
    if desired.problem or is_deleting(body):
        return Observed(body, desired, view.now)
    sights = NodeSources(view)
    others = _older_checks(body, view)
    targets: list[Target] = []
    leaving: set[str] = set()
    elsewhere = 0
    for machine in selected(desired, key.namespace, view):
        if any(covers(other, machine) for other in others):
            elsewhere += 1
        elif is_deleting(machine):
            facts = machine_facts.read(machine)
            leaving.update({facts.key.name} if facts.selected_for_deletion else ())
        elif not _is_left_alone(machine, view):
            node_source = sights.of(machine)
            if node_source.outage:
                return Observed(body, desired, view.now, outage=node_source.outage)
            target = _target(machine, desired, machines, node_source)
            sick = isinstance(target.verdict, Unhealthy)
            targets.append(replace(target, deferred=_is_deferred(target.machine, view)) if sick else target)
    return Observed(
        body=body,
        desired=desired,
        now=view.now,
        paused=paused_by((body, _cluster(desired, key.namespace, view))),
        targets=tuple(targets),
        leaving=frozenset(leaving),
        unborn=_unborn((target.machine for target in targets), view),
        elsewhere=elsewhere,
    )


def covers(desired: HealthCheckSpec, machine: Obj) -> bool:
    """Whether a check with ``desired`` looks at ``machine``; both are of the same namespace."""
    if desired.cluster_name and cluster_name_of(machine) != desired.cluster_name:
        return False
    return desired.selector.matches(labels_of(machine))


def node_of(machine: Obj, view: View) -> Obj | None:
    """Its Node as its cluster's ``view`` has it: by the name in the status, if it still is that host's.

    Never one that is recorded for another Machine: whoever may write a status names any Node there.
    """
    reference = (machine.get("status") or {}).get("nodeRef") or {}
    node = view.get(NODE, Key("", str(reference.get("name") or "")))
    if node is None or claimed_by_another(node, machine):
        return None
    if uid_of(node) == reference.get("uid"):
        return node
    provider_id = spec_of(machine).get("providerID")
    return node if provider_id and spec_of(node).get("providerID") == provider_id else None


def defers(machine_set: Obj) -> bool:
    """Whether the MachineSet says that it leaves its unhealthy Machines as they are for now."""
    status = machine_set.get("status")
    condition = find(status.get("conditions") if isinstance(status, Mapping) else None, SetCondition.REMEDIATING)
    return condition is not None and (condition.get("status"), condition.get("reason")) == (
        "True",
        Reason.REMEDIATION_DEFERRED,
    )


def in_treatment(machine: Obj) -> bool:
    """An object made from the remediation template stands beside it."""
    return find((machine.get("status") or {}).get("conditions"), MachineCondition.EXTERNALLY_REMEDIATED) is not None


def selected(desired: HealthCheckSpec, namespace: str, view: View) -> Iterable[Obj]:
    """The Machines of the check's namespace that it looks at."""
    return (machine for machine in view.indexed(MACHINE, NAMESPACE, namespace) if covers(desired, machine))


def _target(machine: Obj, desired: HealthCheckSpec, followed: datetime, node_source: NodeSource) -> Target:
    """``followed``: since when the Machines have been."""
    facts = machine_facts.read(machine)
    node = None if node_source.lost else node_of(machine, node_source.view)
    status, spec = machine.get("status") or {}, spec_of(machine)
    zone = labels_of(node).get(ZONE_LABEL) if node is not None else None
    zone = zone or status.get("failureDomain") or spec.get("failureDomain") or ""
    if node_source.lost:
        return Target(facts, Unseen(node_source.lost, facts.unhealthy), str(zone), remediation_data_of(machine))
    trust = Trust(node_source.view.now, max(followed, node_source.nodes), node_source.nodes)
    return Target(facts, judge(facts, node, desired, trust), str(zone), remediation_data_of(machine))


def _is_deferred(machine: MachineFacts, view: View) -> bool:
    owner = find_controller(machine.body, MACHINE_SET, view)
    return owner is not None and defers(owner)


def _is_left_alone(machine: Obj, view: View) -> bool:
    """At a person's request, or since its Cluster is going anyway."""
    if names.SKIP_REMEDIATION_ANNOTATION in annotations_of(machine):
        return True
    cluster = cluster_of(machine, view)
    return bool(paused_by((machine, cluster))) or (cluster is not None and is_deleting(cluster))


def _cluster(desired: HealthCheckSpec, namespace: str, view: View) -> Obj | None:
    return view.get(CLUSTER, Key(namespace, desired.cluster_name)) if desired.cluster_name else None


def _older_checks(body: Obj, view: View) -> list[HealthCheckSpec]:
    """Two checks of one Machine would contradict each other for ever: the older one has it."""
    others = view.indexed(MACHINE_HEALTH_CHECK, NAMESPACE, key_of(body).namespace)
    return [parse_spec(other) for other in others if uid_of(other) != uid_of(body) and _age(other) < _age(body)]


def _age(check: Obj) -> tuple[datetime, str]:
    return parse_time(check["metadata"].get("creationTimestamp")) or DAWN, key_of(check).name


def _unborn(machines: Iterable[MachineFacts], view: View) -> frozenset[str]:
    """What the MachineSets of these Machines have deleted and not made again yet."""
    found: set[str] = set()
    owners = {machine.owner_uid: find_controller(machine.body, MACHINE_SET, view) for machine in machines}
    for owner in owners.values():
        listed = (owner.get("status") or {}).get("remediated") if owner is not None else None
        found.update(read_remediation_data(entry).machine for entry in (listed if isinstance(listed, list) else ()))
    return frozenset(found - {""})
