"""Observed → Plan for one MachineSet.

    journal (guarded status patch) → adopt, release, propagate, create or delete → one event

The journal is written first and only if the MachineSet is still the one observed; so whatever follows was decided on
its newest version. Nothing after it needs an order: each action is right alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from controllers.kernel.actions import Action, Create, Delete, Event, Patch
from controllers.kernel.budgets import StatusChange, hold_back
from controllers.kernel.conditions import counted, guarded, invalid, new_failure, some_of, status_step
from controllers.kernel.machine_facts import protection_sentence
from controllers.kernel.members import Removal
from controllers.kernel.names import Ordinals
from controllers.kernel.plan import Blocked, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.refs import is_deleting
from controllers.machineset import creation, deletion_order, propagation
from controllers.machineset.creation import (
    NO_SPREAD,
    Hold,
    Spread,
    move_patches,
    moved,
    places,
    spread_news,
    spread_over_domains,
)
from controllers.machineset.observe import Claims, Observed, claim_patches, claims, freeze_reason
from controllers.machineset.propagation import in_place_permissions, in_place_updates
from controllers.machineset.remediation import NO_REMEDIATION, Remediation, places_for, remediation
from controllers.machineset.status import Findings, deletions, invalid_patch, paused_patch, status_patch

UNREAD = 5.0
"""Seconds to wait for a complete view."""
RETRY = 5.0
"""Seconds after which creates and deletes whose effect is not seen are repeated."""
HELD = 60.0
"""Seconds after which a held creation is looked at again if nothing changes."""
CREATED, DELETED = "SuccessfulCreate", "SuccessfulDelete"
NAMES_IN_EVENT = 5
NO_CLAIMS, NO_REMOVAL = Claims(), Removal((), ())


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do in this reconcile, and the journal that must be written before."""

    ordinals: Ordinals
    claims: Claims = NO_CLAIMS
    created: tuple[int, ...] = ()
    removal: Removal = NO_REMOVAL
    held: Hold | None = None
    remediation: Remediation = NO_REMEDIATION
    spread: Spread = NO_SPREAD
    notes: tuple[str, ...] = ()


def plan(observed: Observed) -> Plan:
    if not observed.complete:
        return Plan(outcome=Wait(UNREAD, "Machines, sets or Clusters are not completely read yet"))
    if observed.paused:
        return Plan(
            status_step(observed.ref, observed.body, paused_patch(observed)), Settled(), (f"paused: {observed.paused}",)
        )
    if observed.desired.problem:
        return invalid(observed.ref, observed.body, invalid_patch(observed), observed.desired.problem)
    decision = replace(decide(observed), spread=spread_over_domains(observed))
    changes = _changes(observed, decision)
    frozen = freeze_reason(observed, decision.claims)
    patch = status_patch(
        observed, decision.ordinals, Findings(decision.held, frozen, decision.remediation, decision.spread)
    )
    delay = 0.0 if changes else _hold_back(observed, patch)
    first: list[Action] = []
    if changes or (patch and not delay):
        first.append(guarded(observed.ref, observed.body, patch, _why(decision)))
    failures = new_failure(observed.ref, observed.status, patch) if first else []
    failures += spread_news(observed, decision.spread) if first else []
    return Plan(
        steps(first, [*changes, *failures], _events(observed, changes)),
        _outcome(observed, decision, delay),
        decision.notes,
    )


def decide(observed: Observed) -> Decision:
    """Partition what there is to do: never creates and deletes in one reconcile."""
    members = observed.members
    seen = observed.ordinals.reserved.difference(members.pending)
    ordinals = observed.ordinals.without(seen).select_for_deletion(machine.key.name for machine in members.leaving)
    if is_deleting(observed.body):
        return Decision(ordinals, held=creation.hold(observed))
    claimed = claims(observed)
    sick = remediation(observed)
    if sick.victims:
        leaving = ordinals.leaving.union(machine.key.name for machine in sick.victims)
        return Decision(
            ordinals.select_for_deletion(leaving), claimed, removal=Removal((), sick.victims), remediation=sick
        )
    missing = creation.missing(observed, claimed)
    # A Machine that leaves the selector now is replaced once its release is seen; meanwhile none is deleted that could
    # stay.
    back = deletion_order.taken_back(observed, max(missing + len(claimed.released), 0))
    ordinals, wanted = ordinals.select_for_deletion(ordinals.leaving - back), max(missing - len(back), 0)
    chosen = deletion_order.selected_for_deletion(observed, claimed)
    notes = tuple(f"Machine {machine.key.name} left the selector but is kept" for machine in claimed.kept)
    if len(members.protected) > observed.desired.replicas:
        notes += (protection_sentence(members.protected),)
    notes += tuple(f"Machine {m.key.name} failed and is preserved until {m.preserve_until}" for m in members.preserved)
    if chosen.pending or chosen.victims:
        if deletion_order.asked_just_now(observed):
            return Decision(
                ordinals,
                claimed,
                remediation=sick,
                notes=(*notes, "victims are chosen once this generation was observed"),
            )
        notes += (observed.disruption.unknown,) if observed.disruption.unknown else ()
        leaving = ordinals.leaving.union(machine.key.name for machine in chosen.victims)
        ordinals = ordinals.without(chosen.pending).select_for_deletion(leaving)
        return Decision(ordinals, claimed, removal=chosen, remediation=sick, notes=notes)
    again = creation.retried(observed)
    held = creation.hold(observed) if wanted or again else None
    if held is not None:
        return Decision(ordinals, claimed, held=held, remediation=sick, notes=(*notes, held.why))
    fresh = min(wanted, max(creation.MAX_BATCH - len(again), 0))
    new = tuple(range(ordinals.next, ordinals.next + fresh))
    return Decision(ordinals.reserve(fresh), claimed, created=again + new, remediation=sick, notes=notes)


