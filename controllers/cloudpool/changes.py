"""What a cloudpool client may ask of a pool of Machines, as plans.

Each may die after any write. What then is left to do is said by ``controllers.cloudpool.unfinished``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from api.selectors import SelectorError, from_label_selector
from controllers.cloudpool.messages import Membership, ServiceState
from controllers.cloudpool.pool import MARK, Member, Pool
from controllers.cloudpool.sizing import annotate, record_on, resized, sized, smaller
from controllers.kernel import machine_facts
from controllers.kernel.actions import Delete, Patch
from controllers.kernel.ownership import (
    controller_of,
    controller_uid,
    reference_to,
    references_with,
    references_without,
)
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_SET,
    Obj,
    annotations_of,
    labels_of,
    ref_of,
    resource_version_of,
    spec_of,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class NotMember:
    why: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The pool can't, or must not: nothing is done."""

    why: str


@dataclass(frozen=True, slots=True)
class Illegal:
    """What can't be meant of this pool or this machine; ``instead`` is what to ask for."""

    why: str
    instead: str


@dataclass(frozen=True, slots=True)
class NotYet:
    """The controllers have yet to act on what was asked for before; they take a moment."""

    why: str


Answer = Plan | NotMember | Forbidden | Illegal | NotYet


def resize(pool: Pool, desired: int) -> Answer:
    """``desired`` machines, besides those set aside. Protected ones stay, even if then more are left than asked for."""
    replicas = desired + len(pool.worked_for)
    protected = [member.machine.id for member in pool.staying if not member.machine.membership.evictable]
    if replicas < pool.replicas and protected:
        if pool.rolling:
            return _in_rollout(pool, f"machine {protected[0]} is protected by its membership status")
        if not pool.applied:
            return NotYet(f"{pool.ref} was changed, and its controller has yet to act on that")
    return sized(pool, replicas)


def terminate(pool: Pool, id_: str, decrement: bool) -> Answer:
    """Without ``decrement`` another Machine takes its place."""
    if pool.is_placeholder(id_):
        if decrement and pool.rolling:
            return _in_rollout(pool, f"machine {id_} is yet to be made")
        return Plan(steps([resized(pool, pool.replicas - 1, f"{id_} is not to be made")] if decrement else []))
    member = _evictable(pool, id_)
    if not isinstance(member, Member):
        return member
    if not decrement:
        return Plan(steps([Delete(member.facts.ref, f"{_terminates(id_)}, to be replaced")]))
    if pool.rolling:
        return _in_rollout(pool, f"another machine might go in place of {id_}")
    return _smaller_by(pool, member, id_)


def _smaller_by(pool: Pool, member: Member, id_: str) -> Answer:
    """The set is to be one smaller, and it has to be this member that goes."""
    if not pool.applied:
        return NotYet(f"{pool.ref} was changed, and its controller has yet to act on that")
    if member.marked and pool.takes_the_marked:
        return Plan()  # asked again: it is on its way out
    if pool.takes_the_marked and any(each.marked for each in pool.staying):
        # If two are marked, the set might delete this one before its size is lowered, and the other would stay.
        return NotYet(f"others of {pool.ref} are yet to go")
    if others := pool.scaled.marked_by_another(MARK, besides=(member.facts.key,)):
        first = others[0].key.name
        return Forbidden(f"Machine {first} of {pool.ref} is marked to go first, and would go in place of {id_}")
    return Plan(smaller(pool, [member], pool.replicas - 1, _terminates(id_)).steps())


def _terminates(id_: str) -> str:
    return f"a client of the cloudpool terminates {id_}"


def detach(pool: Pool, id_: str, decrement: bool) -> Answer:
    """The Machine lives on without an owner. ``decrement`` comes after: a smaller set that owns it might take it."""
    member = _evictable(pool, id_)
    if not isinstance(member, Member):
        return member
    if (lost := _labels_lost(member)) is None:
        why = f"the selector of MachineSet {member.owner['metadata']['name']} can't be left by losing labels"
        return Illegal(why, "terminate the machine, or give the MachineSet a selector of matchLabels alone")
    metadata: dict[str, Any] = {
        "labels": lost,
        "ownerReferences": references_without(member.facts.body, uid_of(member.owner)),
    }
    if decrement and pool.detached:  # the pool remembers no more than one
        return NotYet(f"the MachineSets of {pool.ref} have yet to act on an earlier detachment")
    if decrement:
        number = f"{uid_of(pool.body)}/{member.facts.resource_version}"
        metadata["annotations"] = {names.CLOUDPOOL_DETACHED_FROM_ANNOTATION: number}
    why = f"a client of the cloudpool detaches {id_}"
    release = Patch(member.facts.ref, {"metadata": metadata}, why, resource_version=member.facts.resource_version)
    return Plan(steps([release]))


