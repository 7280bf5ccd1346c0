"""Which Machines go when there are too many, and when the choice is made.

The choice is written into the journal (``status.ordinals.leaving``) before the first delete, so that a later reconcile
with an older or a half-new view deletes those and no others (machine-controller#390: 6 → 2 removed all six).
"""

from __future__ import annotations

from dataclasses import replace

from controllers.kernel.actions import Delete
from controllers.kernel.conditions import counted
from controllers.kernel.deletions import Rank, in_order, rank
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import Removal, removal
from controllers.kernel.names import machine_name
from controllers.kernel.refs import MACHINE, Key, Ref, generation_of
from controllers.machineset.disruption import Disruption
from controllers.machineset.observe import Claims, Observed

MAX_BATCH = 1000
"""Machines deleted in one reconcile."""
REQUEUE_AFTER = 1.0
"""Seconds after which a scale-down that was just asked for is looked at again if nothing else happens."""

_WHY = {
    Rank.DELETING: "it is going already",
    Rank.ANNOTATED: "it is marked for deletion",
    Rank.FAILED: "it failed, is unhealthy or has no Node",
    Rank.NOT_READY: "it is not ready",
    Rank.AILING: "it failed or is unhealthy, though it is ready",
    Rank.READY: "all are ready",
    Rank.PROTECTED: "it was protected when this was read",
}


def _why(machine: MachineFacts, disruption: Disruption) -> str:
    if machine.selected_for_deletion:
        return "a health check asks to replace it"
    if rank(machine) is not Rank.READY:
        return _WHY[rank(machine)]
    return disruption.why.get(machine.uid) or _WHY[Rank.READY] + (
        f"; {disruption.unknown}" if disruption.unknown else ""
    )


def asked_just_now(observed: Observed) -> bool:
    """True until a status with this generation is visible.

    The Cluster Autoscaler marks a Machine and then lowers ``replicas``; the two arrive through different watches. One
    round trip of the status between seeing the new ``replicas`` and choosing victims lets the mark arrive first
    (autoscaler#8494; cluster-api#75).
    """
    return observed.status.get("observedGeneration") != generation_of(observed.body)


def selected_for_deletion(observed: Observed, claims: Claims) -> Removal:
    """Machines to delete now, beyond those that were selected before.

    Machines that are released in this reconcile are no longer there to be too many: counted here as well, one that
    leaves by its labels would take another one with it.
    """
    released = {machine.key for machine in claims.released}
    staying = tuple(machine for machine in observed.members.active if machine.key not in released)
    members = replace(observed.members, active=staying)
    desired, places = observed.desired, observed.disruption.places
    found = removal(members, desired.replicas, desired.policy, observed.domains, places)
    return Removal(found.pending[:MAX_BATCH], found.victims[:MAX_BATCH])


def taken_back(observed: Observed, missing: int) -> frozenset[str]:
    """Names of Machines chosen earlier that are wanted after all, since the replicas were raised again or others leave
    the selector.

    Whether their delete was sent is not known; if it was, they are seen going soon and replaced then. The best go back,
    but none that is to go for its health.
    """
    best_last = in_order(observed.members.recallable, observed.desired.policy)
    return frozenset(machine.key.name for machine in best_last[len(best_last) - min(missing, len(best_last)) :])


def deletes(observed: Observed, chosen: Removal, leaving: frozenset[str]) -> list[Delete]:
    """Deletes of the chosen ones, and once more of those that are ``leaving`` and not seen going yet."""
    namespace, desired = observed.ref.key.namespace, observed.desired
    title = f"MachineSet {observed.ref.key.name} needs {counted(desired.replicas, 'Machine')}"
    actions = [
        Delete(
            Ref(MACHINE, Key(namespace, machine_name(observed.prefix, ordinal))),
            why=f"{title}; this one was not seen yet",
        )
        for ordinal in chosen.pending
    ]
    actions.extend(
        _delete(machine, f"{title}; this one goes first: {_why(machine, observed.disruption)}")
        for machine in chosen.victims
    )
    actions.extend(
        _delete(machine, f"{title}; decided earlier")
        for machine in observed.members.leaving
        if machine.key.name in leaving
    )
    return actions


def _delete(machine: MachineFacts, why: str) -> Delete:
    """Refused if the Machine has changed since: it may have been protected in that moment."""
    return Delete(machine.ref, why, resource_version=machine.resource_version)
