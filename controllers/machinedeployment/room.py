"""What wakes the MachineDeployment controller and what it must have read."""

from __future__ import annotations

from collections.abc import Iterable

from api.selectors import SelectorError, from_label_selector
from controllers.kernel import machine_facts
from controllers.kernel.ownership import controller_of, controller_uid
from controllers.kernel.pace import gathering
from controllers.kernel.pausing import paused_by
from controllers.kernel.plan import Plan
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Kind,
    Obj,
    is_deleting,
    key_of,
    labels_of,
)
from controllers.kernel.room import Wake
from controllers.kernel.view import CLUSTER_NAME, NAMESPACE, HostNeed, HostReads, View
from controllers.machinedeployment.observe import READS, Observed, observe
from controllers.machinedeployment.plan import plan


def itself(obj: Obj, _view: View) -> Iterable[Key]:
    return (key_of(obj),)


def deployments_of_set(body: Obj, view: View) -> Iterable[Key]:
    """The MachineDeployment that controls it; of an orphan, those of its namespace that would adopt it."""
    namespace = body["metadata"].get("namespace", "")
    owner = controller_of(body)
    if owner is not None:
        return (Key(namespace, str(owner["name"])),) if owner.get("kind") == MACHINE_DEPLOYMENT.name else ()
    labels = dict(labels_of(body))
    return tuple(key_of(d) for d in view.indexed(MACHINE_DEPLOYMENT, NAMESPACE, namespace) if _selects(d, labels))


def deployments_of_machine(machine: Obj, view: View) -> Iterable[Key]:
    """Through its MachineSet."""
    body = view.by_uid(MACHINE_SET, controller_uid(machine)) if controller_uid(machine) else None
    return deployments_of_set(body, view) if body is not None and controller_uid(body) else ()


def same_to_a_deployment(old: Obj, new: Obj) -> bool:
    return machine_facts.read(old) == machine_facts.read(new)


def while_machines_move(key: Key, view: View) -> float:
    return gathering(view.get(MACHINE_DEPLOYMENT, key), "replicas")


def deployments_of_cluster(cluster: Obj, view: View) -> Iterable[Key]:
    key = key_of(cluster)
    return tuple(key_of(d) for d in view.indexed(MACHINE_DEPLOYMENT, CLUSTER_NAME, f"{key.namespace}/{key.name}"))


def same_pause(old: Obj, new: Obj) -> bool:
    """Of its Cluster a deployment only sees whether it is paused or going."""
    return is_deleting(old) == is_deleting(new) and paused_by((old,)) == paused_by((new,))


def _selects(deployment: Obj, labels: dict[str, str]) -> bool:
    try:
        selector = from_label_selector((deployment.get("spec") or {}).get("selector"))
    except (SelectorError, AttributeError, TypeError):
        return False
    return not selector.empty and selector.matches(labels)


class MachineDeploymentRoom:
    """Room[Observed]; it needs no hosts."""

    name = "machinedeployment"
    kind: Kind = MACHINE_DEPLOYMENT
    reads: tuple[Kind, ...] = READS
    wakes: tuple[Wake, ...] = (
        Wake(MACHINE_DEPLOYMENT, itself),
        Wake(MACHINE_SET, deployments_of_set),
        Wake(MACHINE, deployments_of_machine, same_to_a_deployment, while_machines_move),
        Wake(CLUSTER, deployments_of_cluster, same_pause),
    )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(key, view)

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)


ROOM = MachineDeploymentRoom()
