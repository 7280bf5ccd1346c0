"""What wakes the MachineDeployment controller and what it must have read."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.kernel import machine_facts
from controllers.kernel.budgets import gathering
from controllers.kernel.ownership import controller_of, controller_uid, find_controller
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    key_of,
    labels_of,
)
from controllers.kernel.view import NAMESPACE, HostNeed, HostReads, View
from controllers.kernel.waking import (
    itself,
    members_of_cluster,
    named_by_template,
    same_config,
    same_to_sets,
    selects,
)
from controllers.machinedeployment.observe import READS, Observed, observe
from controllers.machinedeployment.plan import plan


def deployments_of_set(body: Obj, view: View) -> Iterable[Key]:
    """The MachineDeployment that controls it; of an orphan, those of its namespace that would adopt it."""
    namespace = body["metadata"].get("namespace", "")
    owner = controller_of(body)
    if owner is not None:
        return (Key(namespace, str(owner.get("name") or "")),) if owner.get("kind") == MACHINE_DEPLOYMENT.name else ()
    labels = dict(labels_of(body))
    return tuple(key_of(d) for d in view.indexed(MACHINE_DEPLOYMENT, NAMESPACE, namespace) if selects(d, labels))


def deployments_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """Through its MachineSet."""
    body = find_controller(machine, MACHINE_SET, view)
    return deployments_of_set(body, view) if body is not None and controller_uid(body) else ()


def same_to_a_deployment(old: Obj, new: Obj) -> bool:
    return machine_facts.read(old) == machine_facts.read(new)


def while_machines_move(key: Key, view: View) -> float:
    return gathering(view.get(MACHINE_DEPLOYMENT, key), "replicas")


class MachineDeploymentReconciler:
    """Reconciler[Observed]; it needs no hosts."""

    name = "machinedeployment"
    kind: Kind = MACHINE_DEPLOYMENT
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = (
        Wake(MACHINE_DEPLOYMENT, itself),
        Wake(MACHINE_SET, deployments_of_set),
        Wake(MACHINE, deployments_of_machine, same_to_a_deployment, while_machines_move),
        Wake(MACHINE_CLASS, named_by_template(MACHINE_DEPLOYMENT), same_config),
        Wake(CLUSTER, members_of_cluster(MACHINE_DEPLOYMENT), same_to_sets),
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


RECONCILER = MachineDeploymentReconciler()