def attach(pool: Pool, machine: Obj | None, id_: str) -> Answer:
    """A MachineSet takes a Machine without an owner, and is one larger.

    Its size and a bar on new Machines are one write, so that it does not make one itself before it owns this one.
    """
    if machine is None:
        return NotMember(f"there is no Machine {id_}")
    if any(machine["metadata"]["name"] == detached["metadata"]["name"] for detached in pool.detached):
        return NotYet(f"the MachineSets of {pool.ref} have yet to act on the detachment of {id_}")
    illegal = _illegal_to_attach(pool, machine, id_)
    if illegal is not None:
        return illegal
    name, why = machine["metadata"]["name"], f"a client of the cloudpool attaches {id_}"
    unbar = record_on(pool, {names.DISABLE_CREATE_ANNOTATION: None}, why)
    if pool.has(name):
        return Plan(steps([unbar] if pool.barred_for == name else []))
    # The place that another one never took is this one's.
    unused = 1 if pool.barred_for and not pool.has(pool.barred_for) else 0
    bar = {names.DISABLE_CREATE_ANNOTATION: f"{MARK}/{name}"}
    grow = resized(pool, pool.replicas + 1 - unused, why, bar)
    selector = spec_of(pool.body).get("selector") or {}
    metadata = {
        "labels": dict(selector.get("matchLabels") or {}),
        "ownerReferences": references_with(machine, reference_to(MACHINE_SET, pool.body)),
    }
    take = Patch(ref_of(MACHINE, machine), {"metadata": metadata}, why, resource_version=resource_version_of(machine))
    free = Patch(pool.ref, unbar.patch, why)  # whatever its version is after the others
    return Plan(steps([] if pool.barred_for == name else [grow], [take], [free]))


def _illegal_to_attach(pool: Pool, machine: Obj, id_: str) -> Illegal | None:
    if pool.kind != MACHINE_SET:
        return Illegal(
            f"machine {id_} cannot be attached: the pool is {pool.ref}, which makes all of its Machines itself",
            "ask for a larger size, or attach it to a pool that is a MachineSet of its own",
        )
    if controller_of(pool.body) is not None:
        return Illegal(
            f"machine {id_} cannot be attached: the size of {pool.ref} is set by {_owner_title(pool.body)}",
            "ask for a larger size there, or attach it to a pool that is a MachineSet of its own",
        )
    facts = machine_facts.read(machine)
    if facts.deleting or facts.failed:
        state = "is being deleted" if facts.deleting else "has failed for good"
        return Illegal(f"machine {id_} cannot be attached: it {state}", "ask for a larger size")
    if controller_of(machine) is not None and controller_uid(machine) != uid_of(pool.body):
        return Illegal(
            f"machine {id_} cannot be attached: it belongs to {_owner_title(machine)}", "detach it from there first"
        )
    if names.CLOUDPOOL_DETACHED_FROM_ANNOTATION in annotations_of(machine):
        return Illegal(
            f"machine {id_} cannot be attached: it is still being detached from another pool",
            "ask again in a while, with a gateway serving that pool; if the pool is gone, take away the annotation "
            f"{names.CLOUDPOOL_DETACHED_FROM_ANNOTATION}",
        )
    if (spec_of(pool.body).get("selector") or {}).get("matchExpressions"):
        return Illegal(
            f"machine {id_} cannot be attached: the selector of {pool.ref} has expressions, and nobody knows which "
            "labels they want",
            "attach it to a pool that is a MachineSet with a selector of matchLabels alone",
        )
    return None


def set_service_state(pool: Pool, id_: str, state: ServiceState) -> Answer:
    member = pool.member(id_)
    if member is None:
        return NotMember(f"{id_} is no machine of the pool")
    return Plan(steps([annotate(member, names.CLOUDPOOL_SERVICE_STATE_ANNOTATION, str(state))]))


def set_membership(pool: Pool, id_: str, membership: Membership) -> Answer:
    """What it leads to is what ``unfinished.settle`` finds then. Set aside: another one is made in its place.
    Disposable: it is deleted, and replaced. The desired size stays."""
    member = pool.member(id_)
    if member is None or not member.removable:
        return NotMember(f"{id_} is no machine of the pool")
    text = json.dumps(membership.to_json(), separators=(",", ":"))
    return Plan(steps([annotate(member, names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, text)]))


def _in_rollout(pool: Pool, why: str) -> Forbidden:
    return Forbidden(f"a rollout of {pool.ref} is under way, and {why}: ask again when it has ended")


def _evictable(pool: Pool, id_: str) -> Member | NotMember | Forbidden:
    member = pool.member(id_)
    if member is None or not member.removable:
        return NotMember(f"{id_} is no machine of the pool")
    if not member.machine.membership.evictable:
        return Forbidden(f"machine {id_} cannot be evicted: prevented by its membership status")
    return member


def _labels_lost(member: Member) -> Mapping[str, None] | None:
    """The labels to take away so that its MachineSet does not select it; None if that can't be had so."""
    selector = spec_of(member.owner).get("selector") or {}
    lost = [key for key in selector.get("matchLabels") or {} if key != names.CLUSTER_NAME_LABEL]
    left = {key: value for key, value in labels_of(member.facts.body).items() if key not in lost}
    try:
        selected = from_label_selector(selector).matches(left)
    except SelectorError:
        return None
    return None if selected else dict.fromkeys(lost)


def _owner_title(machine: Obj) -> str:
    owner: Mapping[str, Any] = controller_of(machine) or {}
    return f"{owner.get('kind')} {owner.get('name')}"
