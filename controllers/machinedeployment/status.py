"""The status of a MachineDeployment, counted from its Machines and not from what its MachineSets say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api.conditions import DeploymentCondition, Reason, SetCondition
from api.names import ErrorReason, InPlace
from controllers.kernel.conditions import Condition, counted, error_fields, find, format_time, merge, merge_patch
from controllers.kernel.deletions import Deletions, roll_up_deletions
from controllers.kernel.machine_facts import MachineFacts, protection_sentence
from controllers.kernel.members import Rollup, roll_up
from controllers.kernel.refs import generation_of, is_deleting
from controllers.kernel.template import template_hash
from controllers.machinedeployment.creation import current_set, old_sets
from controllers.machinedeployment.observe import Observed
from controllers.machinedeployment.progress import (
    held_by_protection,
    is_complete,
    is_overdue,
    is_rolling_out,
    standstill,
)
from controllers.machinedeployment.propagation import would_replace


@dataclass(frozen=True, slots=True)
class Counts:
    """Machines that are not being deleted, and in ``deletions`` those that are."""

    replicas: int
    updated: int
    ready: int
    available: int
    deletions: Deletions


def deletions(observed: Observed) -> Deletions:
    """Machines of all its MachineSets that are going, or whose deletion was decided."""
    going = (m for state in observed.sets for m in (*state.members.deleting, *state.members.leaving))
    return roll_up_deletions(going, observed.now)


def alive(observed: Observed) -> tuple[MachineFacts, ...]:
    return tuple(m for state in observed.sets for m in (*state.members.active, *state.members.leaving))


def count(observed: Observed) -> Counts:
    machines, now = alive(observed), current_set(observed)
    min_ready = observed.desired.min_ready
    return Counts(
        replicas=len(machines),
        updated=len(now.members.active) + len(now.members.leaving) - len(now.outdated) if now else 0,
        ready=sum(1 for machine in machines if machine.ready),
        available=sum(1 for machine in machines if machine.is_available(min_ready, observed.now)),
        deletions=deletions(observed),
    )


def status_patch(observed: Observed, journal: dict[str, Any]) -> dict[str, Any]:
    """The smallest patch of ``status`` to what is seen now, with the journal of what is decided; may be empty."""
    counts, desired = count(observed), observed.desired
    new_status: dict[str, Any] = {
        "observedGeneration": generation_of(observed.body),
        "replicas": counts.replicas,
        "updatedReplicas": counts.updated,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "deletingReplicas": counts.deletions.count,
        "unavailableReplicas": max(desired.replicas, counts.replicas) - counts.available,
        "labelSelector": str(desired.selector),
        **error_fields("", ""),
        "rollback": observed.rollback.to_status() if observed.rollback is not None else None,
        **_remembered(observed),
        **journal,
        "conditions": _merged(observed, _conditions(observed, counts)),
    }
    return merge_patch(observed.status, new_status)


def _remembered(observed: Observed) -> dict[str, Any]:
    """What can't be observed later."""
    found: dict[str, Any] = {}
    if observed.status.get("observedGeneration") != generation_of(observed.body):
        found["specSeenAt"] = format_time(observed.now)
    if is_complete(observed) and observed.desired.replicas:
        found["completedHash"] = template_hash(observed.desired.template)
    return found


def paused_patch(observed: Observed) -> dict[str, Any]:
    """The deployment or its Cluster is to be left alone: say so, and leave all else as it was."""
    condition = Condition(DeploymentCondition.PAUSED, "True", Reason.PAUSED, observed.paused)
    return merge_patch(observed.status, {"conditions": _merged(observed, [condition])})


def invalid_patch(observed: Observed) -> dict[str, Any]:
    """Terminal: the spec can't be used. The Machines stay as they are."""
    problem, reason = observed.desired.problem, Reason.INVALID_CONFIGURATION
    decided = [
        Condition(DeploymentCondition.AVAILABLE, "Unknown", reason, problem),
        Condition(DeploymentCondition.PROGRESSING, "False", reason, problem),
    ]
    new_status = {
        "observedGeneration": generation_of(observed.body),
        **error_fields(ErrorReason.INVALID_CONFIGURATION, problem),
        "conditions": _merged(observed, decided),
    }
    return merge_patch(observed.status, new_status)


def _merged(observed: Observed, decided: list[Condition]) -> list[dict[str, Any]]:
    conditions = observed.status.get("conditions")
    return merge(conditions, decided, generation_of(observed.body), observed.now)


