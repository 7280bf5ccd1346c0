"""Which Machines to take and to give back.

A Machine whose labels stopped matching is released (a person set it aside) and then replaced. Peers either keep it
owned and uncounted, and create without end (cluster-api#14216), or never notice. Here releasing has a limit of its own:
while as many released Machines exist as the set has replicas, further unmatched Machines are kept and counted, so
whatever rewrites labels can't make more than twice the Machines.
"""

from __future__ import annotations

from dataclasses import dataclass

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.ownership import reference_to, references_with, references_without
from controllers.kernel.refs import MACHINE_SET, uid_of
from controllers.kernel.wording import counted
from controllers.machineset.observe import Observed

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