def _changes(observed: Observed, decision: Decision) -> list[Action]:
    if is_deleting(observed.body):
        return []
    unmatched = {machine.key for machine in observed.unmatched}
    flows_to = (machine for machine in observed.members.active if machine.key not in unmatched)
    title = observed.ref.key.name
    flowing = propagation.propagate(observed.desired.template, flows_to, title)
    return [
        *claim_patches(observed, decision.claims),
        *flowing,
        *creation.creates(
            observed,
            decision.created,
            places_for(decision.remediation.places, decision.created),
            places(observed, decision.spread, decision.created),
        ),
        *deletion_order.deletes(observed, decision.removal, decision.ordinals.leaving),
        *([] if flowing else [*_elsewhere(observed, decision), *_in_place(observed, decision)]),
    ]


def _elsewhere(observed: Observed, decision: Decision) -> list[Patch]:
    """Machines are not moved between failure domains in a reconcile that selects deletions.

    The Machine to move might be one that is deleted.
    """
    if decision.removal.victims or decision.claims.released:
        return []
    return move_patches(observed, decision.spread)


def _in_place(observed: Observed, decision: Decision) -> list[Action]:
    """Nothing is handed out in a reconcile that chooses who goes: it might be the same Machine."""
    if decision.removal.victims or decision.claims.released:
        return []
    return [*in_place_updates(observed), *in_place_permissions(observed)]


def _hold_back(observed: Observed, patch: dict[str, Any]) -> float:
    members, wanted = observed.members, observed.desired.replicas
    if observed.ordinals.reserved and members.deleting:
        return 0.0  # a number must leave the journal while its deleted Machine is seen, or it would be given out again
    on_their_way = members.pending or members.leaving or members.deleting
    arrived = not on_their_way and len(members.active) == wanted and all(machine.ready for machine in members.active)
    change = StatusChange(observed.status, patch, wanted, arrived)
    return hold_back(change, (*members.active, *members.leaving, *members.deleting), observed.now)


def _why(decision: Decision) -> str:
    if decision.created:
        return "reserve identities for " + counted(len(decision.created), "Machine")
    if decision.spread.moves:
        return moved(decision.spread)
    if decision.removal.victims:
        return "record the choice of " + counted(len(decision.removal.victims), "Machine") + " to delete"
    return "status is out of date"


def _events(observed: Observed, changes: Iterable[Action]) -> list[Action]:
    """One event for the whole batch."""
    created = [str(action.body["metadata"]["name"]) for action in changes if isinstance(action, Create)]
    deleted = [action.target.key.name for action in changes if isinstance(action, Delete)]
    events: list[Action] = []
    if created:
        events.append(Event(observed.ref, "Normal", CREATED, _sentence("Created", created)))
    if deleted:
        events.append(Event(observed.ref, "Normal", DELETED, _sentence("Deleted", deleted)))
    return events


def _sentence(verb: str, names: list[str]) -> str:
    return f"{verb} {counted(len(names), 'Machine')}: {some_of(names, NAMES_IN_EVENT)}"


def _outcome(observed: Observed, decision: Decision, delay: float) -> Outcome:
    if decision.held is not None and not is_deleting(observed.body):
        return Blocked(decision.held.why, HELD)
    waits: list[Wait] = []
    if delay:
        waits.append(Wait(delay, "its Machines are still changing; the counts are written when they rest"))
    members = observed.members
    if decision.created or decision.removal.victims or members.pending or members.leaving:
        waits.append(Wait(RETRY, "Machines that were created or deleted are not seen as such yet"))
    elif members.existing > max(observed.desired.replicas, len(members.protected)):
        waits.append(Wait(deletion_order.REQUEUE_AFTER, "a mark on a Machine may still be on its way"))
    if members.preserved:
        until = min(machine.preserve_until or observed.now for machine in members.preserved)
        waits.append(Wait((until - observed.now).total_seconds(), "a failed Machine is preserved until then"))
    if decision.spread.look_at is not None:
        after = (decision.spread.look_at - observed.now).total_seconds()
        waits.append(Wait(after, "a failure domain has rested then"))
    slow_at = deletions(observed).next_slow
    if slow_at is not None:
        waits.append(Wait((slow_at - observed.now).total_seconds(), "a deletion has taken too long then"))
    if decision.remediation.look_at is not None:
        after = max((decision.remediation.look_at - observed.now).total_seconds(), 0.0)
        waits.append(Wait(after, decision.remediation.deferred))
    moments = (machine.available_at(observed.desired.min_ready) for machine in members.active)
    coming = [moment for moment in moments if moment is not None and moment > observed.now]
    if coming:
        seconds = (min(coming) - observed.now).total_seconds()
        waits.append(Wait(seconds, "the next Machine becomes available"))
    return min(waits, key=lambda wait: wait.after) if waits else Settled()