def _conditions(observed: Observed, counts: Counts) -> list[Condition]:
    machines = alive(observed)
    rollup = roll_up(machines)
    conditions = [
        _available(observed, counts, rollup),
        _progressing(observed),
        _rolling_out(observed, counts),
        _machines_ready(observed, machines, rollup),
        _scaling_up(observed, counts, rollup),
        _scaling_down(observed, counts.deletions),
        _paused(observed),
    ]
    conditions.extend([*_up_to_date(observed), *_remediating(observed), *_balanced(observed), *_disruption(observed)])
    if is_deleting(observed.body):
        message = f"{counted(len(observed.sets), 'MachineSet')} and {counted(counts.replicas, 'Machine')} left"
        reason, text = counts.deletions.reason or Reason.DELETING, counts.deletions.text
        full = f"{message}; {text}" if text else message
        conditions.append(Condition(DeploymentCondition.DELETING, "True", reason, full))
    return conditions


def _available(observed: Observed, counts: Counts, rollup: Rollup) -> Condition:
    least = observed.desired.limits.min_available
    if counts.available >= least:
        held_up = counts.deletions.reason
        # As of a MachineSet: the reason is what tables show, and must not hide a deletion that stands still.
        text = counts.deletions.text if held_up else ""
        return Condition(DeploymentCondition.AVAILABLE, "True", held_up or Reason.AVAILABLE, text)
    available = counted(counts.available, "Machine is available", "Machines are available")
    message = f"{available}, at least {counted(least, 'is', 'are')} needed"
    text = f"{message}: {rollup.text}" if rollup.text else message
    return Condition(DeploymentCondition.AVAILABLE, "False", rollup.reason or Reason.NOT_AVAILABLE, text)


def _progressing(observed: Observed) -> Condition:
    """apps/v1's meaning: True while it moves and when it is done, False once it stood still for too long."""
    if observed.desired.paused:
        return Condition(DeploymentCondition.PROGRESSING, "Unknown", Reason.PAUSED, "spec.paused is set")
    if observed.rollback is not None:
        return Condition(DeploymentCondition.PROGRESSING, "False", Reason.ROLLED_BACK, observed.rollback.text)
    if is_overdue(observed):
        text = standstill(observed)
        return Condition(DeploymentCondition.PROGRESSING, "False", Reason.PROGRESS_DEADLINE_EXCEEDED, text)
    if is_rolling_out(observed):
        return Condition(DeploymentCondition.PROGRESSING, "True", Reason.ROLLING_OUT)
    return Condition(DeploymentCondition.PROGRESSING, "True", Reason.ROLLOUT_COMPLETE)


def _rolling_out(observed: Observed, counts: Counts) -> Condition:
    left = counts.replicas - counts.updated
    if left == 0 and current_set(observed) is not None:
        return Condition(DeploymentCondition.ROLLING_OUT, "False", Reason.NOT_ROLLING_OUT)
    if not is_rolling_out(observed) and left <= observed.desired.partition:
        message = counted(left, "Machine stays", "Machines stay") + " with an earlier template, as partition says"
        return Condition(DeploymentCondition.ROLLING_OUT, "False", Reason.PARTITION_REACHED, message)
    message = counted(left, "Machine has an earlier template", "Machines have an earlier template")
    protected = held_by_protection(observed)
    if protected:
        reported = f"{message}; the rollout waits: {protection_sentence(protected)}"
        return Condition(DeploymentCondition.ROLLING_OUT, "True", Reason.MACHINES_PROTECTED, reported)
    if would_replace(observed, current_set(observed), old_sets(observed)):
        message = f"{message} and would have to be replaced, which inPlace: Require forbids"
        return Condition(DeploymentCondition.ROLLING_OUT, "True", Reason.NEEDS_REPLACEMENT, message)
    return Condition(DeploymentCondition.ROLLING_OUT, "True", Reason.ROLLING_OUT, message)


def _up_to_date(observed: Observed) -> list[Condition]:
    """How far an update in place is; only where there are such."""
    now = current_set(observed)
    if observed.desired.in_place == InPlace.NEVER or now is None:
        return []
    type_ = DeploymentCondition.MACHINES_UP_TO_DATE
    refused = [m.refusal for m in now.members.active if m.uid in now.updating and m.refusal]
    if refused:
        message = f"{counted(len(refused), 'Machine')} can't be updated in place: {min(refused)}"
        return [Condition(type_, "False", Reason.NEEDS_REPLACEMENT, message)]
    left = len(now.outdated) + len(now.updating)
    if left > observed.desired.partition or now.updating:
        message = counted(left, "Machine is", "Machines are") + " still to be updated in place"
        return [Condition(type_, "False", Reason.NOT_UP_TO_DATE, message)]
    return [Condition(type_, "True", Reason.UP_TO_DATE)]


