"""View → Observed: one MachineDeployment, its MachineSets and, through them, each of its Machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from api import names
from api.names import DeletePolicy, DisruptionReason, InPlace
from api.reading import Reading
from api.views import MachineSetSpecView
from controllers.kernel import machine_facts
from controllers.kernel.conditions import parse_time
from controllers.kernel.deletions import UNPLACED, in_order
from controllers.kernel.failure_domains import domains_of
from controllers.kernel.in_place import Revision
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import Members, partition, removal
from controllers.kernel.names import Ordinals, OrdinalsError, machine_prefix, machine_set_name, read_ordinals
from controllers.kernel.ownership import cluster_of, controlled, paused_by
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
    labels_of,
    ref_of,
    spec_of,
    uid_of,
)
from controllers.kernel.template import is_count, rollout_part, template_hash, template_problem
from controllers.kernel.view import OWNER, View
from controllers.machinedeployment.effective_template import (
    Record,
    read_record,
    template_after_rollback,
    with_rollout_after,
)
from controllers.machinedeployment.spec import UNLIMITED, Allowance, DeploymentSpec, allowance, parse_spec

READS = (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_CLASS, CLUSTER)
_DAWN = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SetState:
    """One MachineSet. ``going`` are its members that stay at ``replicas``, in the order in which they would go.

    None in ``going`` stands for one that is not there yet (missing, or reserved and not seen).
    """

    body: Obj
    replicas: int
    members: Members
    going: tuple[MachineFacts | None, ...]
    available: int
    revision: int
    current: bool
    """Its template makes the same Machines as the deployment's."""
    readable: bool = True
    """False: its spec has types that no schema allows. It is left alone; its own controller says what is wrong."""
    outdated: frozenset[str] = frozenset()
    """UIDs of Machines that don't have its template yet; only looked for where it updates in place."""
    updating: frozenset[str] = frozenset()
    """UIDs of Machines whose host is not as their spec asks; only looked for where it updates in place."""

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_SET, self.body)

    @property
    def uid(self) -> str:
        return uid_of(self.body)

    @property
    def name(self) -> str:
        return self.ref.key.name

    @property
    def created(self) -> datetime:
        return parse_time(self.body["metadata"].get("creationTimestamp")) or _DAWN

    @property
    def total(self) -> int:
        """The most Machines it may have now: those asked for, or those that still have to go."""
        return max(self.replicas, self.members.alive)

    @property
    def scaled_for(self) -> int | None:
        """Replicas of the deployment for which it was sized; None without a record."""
        return self.recorded(names.DESIRED_REPLICAS_ANNOTATION)

    def recorded(self, annotation: str) -> int | None:
        text = annotations_of(self.body).get(annotation, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    @property
    def protected(self) -> tuple[MachineFacts, ...]:
        """Machines that stay, whatever its size."""
        return self.members.protected

    @property
    def floor(self) -> int:
        """The size below which nobody makes it smaller: its MachineSet would let no Machine go for that."""
        return min(self.replicas, len(self.protected))

    @property
    def quiet(self) -> bool:
        """It is as it was asked to be."""
        return self.members.existing == self.replicas and not self.members.leaving

    @property
    def empty(self) -> bool:
        """Nothing of it is left, not even a Machine that is going."""
        return self.replicas == 0 and self.members.alive == 0 and not (self.members.deleting or self.members.preserved)


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that the plan of one MachineDeployment may know. ``sets`` come oldest first.

    ``orphans``: MachineSets of the namespace that match the selector and that nobody controls.
    ``namesake``: the MachineSet that has the name which a new one would get, whoever owns it.
    ``allowed``: what disruption budgets say now.
    ``rollback``: the record by which ``desired.template`` is another than the user's; None if it is the user's own.
    ``history_name``: a free name for a MachineSet that keeps the template of the biggest one, "" if none is needed.
    """

    body: Obj
    desired: DeploymentSpec
    now: datetime
    complete: bool = True
    paused: str = ""
    cluster_deleting: str = ""
    sets: tuple[SetState, ...] = ()
    orphans: tuple[Obj, ...] = ()
    namesake: Obj | None = None
    rollback: Record | None = None
    allowed: Allowance = UNLIMITED
    history_name: str = ""

    @property
    def ref(self) -> Ref:
        return ref_of(MACHINE_DEPLOYMENT, self.body)

    @property
    def status(self) -> Mapping[str, Any]:
        return _status(self.body)


def observe(key: Key, view: View) -> Observed | None:
    """None if the MachineDeployment is gone."""
    body = view.get(MACHINE_DEPLOYMENT, key)
    if body is None:
        return None
    desired = parse_spec(body)
    cluster = cluster_of(body, view) if not desired.problem else None
    owned = controlled(body, MACHINE_SET, view)
    if not desired.problem:
        desired = replace(desired, template=with_rollout_after(desired.template, owned, desired.after, view.now))
    record = read_record(_status(body)) if not desired.problem else None
    in_force = template_after_rollback(record, desired.template, owned)
    if in_force is not None:
        desired = replace(desired, template=in_force)
    want = rollout_part(desired.template)
    sets = tuple(
        sorted((_state(found, desired, want, (view, cluster)) for found in owned), key=lambda s: (s.created, s.name))
    )
    return Observed(
        body=body,
        desired=desired,
        now=view.now,
        complete=all(view.complete(kind) for kind in READS),
        paused=paused_by((body, cluster)),
        cluster_deleting=cluster["metadata"]["name"] if cluster and is_deleting(cluster) else "",
        sets=sets,
        orphans=_orphans(view, key.namespace, desired),
        namesake=view.get(MACHINE_SET, Key(key.namespace, machine_set_name(key.name, hash_for_new(body, desired)))),
        allowed=allowance(desired.budgets, _reason(desired), view.now),
        rollback=record if in_force is not None else None,
        history_name=_history_name(key, sets, view) if desired.in_place != InPlace.NEVER else "",
    )


def _reason(desired: DeploymentSpec) -> DisruptionReason:
    """What the rollout does to Machines, in the words of disruption budgets."""
    return DisruptionReason.REPLACE if desired.in_place == InPlace.NEVER else DisruptionReason.IN_PLACE_UPDATE


def biggest(sets: tuple[SetState, ...]) -> SetState | None:
    """The one with the most Machines, the newest of equals; None if there is no Machine and none is asked for."""
    usable = [state for state in sets if state.readable and not is_deleting(state.body) and state.total]
    return max(usable, key=lambda state: (state.members.existing, state.created, state.name), default=None)


def _history_name(key: Key, sets: tuple[SetState, ...], view: View) -> str:
    """The biggest set has the name that derives from the template which it had first, so that one may be taken."""
    holder = biggest(sets)
    if holder is None:
        return ""
    template = spec_of(holder.body).get("template") or {}
    candidates = (machine_set_name(key.name, template_hash(template, n)) for n in range(_MOST_NAMES))
    return next((name for name in candidates if view.get(MACHINE_SET, Key(key.namespace, name)) is None), "")


_MOST_NAMES = 10


def hash_for_new(body: Obj, desired: DeploymentSpec) -> str:
    """The template hash that a new MachineSet gets; collisions seen so far are part of it."""
    collisions = _status(body).get("collisionCount") or 0
    return template_hash(desired.template, collisions if is_count(collisions) and isinstance(collisions, int) else 0)


def _state(body: Obj, desired: DeploymentSpec, want: Mapping[str, Any], around: tuple[View, Obj | None]) -> SetState:
    """A MachineSet that can't be read is counted as it is; its own controller reports what is wrong."""
    view, cluster = around
    found = Reading.of_spec(body)
    spec = MachineSetSpecView.read(found)
    countable = not found.is_wrong("replicas")
    replicas = spec.replicas if countable and not is_deleting(body) else 0
    try:
        journal = read_ordinals(_status(body))
    except OrdinalsError:
        journal = Ordinals()
    owned = [machine_facts.read(machine) for machine in controlled(body, MACHINE, view)]
    members = partition(owned, journal, machine_prefix(body["metadata"]["name"], uid_of(body)), view.now)
    template = spec.template
    readable = isinstance(template, Mapping) and not template_problem(template)
    digest = class_digest(spec_of(template or {}), key_of(body).namespace, view) if readable else ""
    updates = _updates(spec, members, digest) if readable else (frozenset[str](), frozenset[str]())
    going = _going(members, replicas, spec.delete_policy, domains_of(body, cluster), _available_first(desired, view))
    return SetState(
        body=body,
        replicas=replicas,
        members=members,
        going=going,
        available=sum(1 for m in going if m is not None and m.is_available(desired.min_ready, view.now)),
        revision=_number(annotations_of(body).get(names.REVISION_ANNOTATION)),
        current=readable and not is_deleting(body) and rollout_part(template or {}) == want,
        readable=readable and countable,
        outdated=updates[0],
        updating=updates[1],
    )


def _updates(spec: MachineSetSpecView, members: Members, digest: str) -> tuple[frozenset[str], frozenset[str]]:
    """Machines that lack the template, and Machines whose host is being changed; none where Machines are replaced."""
    if spec.in_place_update is None:
        return frozenset(), frozenset()
    revision = Revision(spec.template or {}, digest)
    outdated = frozenset(machine.uid for machine in members.active if not revision.is_of(machine))
    return outdated, frozenset(machine.uid for machine in members.active if revision.is_on_its_way(machine))


def _status(body: Obj) -> Mapping[str, Any]:
    status = body.get("status")
    return status if isinstance(status, Mapping) else {}


def _going(
    members: Members,
    replicas: int,
    policy: str,
    domains: tuple[str, ...],
    worst: Callable[[Members], Mapping[str, int]],
) -> tuple[MachineFacts | None, ...]:
    """Machines that stay at ``replicas``, first victim first, in the order that the MachineSet uses.

    How much a Machine's going would disturb is for its MachineSet to find out: here the ``worst`` is taken for granted.
    """
    places = worst(members) if policy == DeletePolicy.LEAST_DISRUPTIVE else UNPLACED
    decided = removal(members, replicas, policy, domains, places)
    pending = len(members.pending) - len(decided.pending)
    staying = in_order(members.active, policy, domains, places)[len(decided.victims) :]
    missing = max(replicas - pending - len(staying), 0)
    return (*(None for _ in range(missing + pending)), *staying)


def _available_first(desired: DeploymentSpec, view: View) -> Callable[[Members], Mapping[str, int]]:
    """Of equally good victims those go that are missed most."""
    return lambda members: {m.uid: 0 for m in members.active if m.is_available(desired.min_ready, view.now)}


def _orphans(view: View, namespace: str, desired: DeploymentSpec) -> tuple[Obj, ...]:
    if desired.problem:
        return ()
    return tuple(
        body
        for body in view.indexed(MACHINE_SET, OWNER, "")
        if body["metadata"].get("namespace", "") == namespace
        and not is_deleting(body)
        and desired.selector.matches(labels_of(body))
    )


def _number(text: str | None) -> int:
    """A revision; 0 for none or an unreadable one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else 0
