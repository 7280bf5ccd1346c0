"""The status of a MachineDeployment, counted from its Machines and not from what its MachineSets say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api.conditions import DeploymentCondition, Reason
from api.names import ErrorReason
from controllers.kernel.conditions import Condition, merge, merge_patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import generation_of, is_deleting
from controllers.kernel.reporting import error_fields
from controllers.kernel.rollup import Rollup, roll_up
from controllers.kernel.wording import counted
from controllers.machinedeployment.observe import Observed
from controllers.machinedeployment.progress import is_overdue, is_rolling_out, last_progress
from controllers.machinedeployment.revisions import current


@dataclass(frozen=True, slots=True)
class Counts:
    """Machines that are not being deleted."""

    replicas: int
    updated: int
    ready: int
    available: int


def alive(observed: Observed) -> tuple[MachineFacts, ...]:
    return tuple(m for state in observed.sets for m in (*state.members.active, *state.members.leaving))


def count(observed: Observed) -> Counts:
    machines, now = alive(observed), current(observed)
    min_ready = observed.wish.min_ready
    return Counts(
        replicas=len(machines),
        updated=len(now.members.active) + len(now.members.leaving) if now else 0,
        ready=sum(1 for machine in machines if machine.ready),
        available=sum(1 for machine in machines if machine.is_available(min_ready, observed.now)),
    )


def status_patch(observed: Observed, journal: dict[str, Any]) -> dict[str, Any]:
    """The smallest patch of ``status`` to what is seen now, with the journal of what is decided; may be empty."""
    counts, wish = count(observed), observed.wish
    desired: dict[str, Any] = {
        "observedGeneration": generation_of(observed.body),
        "replicas": counts.replicas,
        "updatedReplicas": counts.updated,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "unavailableReplicas": max(wish.replicas, counts.replicas) - counts.available,
        "labelSelector": str(wish.selector),
        **error_fields("", ""),
        **journal,
        "conditions": _merged(observed, _conditions(observed, counts)),
    }
    return merge_patch(observed.status, desired)


def paused_patch(observed: Observed) -> dict[str, Any]:
    """The deployment or its Cluster is to be left alone: say so, and leave all else as it was."""
    condition = Condition(DeploymentCondition.PAUSED, "True", Reason.PAUSED, observed.paused)
    return merge_patch(observed.status, {"conditions": _merged(observed, [condition])})


def invalid_patch(observed: Observed) -> dict[str, Any]:
    """Terminal: the spec can't be used. The Machines stay as they are."""
    problem, reason = observed.wish.problem, Reason.INVALID_CONFIGURATION
    decided = [
        Condition(DeploymentCondition.AVAILABLE, "Unknown", reason, problem),
        Condition(DeploymentCondition.PROGRESSING, "False", reason, problem),
    ]
    desired = {
        "observedGeneration": generation_of(observed.body),
        **error_fields(ErrorReason.INVALID_CONFIGURATION, problem),
        "conditions": _merged(observed, decided),
    }
    return merge_patch(observed.status, desired)


def _merged(observed: Observed, decided: list[Condition]) -> list[dict[str, Any]]:
    conditions = observed.status.get("conditions")
    return merge(conditions, decided, generation_of(observed.body), observed.now)


def _conditions(observed: Observed, counts: Counts) -> list[Condition]:
    machines = alive(observed)
    rollup = roll_up(machines)
    conditions = [
        _available(observed, counts, rollup),
        _progressing(observed, rollup),
        _rolling_out(observed, counts),
        _machines_ready(observed, machines, rollup),
        _scaling_up(observed, counts, rollup),
        _scaling_down(observed),
        _paused(observed),
    ]
    if is_deleting(observed.body):
        message = f"{counted(len(observed.sets), 'MachineSet')} and {counted(counts.replicas, 'Machine')} left"
        conditions.append(Condition(DeploymentCondition.DELETING, "True", Reason.DELETING, message))
    return conditions


