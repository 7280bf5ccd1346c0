"""View → Observed: one MachineSet, its Machines in buckets, and what holds it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from api import limits, names
from api.machinerules import failure_domains_fault
from api.names import DeletePolicy, InPlace
from api.selectors import NOTHING, Selector
from controllers.kernel import machine_facts
from controllers.kernel.failure_domains import Resting, domains_of, in_turn, read_resting
from controllers.kernel.machine_class import class_digest
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import Members, partition
from controllers.kernel.names import machine_name, machine_prefix, ordinal_of
from controllers.kernel.ordinals import Ordinals, OrdinalsError, read_ordinals
from controllers.kernel.ownership import controller_uid
from controllers.kernel.pausing import cluster_of, paused_by
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
    uid_of,
)
from controllers.kernel.template import is_count, read_pattern
from controllers.kernel.view import OWNER, View
from controllers.machineset.disruption import NO_MATTER, Disruption, disruption

READS = (MACHINE_SET, MACHINE, MACHINE_DEPLOYMENT, MACHINE_CLASS, CLUSTER)


@dataclass(frozen=True, slots=True)
class InPlaceUpdate:
    """``spec.inPlaceUpdate``: how a changed template reaches existing Machines. ``max_updating`` None: no limit."""

    required: bool = False
    min_available: int = 0
    max_updating: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """``spec``, with defaults filled in. ``problem`` names the field that can't be used, "" if all can."""

    replicas: int = 0
    min_ready: timedelta = timedelta(0)
    policy: str = DeletePolicy.RANDOM
    selector: Selector = NOTHING
    template: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    in_place: InPlaceUpdate | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that the plan of one MachineSet may know.

    ``strays``: owned, but their labels no longer match; they are members until their release is visible.
    ``orphans``: they match and nobody controls them. ``released``: how many that once left still exist.
    ``domains``: failure domains to spread over, in the order in which this set takes them; () if it does not spread.
    ``detached``: Machines that a cloudpool has detached, for which ``replicas`` may not be lowered yet.
    ``resting``: what the status remembers of those that were exhausted.
    ``class_digest``: that of the MachineClass which the template names, "" for none.
    """

    body: Obj
    wish: Wish
    now: datetime
    complete: bool = True
    paused: str = ""
    deployment: Obj | None = None
    cluster_deleting: str = ""
    journal: Ordinals = field(default_factory=Ordinals)
    prefix: str = ""
    members: Members = field(default_factory=Members)
    strays: tuple[MachineFacts, ...] = ()
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
    wish, journal = read_wish(body), Ordinals()
    status = body.get("status")
    try:
        journal = read_ordinals(status if isinstance(status, Mapping) else {})
    except OrdinalsError as error:
        wish = Wish(problem=f"status.ordinals: {error}")
    cluster = cluster_of(body, view) if not wish.problem else None
    deployment = _owner(body, view)
    prefix = machine_prefix(key.name, uid_of(body))
    owned = [machine_facts.read(machine) for machine in view.indexed(MACHINE, OWNER, uid_of(body))]
    used = (ordinal_of(machine.key.name, prefix) for machine in owned)
    journal = journal.above(ordinal for ordinal in used if ordinal is not None)
    journal = journal.without(_taken(journal, view, key, prefix, uid_of(body)))
    members = partition(owned, journal, prefix, view.now)
    matches = wish.selector.matches
    return Observed(
        body=body,
        wish=wish,
        now=view.now,
        complete=all(view.complete(kind) for kind in READS),
        paused=paused_by((body, deployment, cluster)),
        deployment=deployment,
        cluster_deleting=cluster["metadata"]["name"] if cluster and is_deleting(cluster) else "",
        journal=journal,
        prefix=prefix,
        members=members,
        domains=in_turn(domains_of(body, cluster), uid_of(deployment or body)),
        resting=read_resting(body),
        class_digest=class_digest(wish.template.get("spec"), key.namespace, view),
        strays=tuple(machine for machine in members.active if not matches(machine.labels)),
        disruption=disruption(body, members, (wish.replicas, wish.policy), view) if not wish.problem else NO_MATTER,
        **_ownerless(view, body, wish),
    )


def read_wish(body: Obj) -> Wish:
    """``spec`` of a MachineSet; never raises: a spec that slipped past the schema becomes a ``problem``."""
    spec = body.get("spec")
    if not isinstance(spec, Mapping):
        return Wish(problem="spec: must be an object")
    replicas, min_ready = spec.get("replicas", 1), spec.get("minReadySeconds", 0) or 0
    if replicas is None:
        replicas = 1
    if not is_count(replicas) or replicas > limits.MAX_REPLICAS:
        return Wish(problem=f"spec.replicas: {replicas!r} is not a number from 0 to {limits.MAX_REPLICAS}")
    if not is_count(min_ready):
        return Wish(problem=f"spec.minReadySeconds: {min_ready!r} is not a number of seconds")
    pattern = read_pattern(spec, MACHINE)
    if pattern.problem:
        return Wish(problem=pattern.problem)
    policy = spec.get("deletePolicy") or DeletePolicy.RANDOM
    if policy not in tuple(DeletePolicy):
        return Wish(problem=f"spec.deletePolicy: {policy!r} is none of {', '.join(DeletePolicy)}")
    fault = failure_domains_fault(spec.get("failureDomains"))
    if fault:
        return Wish(problem=f"spec.failureDomains: {fault}")
    in_place = _read_in_place(spec.get("inPlaceUpdate"))
    if isinstance(in_place, str):
        return Wish(problem=f"spec.inPlaceUpdate{in_place}")
    selector, template = pattern.selector, pattern.template
    return Wish(replicas, timedelta(seconds=min_ready), str(policy), selector, template, in_place=in_place)


def _read_in_place(found: object) -> InPlaceUpdate | str | None:
    """The wish, None without one, or what is wrong with it."""
    if found is None:
        return None
    if not isinstance(found, Mapping):
        return ": must be an object"
    policy = found.get("policy") or InPlace.PREFER
    if policy not in (InPlace.PREFER, InPlace.REQUIRE):
        return f".policy: {policy!r} is neither {InPlace.PREFER} nor {InPlace.REQUIRE}"
    counts = {name: found.get(name) or 0 for name in ("minAvailable", "partition", "maxUpdating")}
    for name, count in counts.items():
        if not is_count(count):
            return f".{name}: {count!r} is not a number of Machines"
    limit = counts["maxUpdating"] if found.get("maxUpdating") is not None else None
    return InPlaceUpdate(policy == InPlace.REQUIRE, counts["minAvailable"], limit, counts["partition"])


def _owner(body: Obj, view: View) -> Obj | None:
    uid = controller_uid(body)
    return view.by_uid(MACHINE_DEPLOYMENT, uid) if uid else None


def _ownerless(view: View, body: Obj, wish: Wish) -> dict[str, Any]:
    """Orphans of the namespace that match, and the number of those that were released by this MachineSet."""
    namespace, uid = key_of(body).namespace, uid_of(body)
    pools = {uid, controller_uid(body)} - {""}
    orphans, released, detached = [], 0, 0
    for machine in view.indexed(MACHINE, OWNER, ""):
        if machine["metadata"].get("namespace", "") != namespace:
            continue
        pool, _, number = annotations_of(machine).get(names.CLOUDPOOL_DETACHED_FROM_ANNOTATION, "").partition("/")
        detached += bool(number) and pool in pools
        if not is_deleting(machine) and wish.selector.matches(machine["metadata"].get("labels")):
            orphans.append(machine_facts.read(machine))
        elif annotations_of(machine).get(names.RELEASED_FROM_ANNOTATION) == uid:
            released += 1
    found = tuple(sorted(orphans, key=lambda machine: machine.key))
    return {"orphans": found, "released": released, "detached": detached}


def _taken(journal: Ordinals, view: View, key: Key, prefix: str, uid: str) -> list[int]:
    """Reserved ordinals whose Machine exists and belongs to somebody else (released right after it was made)."""
    found = ((o, view.get(MACHINE, Key(key.namespace, machine_name(prefix, o)))) for o in journal.reserved)
    return [ordinal for ordinal, machine in found if machine is not None and controller_uid(machine) != uid]
