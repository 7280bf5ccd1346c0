"""What whoever was interrupted between two writes has left to do.

A request's first write says what a client asks of a Machine, and lies on the Machine; the second says that it has
been done, and lies on the pool, in one patch with the size. Where both differ, somebody was interrupted, or is about to
write again: ``settle`` is the second half of those requests as well as their repair.
"""

from __future__ import annotations

from api import names
from controllers.cloudpool.pool import Pool, detachment_of
from controllers.cloudpool.sizing import record_on, resized, sized
from controllers.kernel.actions import Action, Delete, Patch
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import MACHINE, Obj, annotations_of, ref_of, uid_of

_UNBARRED = {names.DISABLE_CREATE_ANNOTATION: None}


def settle(pool: Pool) -> Plan:
    """One thing at a time; nothing to do if no steps are in it."""
    if pool.set_aside != pool.worked_for:
        listed = ",".join(sorted(pool.set_aside)) or None
        return sized(pool, pool.desired + len(pool.set_aside), {names.CLOUDPOOL_SET_ASIDE_ANNOTATION: listed})
    given_up = [member for member in pool.staying if member.given_up]
    if given_up:
        gone: list[Action] = [
            Delete(member.facts.ref, f"a client of the cloudpool gives {member.machine.id} up") for member in given_up
        ]
        return Plan(steps(gone))
    return _shrunk_for(pool)


def leave_attaching(pool: Pool) -> Plan:
    """Of whoever attached a Machine: new ones may be made again, and its place goes if it never took it."""
    name = pool.barred_for
    if not name:
        return Plan()
    why = f"whoever attached Machine {name} was interrupted"
    if pool.has(name):
        return Plan(steps([record_on(pool, _UNBARRED, why)]))
    return Plan(steps([resized(pool, pool.replicas - 1, f"{why} before", _UNBARRED)]))


def _shrunk_for(pool: Pool) -> Plan:
    """The one that is accounted for is forgotten first: the pool remembers no more than one.

    It is forgotten once the MachineSets know the size: until then they make no Machine in its place.
    """
    last = annotations_of(pool.body).get(names.CLOUDPOOL_DETACHED_ANNOTATION, "")
    for machine in pool.detached:
        if detachment_of(machine, uid_of(pool.body)) == last:
            return Plan(steps([_forget(machine)])) if pool.carried_out else Plan()
    for machine in pool.detached:
        record = {names.CLOUDPOOL_DETACHED_ANNOTATION: detachment_of(machine, uid_of(pool.body))}
        return sized(pool, pool.replicas - 1, record)
    return Plan()


def _forget(machine: Obj) -> Patch:
    annotations = {names.CLOUDPOOL_DETACHED_FROM_ANNOTATION: None}
    why = f"the pool is one less for {machine['metadata']['name']}"
    return Patch(ref_of(MACHINE, machine), {"metadata": {"annotations": annotations}}, why)