def _available(observed: Observed, counts: Counts, rollup: Rollup) -> Condition:
    least = observed.wish.limits.min_available
    if counts.available >= least:
        return Condition(DeploymentCondition.AVAILABLE, "True", Reason.AVAILABLE)
    available = counted(counts.available, "Machine is available", "Machines are available")
    message = f"{available}, at least {counted(least, 'is', 'are')} needed"
    text = f"{message}: {rollup.text}" if rollup.text else message
    return Condition(DeploymentCondition.AVAILABLE, "False", rollup.reason or Reason.NOT_AVAILABLE, text)


def _progressing(observed: Observed, rollup: Rollup) -> Condition:
    """apps/v1's meaning: True while it moves and when it is done, False once it stood still for too long."""
    if observed.wish.paused:
        return Condition(DeploymentCondition.PROGRESSING, "Unknown", Reason.PAUSED, "spec.paused is set")
    if is_overdue(observed):
        seconds = int(observed.wish.deadline.total_seconds())
        stood = f"no progress since {last_progress(observed):%Y-%m-%dT%H:%M:%SZ}, more than {seconds} s ago"
        text = f"{stood}: {rollup.text}" if rollup.text else stood
        return Condition(DeploymentCondition.PROGRESSING, "False", Reason.PROGRESS_DEADLINE_EXCEEDED, text)
    if is_rolling_out(observed):
        return Condition(DeploymentCondition.PROGRESSING, "True", Reason.ROLLING_OUT)
    return Condition(DeploymentCondition.PROGRESSING, "True", Reason.ROLLOUT_COMPLETE)


def _rolling_out(observed: Observed, counts: Counts) -> Condition:
    left = counts.replicas - counts.updated
    if left == 0 and current(observed) is not None:
        return Condition(DeploymentCondition.ROLLING_OUT, "False", Reason.NOT_ROLLING_OUT)
    message = counted(left, "Machine has an earlier template", "Machines have an earlier template")
    return Condition(DeploymentCondition.ROLLING_OUT, "True", Reason.ROLLING_OUT, message)


def _machines_ready(observed: Observed, machines: tuple[MachineFacts, ...], rollup: Rollup) -> Condition:
    type_ = DeploymentCondition.MACHINES_READY
    if not machines and observed.wish.replicas:
        return Condition(type_, "False", Reason.PENDING, "no Machine exists yet")
    if not rollup.text:
        return Condition(type_, "True", Reason.READY)
    reason = Reason.MACHINES_FAILED if any(machine.failed for machine in machines) else Reason.NOT_READY
    return Condition(type_, "False", reason, rollup.text)


def _scaling_up(observed: Observed, counts: Counts, rollup: Rollup) -> Condition:
    wanted = observed.wish.replicas
    if counts.replicas >= wanted or is_deleting(observed.body):
        return Condition(DeploymentCondition.SCALING_UP, "False", Reason.NOT_SCALING_UP)
    message = f"from {counts.replicas} to {counted(wanted, 'Machine')}"
    text = f"{message}: {rollup.text}" if rollup.text else message
    return Condition(DeploymentCondition.SCALING_UP, "True", Reason.SCALING_UP, text)


def _scaling_down(observed: Observed) -> Condition:
    going = sum(len(state.members.deleting) + len(state.members.leaving) for state in observed.sets)
    if not going and not is_deleting(observed.body):
        return Condition(DeploymentCondition.SCALING_DOWN, "False", Reason.NOT_SCALING_DOWN)
    message = counted(going, "Machine is being deleted", "Machines are being deleted")
    return Condition(DeploymentCondition.SCALING_DOWN, "True", Reason.SCALING_DOWN, message)


def _paused(observed: Observed) -> Condition:
    if observed.wish.paused:
        return Condition(DeploymentCondition.PAUSED, "True", Reason.PAUSED, "spec.paused stops rollouts, not scaling")
    return Condition(DeploymentCondition.PAUSED, "False", Reason.NOT_PAUSED)
