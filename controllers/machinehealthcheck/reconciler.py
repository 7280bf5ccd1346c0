"""What wakes the MachineHealthCheck controller and what it must have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from api.remediation import TemplateKind
from controllers.kernel.budgets import gathering
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
    NODE,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    labels_of,
    spec_of,
    uid_of,
)
from controllers.kernel.view import NAMESPACE, NODE_NAME, HostNeed, HostReads, View
from controllers.kernel.waking import itself, same_pause, selects
from controllers.machinehealthcheck.observe import READS, ZONE_LABEL, Observed, defers, observe
from controllers.machinehealthcheck.plan import plan


def checks_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """The checks of its namespace that select it."""
    return _checks(key_of(machine).namespace, labels_of(machine), view)


def checks_of_node(node: Obj, view: View) -> Iterable[Key]:
    """Of Machines with a Node of that name, in whatever cluster: a namesake costs a reconcile and no more."""
    machines = view.indexed(MACHINE, NODE_NAME, node["metadata"]["name"])
    return tuple(key for machine in machines for key in checks_of_machine(machine, view))


def checks_of_set(machine_set: Obj, view: View) -> Iterable[Key]:
    """The checks that select the Machines which it makes."""
    template = spec_of(machine_set).get("template") or {}
    return _checks(key_of(machine_set).namespace, (template.get("metadata") or {}).get("labels") or {}, view)


def checks_of_cluster(cluster: Obj, view: View) -> Iterable[Key]:
    """All of its namespace: a check need not name its Cluster."""
    checks = view.indexed(MACHINE_HEALTH_CHECK, NAMESPACE, key_of(cluster).namespace)
    return tuple(key_of(check) for check in checks)


def is_heartbeat(old: Obj, new: Obj) -> bool:
    """A Node's change that no check can see: all but its conditions (without their heartbeats) and its zone."""
    return _of_node(old) == _of_node(new)


def same_health(old: Obj, new: Obj) -> bool:
    """A Machine's change that no check can see."""
    return _of_machine(old) == _of_machine(new)


def defers_alike(old: Obj, new: Obj) -> bool:
    """A MachineSet matters only by whether it leaves unhealthy Machines alone; Machines name their set themselves."""
    return defers(old) == defers(new)


def while_machines_move(key: Key, view: View) -> float:
    return gathering(view.get(MACHINE_HEALTH_CHECK, key), "expectedMachines")


class MachineHealthCheckReconciler:
    """Reconciler[Observed]; it needs no hosts. ``template_kinds``: those that ``spec.remediationTemplate`` may name."""

    name = "machinehealthcheck"
    kind: Kind = MACHINE_HEALTH_CHECK
    spans_clusters = True
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = (
        Wake(MACHINE_HEALTH_CHECK, itself),
        Wake(MACHINE, checks_of_machine, same_health, while_machines_move),
        Wake(NODE, checks_of_node, is_heartbeat, while_machines_move),
        Wake(MACHINE_SET, checks_of_set, defers_alike),
        Wake(CLUSTER, checks_of_cluster, same_pause),
    )

    def __init__(self, template_kinds: frozenset[TemplateKind] = frozenset()) -> None:
        self._template_kinds = template_kinds

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view, self._template_kinds)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


def _checks(namespace: str, labels: Mapping[str, str], view: View) -> tuple[Key, ...]:
    checks = view.indexed(MACHINE_HEALTH_CHECK, NAMESPACE, namespace)
    return tuple(key_of(check) for check in checks if selects(check, labels))


def _of_node(node: Obj) -> tuple[object, ...]:
    return (uid_of(node), labels_of(node).get(ZONE_LABEL), spec_of(node).get("providerID"), _reported_conditions(node))


def _of_machine(machine: Obj) -> tuple[object, ...]:
    meta, status = machine["metadata"], machine.get("status") or {}
    fields = ("nodeRef", "failureDomain", "errorReason", "errorMessage", "failureReason", "failureMessage")
    return (
        uid_of(machine),
        is_deleting(machine),
        meta.get("labels"),
        meta.get("annotations"),
        meta.get("ownerReferences"),
        [status.get(name) for name in fields],
        _reported_conditions(machine),
    )


def _reported_conditions(obj: Obj) -> list[tuple[Any, ...]]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    fields = ("type", "status", "reason", "lastTransitionTime")
    return [tuple(c.get(name) for name in fields) for c in conditions if isinstance(c, Mapping)]


RECONCILER = MachineHealthCheckReconciler()
