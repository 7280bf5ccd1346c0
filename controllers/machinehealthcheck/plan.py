"""Observed → Plan for one MachineHealthCheck.

    its own status (guarded) → objects of external remediation → conditions of Machines (each guarded) → events

The status goes first, and only if the check is still the one observed: two processes with the same idea, or one with an
old view, don't both condemn. Machines are never deleted here; their owner does that when it reads OwnerRemediated.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.budgets import StatusChange, hold_back
from controllers.kernel.conditions import guarded, status_step
from controllers.kernel.plan import Blocked, Failed, Outcome, Plan, Settled, Wait, steps
from controllers.kernel.refs import is_deleting
from controllers.machinehealthcheck import external, report
from controllers.machinehealthcheck.budget import Choice, choose, stock
from controllers.machinehealthcheck.correlation import NO_FREEZE, Freeze, freeze
from controllers.machinehealthcheck.health import Starting, Suspect, Unhealthy
from controllers.machinehealthcheck.observe import Observed, Target
from controllers.machinehealthcheck.short_circuit import Circuit, circuit

OUTAGE_LOOK = 5.0
"""Seconds between looks while the API server can't be followed."""
HELD_REQUEUE = 30.0
"""Seconds between looks while replacing is held up by what only others can end."""
SOONEST = 0.1
RESTRICTED, UNHEALTHY, REBOOT = "RemediationRestricted", "MachineMarkedUnhealthy", "RebootRequested"
"""Reasons of events, as CAPI has them."""


def plan(observed: Observed) -> Plan:
    if is_deleting(observed.body):
        return Plan()
    if observed.outage:
        return Plan(outcome=Wait(OUTAGE_LOOK, observed.outage))
    if observed.desired.problem:
        return _invalid(observed)
    if observed.paused:
        paused = status_step(observed.ref, observed.body, report.paused_patch(observed))
        return Plan(paused, Settled(), (f"paused: {observed.paused}",))
    frozen = freeze(observed.targets) if observed.desired.strategy.freezes else NO_FREEZE
    held = stock(observed)
    closed = circuit(observed.desired.limit, len(held.bad), held.expected)
    choice = Choice() if closed.why else choose(observed, frozen, held)
    marks = [patch for target in observed.targets if (patch := report.machine_patch(observed, target, choice))]
    outside = external.actions(observed, choice)
    status = report.status_patch(observed, closed, frozen, choice)
    delay = 0.0 if marks else _hold_back(observed, status)
    first: list[Action] = []
    if marks or (status and not delay):
        first.append(guarded(observed.ref, observed.body, status, "what was seen of the Machines"))
    return Plan(
        steps(
            first, outside, [*marks], [*_events(observed, status if first else {}, marks), *_reboots(observed, choice)]
        ),
        _outcome(observed, choice, closed.why or str(frozen) or observed.unseen, delay),
        (*choice.notes, *_notes(observed, closed, frozen)),
    )


def _invalid(observed: Observed) -> Plan:
    problem, reason, patch = observed.desired.problem, observed.desired.reason, report.invalid_patch(observed)
    reported = report.restriction_is_new(observed, patch)
    events: list[Action] = [Event(observed.ref, "Warning", reason, problem)] if reported else []
    written = status_step(observed.ref, observed.body, patch)
    return Plan((*written, *steps(events)), Failed(reason, problem))


def _hold_back(observed: Observed, patch: dict[str, Any]) -> float:
    """Counts that move with every Machine that comes are written when they rest, as those of sets are."""
    words = {"expectedMachines": "replicas", "currentHealthy": "readyReplicas", "remediationsAllowed": "conditions"}
    if not patch.keys() <= words.keys():
        return 0.0
    as_progress = {words[name]: [] if words[name] == "conditions" else patch[name] for name in patch}
    before = {words[name]: observed.status.get(name) or 0 for name in ("expectedMachines", "currentHealthy")}
    healthy = patch.get("currentHealthy", observed.status.get("currentHealthy"))
    change = StatusChange(before, as_progress, len(observed.targets), healthy == len(observed.targets))
    return hold_back(change, (target.machine for target in observed.targets), observed.now)


def _events(observed: Observed, status: dict[str, Any], marks: list[Patch]) -> list[Action]:
    events: list[Action] = []
    restriction = report.restriction_is_new(observed, status)
    if restriction is not None:
        events.append(Event(observed.ref, "Warning", RESTRICTED, restriction.message))
    marked = {patch.target.key.name for patch in marks}
    for target in observed.targets:
        if isinstance(target.verdict, Unhealthy) and target.name in marked and report.is_news(target.machine):
            message = f"MachineHealthCheck {observed.ref.key.name} finds it unhealthy: {target.verdict.message}"
            events.append(Event(target.machine.ref, "Warning", UNHEALTHY, message))
    return events


def _reboots(observed: Observed, choice: Choice) -> list[Action]:
    asked = choice.reboots.asked
    return [
        Event(target.machine.ref, "Warning", REBOOT, f"MachineHealthCheck {observed.ref.key.name} asks for reboot "
              f"{asked[target.name].number} of its host")
        for target in observed.targets
        if target.name in choice.reboots.fresh
    ]  # fmt: skip


def _outcome(observed: Observed, choice: Choice, held_up: str, delay: float) -> Outcome:
    moments = [moment for target in observed.targets if (moment := _look_at(target)) is not None]
    moments += [choice.look_at] if choice.look_at is not None else []
    after = max((min(moments) - observed.now).total_seconds(), SOONEST) if moments else None
    if held_up:
        return Blocked(held_up, min(after or HELD_REQUEUE, delay or HELD_REQUEUE, HELD_REQUEUE))
    if delay and (after is None or delay < after):
        return Wait(delay, "the Machines are still changing; the counts are written when they rest")
    return Wait(after, "a Machine may have become unhealthy by then") if after is not None else Settled()


def _look_at(target: Target) -> datetime | None:
    return target.verdict.look_at if isinstance(target.verdict, Starting | Suspect) else None


def _notes(observed: Observed, closed: Circuit, frozen: Freeze) -> list[str]:
    notes = [why for why in (closed.why, str(frozen), observed.unseen) if why]
    if observed.elsewhere:
        notes.append(f"{observed.elsewhere} of the Machines selected are looked at by an older check")
    return notes
