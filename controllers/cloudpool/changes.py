"""What a cloudpool client may ask of a pool of Machines, as plans: marks first, then ``replicas``, by exactly as many.

Each write of ``replicas`` is refused if the object has changed since it was looked at; then all is looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from api import names
from api.selectors import SelectorError, from_label_selector
from controllers.cloudpool.messages import Membership, ServiceState
from controllers.cloudpool.pool import MARK, Member, Pool
from controllers.kernel.actions import Action, Delete, Patch, Scale
from controllers.kernel.ownership import controller_of, reference_to, references_with, references_without
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import (
    MACHINE,
    MACHINE_SET,
    Obj,
    annotations_of,
    labels_of,
    ref_of,
    resource_version_of,
    uid_of,
)
from controllers.kernel.victims import in_order
from controllers.kernel.wording import counted


@dataclass(frozen=True, slots=True)
class NotMember:
    why: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The pool can't, or must not: nothing is done."""

    why: str


Answer = Plan | NotMember | Forbidden


def resize(pool: Pool, desired: int) -> Plan:
    """``desired`` machines, besides those set aside. Protected ones stay, even if then more are left than asked for."""
    return _to(pool, desired + pool.set_aside)


def terminate(pool: Pool, id_: str, decrement: bool) -> Answer:
    """Without ``decrement`` another Machine takes its place."""
    if pool.is_placeholder(id_):
        return Plan(steps([_scale(pool, pool.replicas - 1, f"{id_} is not to be made")] if decrement else []))
    member = _evictable(pool, id_)
    if not isinstance(member, Member):
        return member
    why = f"a client of the cloudpool terminates {id_}"
    if not decrement:
        return Plan(steps([Delete(member.facts.ref, f"{why}, to be replaced")]))
    return Plan(steps(_marks([member], why), [_scale(pool, pool.replicas - 1, why)]))


def detach(pool: Pool, id_: str) -> Answer:
    """The Machine lives on without an owner. ``decrement`` comes after: a smaller set that owns it might take it."""
    member = _evictable(pool, id_)
    if not isinstance(member, Member):
        return member
    lost = _labels_lost(member)
    if lost is None:
        return Forbidden(
            f"the selector of MachineSet {member.owner['metadata']['name']} can't be left by losing labels"
        )
    metadata = {"labels": lost, "ownerReferences": references_without(member.facts.body, uid_of(member.owner))}
    why = f"a client of the cloudpool detaches {id_}"
    release = Patch(member.facts.ref, {"metadata": metadata}, why, resource_version=member.facts.resource_version)
    return Plan(steps([release]))


def decrement(pool: Pool) -> Plan:
    """One machine less is wanted."""
    return resize(pool, max(0, pool.desired - 1))


def attach(pool: Pool, machine: Obj | None, id_: str) -> Answer:
    """A MachineSet takes a Machine without an owner, and is one larger.

    Its size and a bar on new Machines are one write, so that it does not make one itself before it owns this one.
    """
    if machine is None:
        return NotMember(f"there is no Machine {id_}")
    if pool.kind != MACHINE_SET:
        return Forbidden("a MachineDeployment makes all of its Machines itself; attach to a pool that is a MachineSet")
    if controller_of(machine) is not None:
        return Forbidden(f"Machine {id_} belongs to {_owner_title(machine)}")
    selector = (pool.body.get("spec") or {}).get("selector") or {}
    if selector.get("matchExpressions"):
        return Forbidden(f"the selector of MachineSet {pool.name} has expressions: nobody knows which labels it wants")
    why = f"a client of the cloudpool attaches {id_}"
    barred: dict[str, Any] = {"metadata": {"annotations": {names.DISABLE_CREATE_ANNOTATION: MARK}}}
    grow = Patch(pool.ref, {**barred, "spec": {"replicas": pool.replicas + 1}}, why, resource_version=pool.version)
    metadata = {
        "labels": dict(selector.get("matchLabels") or {}),
        "ownerReferences": references_with(machine, reference_to(MACHINE_SET, pool.body)),
    }
    take = Patch(ref_of(MACHINE, machine), {"metadata": metadata}, why, resource_version=resource_version_of(machine))
    barred_already = annotations_of(pool.body).get(names.DISABLE_CREATE_ANNOTATION) == MARK
    return Plan(steps([] if barred_already else [grow], [take], [_unbar(pool, why)]))


