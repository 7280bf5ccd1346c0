"""What wakes the MachineSet controller and what it must have read."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.kernel import machine_facts
from controllers.kernel.budgets import gathering
from controllers.kernel.ownership import controlled, controller_of, controller_uid
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
    spec_of,
)
from controllers.kernel.view import NAMESPACE, HostNeed, HostReads, View
from controllers.kernel.waking import (
    itself,
    members_of_cluster,
    named_by_template,
    same_config,
    same_pause,
    same_to_sets,
    selects,
)
from controllers.machineset.observe import READS, Observed, observe
from controllers.machineset.plan import plan


def sets_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """The MachineSet that controls it; of an orphan, those of its namespace that would adopt it."""
    namespace = machine["metadata"].get("namespace", "")
    owner = controller_of(machine)
    if owner is not None:
        return (Key(namespace, str(owner.get("name") or "")),) if owner.get("kind") == MACHINE_SET.name else ()
    labels = labels_of(machine)
    return tuple(key_of(body) for body in view.indexed(MACHINE_SET, NAMESPACE, namespace) if selects(body, labels))


def same_to_a_set(old: Obj, new: Obj) -> bool:
    """A change that no set looks at: addresses, other conditions, the Machine controller's own notes."""
    if machine_facts.read(old) != machine_facts.read(new):
        return False
    if controller_uid(old) != controller_uid(new) or spec_of(old) != spec_of(new):
        return False
    return bool(old["metadata"].get("annotations") == new["metadata"].get("annotations"))


def while_machines_move(key: Key, view: View) -> float:
    return gathering(view.get(MACHINE_SET, key), "replicas")


def sets_of_deployment(deployment: Obj, view: View) -> Iterable[Key]:
    return tuple(key_of(body) for body in controlled(deployment, MACHINE_SET, view))


class MachineSetReconciler:
    """Reconciler[Observed]; it needs no hosts."""

    name = "machineset"
    kind: Kind = MACHINE_SET
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = (
        Wake(MACHINE_SET, itself),
        Wake(MACHINE, sets_of_machine, same_to_a_set, while_machines_move),
        Wake(MACHINE_DEPLOYMENT, sets_of_deployment, same_pause),
        Wake(MACHINE_CLASS, named_by_template(MACHINE_SET), same_config),
        Wake(CLUSTER, members_of_cluster(MACHINE_SET), same_to_sets),
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


RECONCILER = MachineSetReconciler()
