"""Remediation by somebody else: an object made from a template stands beside each unhealthy Machine.

Cluster API's contract: the template's kind ends with Template, the object's kind is what comes before it, its name is
the Machine's, its spec is the template's ``spec.template.spec``. Its controller mends the Machine, or gives up and sets
OwnerRemediated itself. The object goes when the Machine is healthy again, and with the Machine (it is owned by it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason
from api.remediation import TEMPLATE_SUFFIX
from controllers.kernel.actions import Action, CreateFromTemplate, Delete
from controllers.kernel.conditions import Condition, find
from controllers.kernel.ownership import cluster_name_of, reference_to
from controllers.kernel.refs import MACHINE, Key, Kind, Ref, guessed_kind
from controllers.machinehealthcheck.budget import Choice
from controllers.machinehealthcheck.health import Healthy, Unhealthy
from controllers.machinehealthcheck.observe import Observed, Target, in_treatment

Template = Mapping[str, Any]


def object_kind(template: Template) -> Kind:
    return guessed_kind(template["apiVersion"], template["kind"].removesuffix(TEMPLATE_SUFFIX))


def actions(observed: Observed, choice: Choice) -> list[Action]:
    """Objects to make and to drop. They come before the Machines' conditions that speak of them: who dies in between
    does it again, which does nothing twice (the name is the Machine's)."""
    template = observed.desired.template
    if template is None:
        return []
    made = (_make(observed, template, target) for target in observed.targets if begins(target, choice))
    return [*made, *_drops(object_kind(template), observed.targets)]


def begins(target: Target, choice: Choice) -> bool:
    """Its turn has come. It is called unhealthy first, so that the object's controller finds that said."""
    return (
        target.name in choice.selected_for_deletion
        and target.machine.unhealthy
        and not in_treatment(target.machine.body)
    )


def conditions(target: Target, choice: Choice) -> list[Condition]:
    """ExternallyRemediated while there is an object; OwnerRemediated is the object's controller's to write."""
    listed = (target.machine.body.get("status") or {}).get("conditions")
    if isinstance(target.verdict, Healthy):
        return []
    kept = [MachineCondition.OWNER_REMEDIATED, MachineCondition.EXTERNALLY_REMEDIATED]
    found = [(type_, find(listed, type_)) for type_ in kept]
    current = [Condition(t, c["status"], c.get("reason", ""), c.get("message", "")) for t, c in found if c is not None]
    if isinstance(target.verdict, Unhealthy) and begins(target, choice):
        message = "an object made from the remediation template works on it"
        type_ = MachineCondition.EXTERNALLY_REMEDIATED
        current.append(Condition(type_, "False", Reason.WAITING_FOR_REMEDIATION, message))
    return current


def _make(observed: Observed, template: Template, target: Target) -> CreateFromTemplate:
    key, machine = observed.ref.key, target.machine
    kind = guessed_kind(template["apiVersion"], template["kind"])
    cluster = cluster_name_of(machine.body)
    metadata: dict[str, Any] = {
        "name": machine.key.name,
        "namespace": machine.key.namespace,
        "ownerReferences": [reference_to(MACHINE, machine.body)],
        **({"labels": _cluster_labels(cluster)} if cluster else {}),
    }
    made = object_kind(template)
    body = {"apiVersion": made.api_version, "kind": made.name, "metadata": metadata}
    why = f"Machine {target.name} is unhealthy: {kind.name} {template['name']} says who mends it"
    return CreateFromTemplate(made, body, Ref(kind, Key(key.namespace, template["name"])), why)


def _cluster_labels(cluster: str) -> dict[str, str]:
    """Under both families' keys: whoever mends the Machine may be of either."""
    return {names.CLUSTER_NAME_LABEL: cluster, names.CAPI_CLUSTER_NAME_LABEL: cluster}


def _drops(kind: Kind, targets: Iterable[Target]) -> list[Action]:
    return [
        Delete(Ref(kind, target.machine.key), f"Machine {target.name} is healthy again")
        for target in targets
        if isinstance(target.verdict, Healthy) and in_treatment(target.machine.body)
    ]
