"""How many Machines to create, when not to, and what a Machine is born with.

A Machine is born with everything it will need (owner, finalizer, labels, annotations), so that no later write is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api import names
from api.conditions import Reason
from controllers.kernel.actions import Create
from controllers.kernel.in_place import Revision
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.names import label_value, machine_name
from controllers.kernel.ownership import reference_to
from controllers.kernel.pausing import cluster_name_of
from controllers.kernel.refs import MACHINE, MACHINE_SET, annotations_of, is_deleting, labels_of, spec_of
from controllers.kernel.remediation import RemediationData
from controllers.kernel.template import FAILURE_DOMAIN, NEVER_FROM_TEMPLATE, is_made_of, rollout_part
from controllers.kernel.wording import counted
from controllers.machineset import propagation
from controllers.machineset.claiming import Claims
from controllers.machineset.observe import Observed

MAX_BATCH = 1000
"""Machines created in one reconcile; the next reconcile goes on when they are visible."""
IN_FLIGHT = 2.0
"""Seconds after the youngest visible Machine's creation in which its siblings are taken to be on their way too.
Creating them again would be harmless, since the names collide, but costs calls."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Missing Machines are not created. ``reason`` is a condition reason, ``why`` says whose move it is."""

    reason: str
    why: str


def missing(observed: Observed, claims: Claims) -> int:
    """Machines that are wanted beyond those that are on their way, negative if there are too many. Orphans about to be
    adopted will fill their places.

    A Machine that goes for its health is replaced when it is seen going: its delete may not have reached the server.
    A Machine that a cloudpool detaches is not replaced: ``replicas`` is lowered for it after it was released.
    """
    going = sum(machine.selected_for_deletion for machine in observed.members.leaving)
    short = observed.desired.replicas - observed.members.existing - len(claims.adopted) - going
    return max(short - observed.detached, 0) if short > 0 else short


def retried(observed: Observed) -> tuple[int, ...]:
    """Reserved ordinals whose Machine should be visible by now: create them again under the same name."""
    youngest = max((machine.created for machine in observed.members.active), default=None)
    if youngest is not None and observed.now - youngest < timedelta(seconds=IN_FLIGHT):
        return ()
    return observed.members.pending


def hold(observed: Observed) -> Hold | None:
    """Why nothing may be created now, None if it may."""
    set_name = observed.ref.key.name
    if is_deleting(observed.body):
        return Hold(Reason.DELETING, f"MachineSet {set_name} is being deleted")
    if observed.cluster_deleting:
        return Hold(Reason.CLUSTER_DELETING, f"Cluster {observed.cluster_deleting} is being deleted")
    if names.DISABLE_CREATE_ANNOTATION in annotations_of(observed.body):
        return Hold(
            Reason.CREATION_DISABLED, f"MachineSet {set_name} has the annotation {names.DISABLE_CREATE_ANNOTATION}"
        )
    culprit = _proof_that_template_fails(observed)
    if culprit is not None:
        return Hold(
            Reason.TEMPLATE_FAILS,
            f"Machine {culprit.key.name} of this template failed for good ({culprit.reason}: {culprit.message}) and no "
            "Machine of the set is ready: another one would fail alike, correct the template",
        )
    return None


def _proof_that_template_fails(observed: Observed) -> MachineFacts | None:
    """A Machine just like those to be made that failed terminally by its configuration, if none is ready.

    Without it, a health check that deletes failed Machines and a set that refills them go on for ever (MAO#736).
    """
    members = observed.members
    if any(machine.ready for machine in members.active):
        return None
    want: Mapping[str, Any] | None = None
    for machine in (*members.active, *members.leaving, *members.preserved, *members.deleting):
        if not machine.failed or not _blames_configuration(machine):
            continue
        if want is None:
            want = rollout_part(observed.desired.template)
        if is_made_of(spec_of(machine.body), want):
            return machine
    return None


def _blames_configuration(machine: MachineFacts) -> bool:
    status = machine.body.get("status") or {}
    reasons = (status.get("errorReason"), status.get("failureReason"), machine.reason)
    return names.ErrorReason.INVALID_CONFIGURATION in reasons


def creates(
    observed: Observed, ordinals: Iterable[int], places: Mapping[int, RemediationData], domains: Mapping[int, str]
) -> list[Create]:
    """The creates for these ordinals; ``places``: whose place some of them take; ``domains``: where their hosts go.

    Their bodies share what is equal: a plan is read only.
    """
    body, template = observed.body, observed.desired.template
    set_name = observed.ref.key.name
    meta = template.get("metadata") or {}
    labels = {**_inherited_labels(observed), **(meta.get("labels") or {})}
    annotations = {
        **(meta.get("annotations") or {}),
        names.PROPAGATED_ANNOTATION: propagation.record_text(template),
    }
    if observed.desired.in_place is not None:
        annotations[names.TEMPLATE_ANNOTATION] = Revision(template).digest
    if observed.class_digest:
        annotations[names.MACHINE_CLASS_ANNOTATION] = observed.class_digest
    spec = {key: value for key, value in spec_of(template).items() if key not in NEVER_FROM_TEMPLATE}
    shared = {
        "namespace": observed.ref.key.namespace,
        "labels": labels,
        "finalizers": [names.MACHINE_FINALIZER],
        "ownerReferences": [reference_to(MACHINE_SET, body)],
    }
    return [
        Create(
            MACHINE,
            {
                "apiVersion": MACHINE.api_version,
                "kind": MACHINE.name,
                "metadata": {
                    **shared,
                    "name": machine_name(observed.prefix, ordinal),
                    "annotations": {**annotations, **_identity(ordinal, places.get(ordinal))},
                },
                "spec": {**spec, FAILURE_DOMAIN: domains[ordinal]} if ordinal in domains else spec,
            },
            why=f"MachineSet {set_name} needs {counted(observed.desired.replicas, 'Machine')}",
        )
        for ordinal in ordinals
    ]


def _identity(ordinal: int, place: RemediationData | None) -> dict[str, str]:
    identity = {names.ORDINAL_ANNOTATION: str(ordinal)}
    return {**identity, names.REMEDIATION_FOR_ANNOTATION: place.to_text()} if place is not None else identity


def _inherited_labels(observed: Observed) -> dict[str, str]:
    """Labels by which people and the Cluster Autoscaler find the Machines of a cluster and a set."""
    found = {
        names.MACHINESET_NAME_LABEL: label_value(observed.ref.key.name),
        names.DEPLOYMENT_NAME_LABEL: labels_of(observed.body).get(names.DEPLOYMENT_NAME_LABEL),
        names.CLUSTER_NAME_LABEL: cluster_name_of(observed.body),
    }
    return {key: value for key, value in found.items() if value}