def _remediating(observed: Observed) -> list[Condition]:
    """What its MachineSets say of it; only shown once there was reason to."""
    type_ = DeploymentCondition.REMEDIATING
    of_sets = {s.name: (s.body.get("status") or {}).get("conditions") for s in observed.sets}
    reported = {name: find(conditions, SetCondition.REMEDIATING) for name, conditions in of_sets.items()}
    under_way = [(name, one) for name, one in reported.items() if one is not None and one.get("status") == "True"]
    if under_way:
        deferred = any(one.get("reason") == Reason.REMEDIATION_DEFERRED for _, one in under_way)
        text = "; ".join(f"MachineSet {name}: {one.get('message') or ''}" for name, one in under_way)
        return [Condition(type_, "True", Reason.REMEDIATION_DEFERRED if deferred else Reason.REMEDIATING, text)]
    if find(observed.status.get("conditions"), type_):
        return [Condition(type_, "False", Reason.NOT_REMEDIATING)]
    return []


def _balanced(observed: Observed) -> list[Condition]:
    """What its MachineSets with Machines say of it; sets that are simply even are left out."""
    type_ = DeploymentCondition.BALANCED
    of_sets = [(s.name, find((s.body.get("status") or {}).get("conditions"), type_)) for s in observed.sets if s.total]
    reported = [(name, one) for name, one in of_sets if one is not None]
    if not reported:
        was = find(observed.status.get("conditions"), type_)
        return [Condition(type_, "True", Reason.BALANCED)] if was else []
    listed = [(name, one) for name, one in reported if one.get("reason") != Reason.BALANCED]
    text = "; ".join(f"MachineSet {name}: {one.get('message') or ''}" for name, one in listed)
    even = all(one.get("status") == "True" for _, one in reported)
    reason = str(listed[0][1].get("reason")) if listed else str(Reason.BALANCED)
    return [Condition(type_, "True" if even else "False", reason, text)]


def _disruption(observed: Observed) -> list[Condition]:
    """Only where there are budgets, and only about what is being rolled out: at rest no window changes the status."""
    if not observed.desired.budgets:
        return []
    type_, allowed = DeploymentCondition.DISRUPTION_ALLOWED, observed.allowed
    if allowed.problem:
        return [Condition(type_, "False", Reason.INVALID_CONFIGURATION, allowed.problem)]
    if allowed.closed and is_rolling_out(observed):
        return [Condition(type_, "False", Reason.BUDGET_CLOSED, allowed.why)]
    return [Condition(type_, "True", Reason.DISRUPTION_ALLOWED)]


def _machines_ready(observed: Observed, machines: tuple[MachineFacts, ...], rollup: Rollup) -> Condition:
    type_ = DeploymentCondition.MACHINES_READY
    if not machines and observed.desired.replicas:
        return Condition(type_, "False", Reason.PENDING, "no Machine exists yet")
    if not rollup.text:
        return Condition(type_, "True", Reason.READY)
    reason = Reason.MACHINES_FAILED if any(machine.failed for machine in machines) else Reason.NOT_READY
    return Condition(type_, "False", reason, rollup.text)


def _scaling_up(observed: Observed, counts: Counts, rollup: Rollup) -> Condition:
    wanted = observed.desired.replicas
    if counts.replicas >= wanted or is_deleting(observed.body):
        return Condition(DeploymentCondition.SCALING_UP, "False", Reason.NOT_SCALING_UP)
    message = f"from {counts.replicas} to {counted(wanted, 'Machine')}"
    text = f"{message}: {rollup.text}" if rollup.text else message
    return Condition(DeploymentCondition.SCALING_UP, "True", Reason.SCALING_UP, text)


def _scaling_down(observed: Observed, going: Deletions) -> Condition:
    protected = [machine for state in observed.sets for machine in state.protected]
    if len(protected) > observed.desired.replicas and not is_deleting(observed.body):
        there = sum(state.members.alive for state in observed.sets)
        reported = f"from {there} to {counted(observed.desired.replicas, 'Machine')}; {protection_sentence(protected)}"
        return Condition(DeploymentCondition.SCALING_DOWN, "True", Reason.MACHINES_PROTECTED, reported)
    if not going.count and not is_deleting(observed.body):
        return Condition(DeploymentCondition.SCALING_DOWN, "False", Reason.NOT_SCALING_DOWN)
    message = going.text or "no Machine is left"
    return Condition(DeploymentCondition.SCALING_DOWN, "True", going.reason or Reason.SCALING_DOWN, message)


def _paused(observed: Observed) -> Condition:
    if observed.desired.paused:
        return Condition(DeploymentCondition.PAUSED, "True", Reason.PAUSED, "spec.paused stops rollouts, not scaling")
    return Condition(DeploymentCondition.PAUSED, "False", Reason.NOT_PAUSED)