def set_service_state(pool: Pool, id_: str, state: ServiceState) -> Answer:
    member = pool.member(id_)
    if member is None:
        return NotMember(f"{id_} is no machine of the pool")
    return Plan(steps([_annotate(member, names.CLOUDPOOL_SERVICE_STATE_ANNOTATION, str(state))]))


def set_membership(pool: Pool, id_: str, membership: Membership) -> Answer:
    """Set aside: another one is made in its place. Disposable: it is deleted, and replaced. The desired size stays."""
    member = pool.member(id_)
    if member is None or not member.machine.allocated:
        return NotMember(f"{id_} is no machine of the pool")
    text = json.dumps(membership.to_json(), separators=(",", ":"))
    said = _annotate(member, names.CLOUDPOOL_MEMBERSHIP_ANNOTATION, text)
    if not membership.active and membership.evictable:
        return Plan(steps([said], [Delete(member.facts.ref, f"a client of the cloudpool gives {id_} up")]))
    then = replace(member, machine=replace(member.machine, membership=membership))
    others = tuple(then if each is member else each for each in pool.members)
    after = replace(pool, members=others)
    # The size goes first: between the two there is one machine too many rather than one too few.
    return Plan(_to(after, pool.desired + after.set_aside).steps + steps([said]))


def leftovers(pool: Pool) -> Plan:
    """What somebody who was interrupted left behind: a bar on new Machines."""
    if annotations_of(pool.body).get(names.DISABLE_CREATE_ANNOTATION) != MARK:
        return Plan()
    return Plan(steps([_unbar(pool, "whoever attached a Machine was interrupted")]))


def _to(pool: Pool, replicas: int) -> Plan:
    """Places that are not filled yet go first, then Machines in the order that MachineSets themselves keep."""
    going = len(pool.staying) - replicas
    if replicas >= pool.replicas or going <= 0:
        why = f"a client of the cloudpool asks for {counted(replicas, 'Machine')}"
        spared = [member for member in pool.staying if member.marked and not pool.surplus]
        unmarked: list[Action] = [_unmark(member) for member in spared]
        return Plan(steps(unmarked, _scaled(pool, replicas, why)))
    by_name = {m.facts.key.name: m for m in pool.staying if m.machine.membership.evictable}
    order = in_order((member.facts for member in by_name.values()), pool.policy)[:going]
    victims = [by_name[facts.key.name] for facts in order]
    left = max(replicas, len(pool.staying) - len(victims))
    why = f"a client of the cloudpool asks for {counted(replicas, 'Machine')}"
    notes = (f"{left - replicas} more are protected by their membership status",) if left > replicas else ()
    return Plan(steps(_marks(victims, why), _scaled(pool, left, why)), notes=notes)


def _evictable(pool: Pool, id_: str) -> Member | NotMember | Forbidden:
    member = pool.member(id_)
    if member is None or not member.machine.allocated:
        return NotMember(f"{id_} is no machine of the pool")
    if not member.machine.membership.evictable:
        return Forbidden(f"machine {id_} cannot be evicted: prevented by its membership status")
    return member


def _marks(members: Iterable[Member], why: str) -> list[Action]:
    return [
        _annotate(member, names.DELETE_MACHINE_ANNOTATION, MARK, why)
        for member in members
        if not member.facts.annotated
    ]


def _unmark(member: Member) -> Action:
    return _annotate(member, names.DELETE_MACHINE_ANNOTATION, None, "it stays after all")


def _annotate(member: Member, key: str, value: str | None, why: str = "a client of the cloudpool says so") -> Patch:
    return Patch(member.facts.ref, {"metadata": {"annotations": {key: value}}}, why)


def _scaled(pool: Pool, replicas: int, why: str) -> list[Action]:
    """Nothing if it is so already."""
    return [_scale(pool, replicas, why)] if replicas != pool.replicas else []


def _scale(pool: Pool, replicas: int, why: str) -> Scale:
    return Scale(pool.ref, max(0, replicas), why, pool.version)


def _unbar(pool: Pool, why: str) -> Patch:
    return Patch(pool.ref, {"metadata": {"annotations": {names.DISABLE_CREATE_ANNOTATION: None}}}, why)


def _labels_lost(member: Member) -> Mapping[str, None] | None:
    """The labels to take away so that its MachineSet does not select it; None if that can't be had so."""
    selector = (member.owner.get("spec") or {}).get("selector") or {}
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
