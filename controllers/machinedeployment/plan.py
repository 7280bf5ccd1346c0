"""Observed → Plan for one MachineDeployment.

    guarded status patch (counts, journal of sizes) → MachineSets: create, adopt, scale, propagate, forget → one event

The guard makes sure that everything was decided on the newest deployment. Where the derived MachineSet is not visible
yet, creating it is all that is done: nothing is ever decided without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from api import names
from api.conditions import Reason
from api.names import InPlace, StrategyType
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.budgets import StatusChange, hold_back
from controllers.kernel.conditions import counted, guarded, invalid, new_failure, status_step
from controllers.kernel.ownership import SPEC_PAUSED_STAMP
from controllers.kernel.plan import Blocked, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.refs import annotations_of, is_deleting
from controllers.machinedeployment import creation, progress
from controllers.machinedeployment.creation import current_set, deployment_annotations, old_sets, sets_to_forget
from controllers.machinedeployment.effective_template import Record, seconds_until_rollout
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.on_delete import follow
from controllers.machinedeployment.progress import (
    PATIENCE,
    intents_status,
    is_fresh_intent,
    outstanding_intents,
    touches,
)
from controllers.machinedeployment.propagation import adoptions, in_place_sizes, in_place_turn, is_let_on, set_patches
from controllers.machinedeployment.recreate import recreate
from controllers.machinedeployment.rolling_update import Targets, give_up_first, is_scaled, roll, scale_proportionally
from controllers.machinedeployment.status import alive, deletions, invalid_patch, paused_patch, status_patch

UNREAD = 5.0
"""Seconds to wait for a complete view."""
GIVE_WAY = 5.0
"""Seconds to wait for a deleting MachineSet that holds the name."""
CREATED, SCALED = "SuccessfulCreate", "ScalingMachineSet"


def plan(observed: Observed) -> Plan:
    if not observed.complete:
        return Plan(outcome=Wait(UNREAD, "Machines, sets or Clusters are not completely read yet"))
    if observed.paused:
        return Plan(
            status_step(observed.ref, observed.body, paused_patch(observed)), Settled(), (f"paused: {observed.paused}",)
        )
    if observed.desired.problem:
        return invalid(observed.ref, observed.body, invalid_patch(observed), observed.desired.problem)
    if is_deleting(observed.body):
        return _finish(observed, Targets(), [], [])
    unresolved = outstanding_intents(observed)
    if unresolved:
        return _find_out(observed, unresolved)
    if observed.orphans:
        return _finish(observed, Targets(), list(adoptions(observed)), [])
    now = current_set(observed)
    if not observed.desired.paused and not observed.cluster_deleting:
        turn = in_place_turn(observed, now)
        fewer = give_up_first(observed, now, old_sets(observed)) if turn is not None else None
        if fewer is not None:
            return _finish(observed, fewer, [*set_patches(observed, now, fewer)], [])
        if turn is not None:
            return _finish(observed, Targets(notes=(turn.why,)), [turn], [], Wait(GIVE_WAY, turn.why))
    if now is None and not observed.desired.paused:
        return _make_current(observed)
    targets = _targets(observed, now)
    if progress.is_stopped(observed) and not _takes_a_step(observed, now, targets):
        record = progress.failed_rollout(observed)
        if record is not None:
            return _take_back(observed, record)
        targets = _stand_still(observed, now, ("the rollout stood still for too long and is stopped (onFailure)",))
    changes: list[Action] = [*set_patches(observed, now, targets), *_forget(observed, now)]
    return _finish(observed, targets, changes, _own_annotations(observed, now))


def _targets(observed: Observed, now: SetState | None) -> Targets:
    old = old_sets(observed)
    if observed.desired.paused or now is None:
        return _stand_still(observed, now, ())
    if observed.cluster_deleting:
        return Targets(notes=(f"Cluster {observed.cluster_deleting} is being deleted",))
    if observed.desired.strategy == StrategyType.ON_DELETE:
        return follow(observed, now, old)
    if observed.desired.strategy == StrategyType.RECREATE:
        return recreate(observed, now, old)
    return _rolling(observed, now, old)


def _rolling(observed: Observed, now: SetState, old: tuple[SetState, ...]) -> Targets:
    if observed.allowed.closed and progress.is_rolling_out(observed):
        sizes = scale_proportionally(observed, now, old, finish=False)
        return Targets(sizes.replicas, (*sizes.notes, observed.allowed.why))
    if is_scaled(observed):
        return scale_proportionally(observed, now, old)
    if observed.desired.in_place != InPlace.NEVER:
        sizes_in_place = in_place_sizes(observed, now, old)
        if sizes_in_place is not None:
            return sizes_in_place
    return roll(observed, now, old)


def _takes_a_step(observed: Observed, now: SetState | None, targets: Targets) -> bool:
    """Whether it moves now. It may have stood still because nobody was there to move it: then it has not failed."""
    if any(targets.of(state) != state.replicas for state in observed.sets):
        return True
    return now is not None and is_let_on(observed, now)


def _stand_still(observed: Observed, now: SetState | None, notes: tuple[str, ...]) -> Targets:
    """Only scaling goes on."""
    sizes = scale_proportionally(observed, now, old_sets(observed))
    return Targets(sizes.replicas, (*sizes.notes, *notes))


def _take_back(observed: Observed, record: Record) -> Plan:
    """Write down that the rollout failed; from the next reconcile on the earlier template is in force."""
    why = f"Revision {record.from_revision} is taken back to revision {record.to_revision}: {record.message}"
    status = status_patch(replace(observed, rollback=record), {})  # the condition says so in the same write
    first = guarded(observed.ref, observed.body, status, why)
    event = Event(observed.ref, "Warning", str(Reason.ROLLED_BACK), why)
    return Plan(steps([first], [event]), Wait(GIVE_WAY, why), (why,))


def _make_current(observed: Observed) -> Plan:
    """Create the MachineSet of the template, or step aside if its name is taken."""
    if observed.cluster_deleting:
        return _finish(observed, Targets(notes=(f"Cluster {observed.cluster_deleting} is being deleted",)), [], [])
    if creation.is_collision(observed):
        before = observed.status.get("collisionCount") or 0
        why = "another MachineSet has the name that derives from the template"
        status = {**status_patch(observed, {}), "collisionCount": before + 1}
        return Plan(steps([guarded(observed.ref, observed.body, status, why)]), Wait(GIVE_WAY, why), (why,))
    if observed.namesake is not None:
        why = f"MachineSet {observed.namesake['metadata']['name']} of this template is still being deleted"
        return _finish(observed, Targets(notes=(why,)), [], [], Wait(GIVE_WAY, why))
    create = creation.new_set(observed)
    name, size = create.body["metadata"]["name"], create.body["spec"]["replicas"]
    event = Event(observed.ref, "Normal", CREATED, f"Created MachineSet {name} with {counted(size, 'Machine')}")
    first = guarded(observed.ref, observed.body, status_patch(observed, {}), create.why)
    return Plan(steps([first], [create], [event]), Wait(GIVE_WAY, "the new MachineSet is on its way"))


def _find_out(observed: Observed, unresolved: list[SetState]) -> Plan:
    shown = ", ".join(state.name for state in unresolved)
    if is_fresh_intent(observed):
        why = f"sizes decided for {shown} are not visible yet"
        return _finish(observed, Targets(notes=(why,)), [], [], Wait(PATIENCE, why))
    return _finish(observed, Targets(), list(touches(observed, unresolved)), [])


def _forget(observed: Observed, now: SetState | None) -> list[Action]:
    """Old MachineSets are forgotten only when the rollout is done: until then one may be gone back to.

    Under OnDelete it is done when people have deleted the last old Machine, perhaps never: nothing waits for that.
    """
    if now is None or observed.desired.paused:
        return []
    done = progress.is_complete(observed) or observed.desired.strategy == StrategyType.ON_DELETE
    return list(sets_to_forget(observed)) if done else []


def _finish(
    observed: Observed,
    targets: Targets,
    changes: list[Action],
    own: list[Action],
    outcome: Outcome | None = None,
) -> Plan:
    status = status_patch(observed, intents_status(observed, targets))
    change = StatusChange(observed.status, status, observed.desired.replicas, progress.is_complete(observed))
    delay = 0.0 if changes or own else hold_back(change, _machines(observed), observed.now)
    first: list[Action] = []
    if changes or own or (status and not delay):
        first.append(guarded(observed.ref, observed.body, status, "status is out of date"))
    failures = new_failure(observed.ref, observed.status, status) if first else []
    return Plan(
        steps(first, [*changes, *own, *failures], _events(observed, targets)),
        outcome or _outcome(observed, delay),
        targets.notes,
    )


def _machines(observed: Observed) -> tuple[Any, ...]:
    return (*alive(observed), *(machine for state in observed.sets for machine in state.members.deleting))


def _own_annotations(observed: Observed, now: SetState | None) -> list[Action]:
    """The revision, and ``spec.paused`` in the form in which the Cluster Autoscaler looks for it."""
    have = annotations_of(observed.body)
    want: dict[str, Any] = dict(deployment_annotations(observed)) if now is not None else {}
    stamp = have.get(names.CAPI_PAUSED_ANNOTATION)
    if observed.desired.paused and stamp is None:
        want[names.CAPI_PAUSED_ANNOTATION] = SPEC_PAUSED_STAMP
    elif not observed.desired.paused and stamp == SPEC_PAUSED_STAMP:
        want[names.CAPI_PAUSED_ANNOTATION] = None
    patch = {key: value for key, value in want.items() if have.get(key) != value}
    if not patch:
        return []
    why = "the revision or the pause is shown in annotations"
    return [Patch(observed.ref, {"metadata": {"annotations": patch}}, why)]


def _events(observed: Observed, targets: Targets) -> list[Action]:
    """One for all sizes that change together."""
    scaled = [s for s in observed.sets if targets.of(s) != s.replicas and not is_deleting(s.body)]
    if not scaled:
        return []
    parts = ", ".join(f"MachineSet {s.name} from {s.replicas} to {targets.of(s)}" for s in scaled)
    return [Event(observed.ref, "Normal", SCALED, f"Scaled {parts}")]


def _outcome(observed: Observed, delay: float) -> Outcome:
    waits: list[Wait] = []
    if delay:
        waits.append(Wait(delay, "its Machines are still changing; the counts are written when they rest"))
    until = seconds_until_rollout(observed.desired.after, observed.now)
    if until:
        waits.append(Wait(until, "its Machines are to be replaced then (spec.rollout.after)"))
    slow_at = deletions(observed).next_slow
    if slow_at is not None:
        waits.append(Wait((slow_at - observed.now).total_seconds(), "a deletion has taken too long then"))
    min_ready = observed.desired.min_ready
    moments = (machine.available_at(min_ready) for machine in alive(observed))
    coming = [moment for moment in moments if moment is not None and moment > observed.now]
    if coming:
        waits.append(Wait((min(coming) - observed.now).total_seconds(), "the next Machine becomes available"))
    if observed.allowed.changes is not None and progress.is_rolling_out(observed):
        seconds = (observed.allowed.changes - observed.now).total_seconds()
        waits.append(Wait(seconds, "disruption budgets change then"))
    overdue = progress.overdue_in(observed)
    if overdue is not None and overdue > 0:
        waits.append(Wait(overdue, "Machines must become available before progressDeadlineSeconds are over"))
    if waits:
        return min(waits, key=lambda wait: wait.after)
    if overdue is not None:
        return Blocked("the rollout stood still for too long", after=60.0)
    return Settled()
