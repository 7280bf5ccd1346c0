"""View → Observed: one MachineSet, its Machines in buckets, and which of them it takes and gives back.

Which Machines to take and to give back.

A Machine whose labels stopped matching is released (a person set it aside) and then replaced. Peers either keep it
owned and uncounted, and create without end (cluster-api#14216), or never notice. Here releasing has a limit of its own:
while as many released Machines exist as the set has replicas, further unmatched Machines are kept and counted, so
whatever rewrites labels can't make more than twice the Machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.names import DeletePolicy
from api.reading import Reading
from api.selectors import NOTHING, Selector
from api.views import InPlaceUpdateView, MachineSetSpecView
from controllers.kernel import machine_facts
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import counted
from controllers.kernel.failure_domains import Resting, domains_of, read_resting, rotation_of
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import Members, partition
from controllers.kernel.names import Ordinals, OrdinalsError, machine_name, machine_prefix, ordinal_of, read_ordinals
from controllers.kernel.ownership import (
    cluster_of,
    controlled,
    controller_uid,
    find_controller,
    paused_by,
    reference_to,
    references_with,
    references_without,
)
from controllers.kernel.provider_config import class_digest
from controllers.kernel.refs import (
    CLUSTER,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Key,
    Obj,
    Ref,
    annotations_of,
    is_deleting,
    key_of,
    ref_of,
    spec_of,
    uid_of,
)
from controllers.kernel.template import read_pattern
from controllers.kernel.view import OWNER, View
from controllers.machineset.disruption import NO_MATTER, Disruption, disruption

MIN_RELEASES = 3
"""So many may always be set aside, however small the set."""


@dataclass(frozen=True, slots=True)
class Claims:
    """``kept``: unmatched Machines that may not be released now."""

    adopted: tuple[MachineFacts, ...] = ()
    released: tuple[MachineFacts, ...] = ()
    kept: tuple[MachineFacts, ...] = ()


def claims(observed: Observed) -> Claims:
    free = max(max(observed.desired.replicas, MIN_RELEASES) - observed.released, 0)
    unmatched = tuple(sorted(observed.unmatched, key=lambda machine: machine.key))
    return Claims(observed.orphans, unmatched[:free], unmatched[free:])


def freeze_reason(observed: Observed, decided: Claims) -> str:
    """Why unmatched Machines are kept, "" if none is."""
    if not decided.kept:
        return ""
    return (
        f"{counted(len(decided.kept), 'Machine')} left the selector, and of those that did so before "
        f"{counted(observed.released, 'still exists', 'still exist')}: restore their labels or delete them"
    )


def claim_patches(observed: Observed, decided: Claims) -> list[Patch]:
    """Each is guarded by the version of the Machine on which it was decided: its labels may have changed again."""
    set_name = observed.ref.key.name
    reference = reference_to(MACHINE_SET, observed.body)
    patches = [
        Patch(
            machine.ref,
            {
                "metadata": {
                    "ownerReferences": references_with(machine.body, reference),
                    "annotations": {names.RELEASED_FROM_ANNOTATION: None},
                }
            },
            why=f"Machine {machine.key.name} matches the selector of MachineSet {set_name} and has no controller",
            resource_version=machine.resource_version,
        )
        for machine in decided.adopted
    ]
    uid = uid_of(observed.body)
    patches.extend(
        Patch(
            machine.ref,
            {
                "metadata": {
                    "ownerReferences": references_without(machine.body, uid),
                    "annotations": {names.RELEASED_FROM_ANNOTATION: uid},
                }
            },
            why=f"labels of Machine {machine.key.name} no longer match the selector of MachineSet {set_name}",
            resource_version=machine.resource_version,
        )
        for machine in decided.released
    )
    return patches


READS = (MACHINE_SET, MACHINE, MACHINE_DEPLOYMENT, MACHINE_CLASS, CLUSTER)


@dataclass(frozen=True, slots=True)
class SetSpec:
    """``spec``, with defaults filled in. ``problem`` names the field that can't be used, "" if all can."""

    replicas: int = 0
    min_ready: timedelta = timedelta(0)
    policy: str = DeletePolicy.RANDOM
    selector: Selector = NOTHING
    template: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    in_place: InPlaceUpdateView | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that the plan of one MachineSet may know.

    ``unmatched``: owned, but their labels no longer match; they are members until their release is visible.
    ``orphans``: they match and nobody controls them. ``released``: how many that once left still exist.
    ``domains``: failure domains to spread over, in the order in which this set takes them; () if it does not spread.
    ``detached``: Machines that a cloudpool has detached, for which ``replicas`` may not be lowered yet.
    ``resting``: what the status remembers of those that were exhausted.
    ``class_digest``: that of the MachineClass which the template names, "" for none.
    """

    body: Obj
    desired: SetSpec
    now: datetime
    complete: bool = True
    paused: str = ""
    deployment: Obj | None = None
    cluster_deleting: str = ""
    ordinals: Ordinals = field(default_factory=Ordinals)
    prefix: str = ""
    members: Members = field(default_factory=Members)
    unmatched: tuple[MachineFacts, ...] = ()
    orphans: tuple[MachineFacts, ...] = ()
    released: int = 0
    detached: int = 0
    domains: tuple[str, ...] = ()
    resting: tuple[Resting, ...] = ()
    class_digest: str = ""
    disruption: Disruption = NO_MATTER

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_SET, self.body)

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.body.get("status")
        return status if isinstance(status, Mapping) else {}


def observe(key: Key, view: View) -> Observed | None:
    """None if the MachineSet is gone."""
    body = view.get(MACHINE_SET, key)
    if body is None:
        return None
    desired, ordinals = parse_spec(body), Ordinals()
    status = body.get("status")
    try:
        ordinals = read_ordinals(status if isinstance(status, Mapping) else {})
    except OrdinalsError as error:
        desired = SetSpec(problem=f"status.ordinals: {error}")
    cluster = cluster_of(body, view) if not desired.problem else None
    deployment = _owner(body, view)
    prefix = machine_prefix(key.name, uid_of(body))
    owned = [machine_facts.read(machine) for machine in controlled(body, MACHINE, view)]
    used = (ordinal_of(machine.key.name, prefix) for machine in owned)
    ordinals = ordinals.above(ordinal for ordinal in used if ordinal is not None)
    ordinals = ordinals.without(_taken(ordinals, view, key, prefix, uid_of(body)))
    members = partition(owned, ordinals, prefix, view.now)
    matches = desired.selector.matches
    return Observed(
        body=body,
        desired=desired,
        now=view.now,
        complete=all(view.complete(kind) for kind in READS),
        paused=paused_by((body, deployment, cluster)),
        deployment=deployment,
        cluster_deleting=cluster["metadata"]["name"] if cluster and is_deleting(cluster) else "",
        ordinals=ordinals,
        prefix=prefix,
        members=members,
        domains=rotation_of(domains_of(body, cluster), uid_of(deployment or body)),
        resting=read_resting(body),
        class_digest=class_digest(spec_of(desired.template), key.namespace, view),
        unmatched=tuple(machine for machine in members.active if not matches(machine.labels)),
        disruption=disruption(body, members, (desired.replicas, desired.policy), view)
        if not desired.problem
        else NO_MATTER,
        **_ownerless(view, body, desired),
    )


def parse_spec(body: Obj) -> SetSpec:
    """``spec`` of a MachineSet; never raises: a spec that slipped past the schema becomes a ``problem``."""
    found = Reading.of_spec(body)
    spec = MachineSetSpecView.read(found)
    if found.problem:
        return SetSpec(problem=found.problem)
    pattern = read_pattern(spec.selector, spec.template, MACHINE)
    if pattern.problem:
        return SetSpec(problem=pattern.problem)
    return SetSpec(
        replicas=spec.replicas,
        min_ready=timedelta(seconds=spec.min_ready_seconds),
        policy=spec.delete_policy,
        selector=pattern.selector,
        template=pattern.template,
        in_place=spec.in_place_update,
    )


def _owner(body: Obj, view: View) -> Obj | None:
    return find_controller(body, MACHINE_DEPLOYMENT, view)


def _ownerless(view: View, body: Obj, desired: SetSpec) -> dict[str, Any]:
    """Orphans of the namespace that match, and the number of those that were released by this MachineSet."""
    namespace, uid = key_of(body).namespace, uid_of(body)
    pools = {uid, controller_uid(body)} - {""}
    orphans, released, detached = [], 0, 0
    for machine in view.indexed(MACHINE, OWNER, ""):
        if machine["metadata"].get("namespace", "") != namespace:
            continue
        pool, _, number = annotations_of(machine).get(names.CLOUDPOOL_DETACHED_FROM_ANNOTATION, "").partition("/")
        detached += bool(number) and pool in pools
        if not is_deleting(machine) and desired.selector.matches(machine["metadata"].get("labels")):
            orphans.append(machine_facts.read(machine))
        elif annotations_of(machine).get(names.RELEASED_FROM_ANNOTATION) == uid:
            released += 1
    found = tuple(sorted(orphans, key=lambda machine: machine.key))
    return {"orphans": found, "released": released, "detached": detached}


def _taken(ordinals: Ordinals, view: View, key: Key, prefix: str, uid: str) -> list[int]:
    """Reserved ordinals whose Machine exists and belongs to somebody else (released right after it was made)."""
    found = ((o, view.get(MACHINE, Key(key.namespace, machine_name(prefix, o)))) for o in ordinals.reserved)
    return [ordinal for ordinal, machine in found if machine is not None and controller_uid(machine) != uid]
