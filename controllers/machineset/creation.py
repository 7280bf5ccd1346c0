"""Machines that a set creates: how many, when not, over which failure domains, and what they are born with.

Over which failure domains the Machines of a set go, and which of them leave one that has no host for them.

Only a Machine without a host is ever sent elsewhere, by its ``spec.failureDomain``. The domain that it leaves rests:
the record is written first, so that no reconcile sends it back. Machines that stay keep asking their provider, so a
domain in which one waits is tried all the time and takes no further ones.

How many Machines to create, when not to, and what a Machine is born with.

A Machine is born with everything it will need (owner, finalizer, labels, annotations), so that no later write is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.conditions import Reason, SetCondition
from controllers.kernel.actions import Action, Create, Event, Patch
from controllers.kernel.conditions import Condition, counted, find
from controllers.kernel.failure_domains import Resting, balanced, choose
from controllers.kernel.in_place import Revision
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.names import label_value, machine_name
from controllers.kernel.ownership import cluster_name_of, reference_to
from controllers.kernel.refs import MACHINE, MACHINE_SET, annotations_of, is_deleting, labels_of, spec_of
from controllers.kernel.remediation import RemediationData
from controllers.kernel.template import FAILURE_DOMAIN, NEVER_FROM_TEMPLATE, is_made_of, rollout_part
from controllers.machineset import propagation
from controllers.machineset.observe import Claims, Observed

REST = timedelta(minutes=10)
"""So long is a domain left alone that Machines have left: the longest back-off of its class of errors."""
TRIED_AT_ONCE = 10
"""Machines without a host that a domain may hold when others are sent there: it may have as little room."""


@dataclass(frozen=True, slots=True)
class Move:
    """A Machine that asks for its host elsewhere from now on."""

    machine: MachineFacts
    domain: str


@dataclass(frozen=True, slots=True)
class Spread:
    """``open``: domains in which Machines may be made. ``resting``: the record to keep. ``exhausted``: why not others.

    ``look_at``: when a domain has rested.
    """

    open: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    resting: tuple[Resting, ...] = ()
    exhausted: tuple[tuple[str, str], ...] = ()
    look_at: datetime | None = None


NO_SPREAD = Spread()


def spread_over_domains(observed: Observed) -> Spread:
    """What is known of the failure domains now, and which Machines move to another one."""
    if not observed.domains:
        return NO_SPREAD
    short = _short_of_a_host(observed)
    still = {rest.domain: rest for rest in observed.resting if rest.until > observed.now}
    without = {machine.failure_domain: machine.shortage for machine in short}
    without |= {rest.domain: rest.reason for rest in still.values()}
    domains = tuple(domain for domain in observed.domains if domain not in without)
    ends = is_deleting(observed.body) or observed.cluster_deleting
    moves = () if ends else _moves(observed, short, domains)
    for move in moves:
        left = move.machine.failure_domain
        still.setdefault(left, Resting(left, move.machine.shortage, _whole(observed.now + REST)))
    kept = tuple(still[domain] for domain in sorted(still) if domain in observed.domains)
    exhausted = tuple((domain, _description(domain, without[domain], still)) for domain in sorted(without))
    look_at = min((rest.until for rest in kept), default=None)
    return Spread(domains, moves, kept, exhausted, look_at)


def places(observed: Observed, found: Spread, ordinals: Iterable[int]) -> dict[int, str]:
    """Failure domains for these ordinals. Those on their way count, though it can't be seen where they went.

    Where every domain is exhausted a Machine waits in the emptiest: it may be the first that has room again.
    """
    asked = sorted(ordinals)
    on_their_way = [ordinal for ordinal in observed.members.pending if ordinal not in asked]
    loads = _loads(observed)
    for move in found.moves:
        loads[move.machine.failure_domain] -= 1
        loads[move.domain] += 1
    chosen = choose(found.open or observed.domains, loads, len(on_their_way) + len(asked))
    return dict(zip(asked, chosen[len(on_their_way) :], strict=False))


def move_patches(observed: Observed, found: Spread) -> list[Patch]:
    """Guarded: a Machine that has got its host meanwhile stays."""
    return [
        Patch(
            move.machine.ref,
            {"spec": {"failureDomain": move.domain}},
            f"Machine {move.machine.key.name} is to have its host in failure domain {move.domain}: "
            f"{move.machine.failure_domain} has none ({move.machine.shortage})",
            resource_version=move.machine.resource_version,
        )
        for move in found.moves
    ]


def spread_news(observed: Observed, found: Spread) -> list[Action]:
    """An Event for each domain that begins to rest."""
    known = {rest.domain for rest in observed.resting if rest.until > observed.now}
    fresh = [rest for rest in found.resting if rest.domain not in known]
    return [
        Event(observed.ref, "Warning", Reason.FAILURE_DOMAIN_EXHAUSTED, f"{rest}; Machines go elsewhere")
        for rest in fresh
    ]


def spread_status(found: Spread) -> list[dict[str, str]] | None:
    return [rest.to_status() for rest in found.resting] or None


def spread_condition(observed: Observed, found: Spread) -> list[Condition]:
    """How evenly they are spread, and which domains are not used and why; only where they are to be spread."""
    type_ = SetCondition.BALANCED
    if not observed.domains:
        was = find(observed.status.get("conditions"), type_)
        return [Condition(type_, "True", Reason.BALANCED, "there are no failure domains to spread over")] if was else []
    return [balanced(type_, observed.domains, _loads(observed), [text for _, text in found.exhausted])]


def _moves(observed: Observed, short: list[MachineFacts], domains: tuple[str, ...]) -> tuple[Move, ...]:
    """The oldest first, each to the emptiest open domain that is not being tried by enough of them already."""
    loads = _loads(observed)
    trying = Counter(machine.failure_domain for machine in observed.members.active if not machine.has_host)
    found: list[Move] = []
    for machine in short:
        possible = [domain for domain in domains if trying[domain] < TRIED_AT_ONCE]
        if not possible:
            break
        (domain,) = choose(possible, loads, 1)
        loads[machine.failure_domain] -= 1
        loads[domain] += 1
        trying[domain] += 1
        found.append(Move(machine, domain))
    return tuple(found)


def _short_of_a_host(observed: Observed) -> list[MachineFacts]:
    unmatched = {machine.key for machine in observed.unmatched}
    found = [
        machine
        for machine in observed.members.active
        if machine.shortage and machine.failure_domain in observed.domains and machine.key not in unmatched
    ]
    return sorted(found, key=lambda machine: (machine.created, machine.key))


def _loads(observed: Observed) -> Counter[str]:
    return Counter(machine.failure_domain for machine in observed.members.active)


def _description(domain: str, reason: str, resting: dict[str, Resting]) -> str:
    rest = resting.get(domain)
    return str(rest) if rest is not None else f"failure domain {domain} has no host ({reason})"


def _whole(moment: datetime) -> datetime:
    """As it reads once it is written."""
    return moment.replace(microsecond=0)


def moved(found: Spread) -> str:
    return counted(len(found.moves), "Machine goes", "Machines go") + " to another failure domain"


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
