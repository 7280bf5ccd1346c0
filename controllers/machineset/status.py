"""The status of a MachineSet: counts, the journal, and conditions that say why it is not what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.conditions import DeploymentCondition, Reason, SetCondition
from api.names import ErrorReason
from controllers.kernel.conditions import Condition, counted, error_fields, find, merge, merge_patch
from controllers.kernel.deletions import Deletions, roll_up_deletions
from controllers.kernel.machine_facts import MachineFacts, protection_sentence
from controllers.kernel.members import Rollup, roll_up
from controllers.kernel.names import Ordinals
from controllers.kernel.refs import generation_of, is_deleting
from controllers.machineset.creation import NO_SPREAD, Hold, Spread, spread_condition, spread_status
from controllers.machineset.observe import Observed
from controllers.machineset.propagation import up_to_date_condition
from controllers.machineset.remediation import NO_REMEDIATION, Remediation, condition, to_status

AVAILABLE = str(DeploymentCondition.AVAILABLE)


@dataclass(frozen=True, slots=True)
class Counts:
    """Machines that are not being deleted, as ``kubectl get`` shows them. ``deletions``: those that are.

    A Machine whose deletion was decided still exists, but is not counted as ready any more: nobody can build on it.
    """

    replicas: int
    fully_labeled: int
    ready: int
    available: int
    deletions: Deletions


def count(observed: Observed, ordinals: Ordinals) -> Counts:
    desired, members = observed.desired, observed.members
    alive = (*members.active, *members.leaving)
    staying = [machine for machine in alive if machine.key.name not in ordinals.leaving]
    labels = ((desired.template.get("metadata") or {}).get("labels") or {}).items()
    return Counts(
        replicas=len(alive),
        fully_labeled=sum(1 for machine in alive if labels <= machine.labels.items()),
        ready=sum(1 for machine in staying if machine.ready),
        available=sum(1 for machine in staying if machine.is_available(desired.min_ready, observed.now)),
        deletions=deletions(observed),
    )


def deletions(observed: Observed) -> Deletions:
    """Machines of the set that are going, or whose deletion was decided."""
    return roll_up_deletions((*observed.members.deleting, *observed.members.leaving), observed.now)


@dataclass(frozen=True, slots=True)
class Findings:
    """``held``: why missing Machines are not created; ``frozen``: why Machines that left are not released.

    ``remediation``: what becomes of Machines that a health check has selected for deletion.
    ``spread``: which failure domains have no host, and who goes elsewhere.
    """

    held: Hold | None = None
    frozen: str = ""
    remediation: Remediation = NO_REMEDIATION
    spread: Spread = NO_SPREAD


def status_patch(observed: Observed, ordinals: Ordinals, found: Findings) -> dict[str, Any]:
    """The smallest patch of ``status`` to what is seen now; empty if it says so already."""
    counts = count(observed, ordinals)
    conditions = [
        *_conditions(observed, counts, found.held),
        *_frozen(observed, found.frozen),
        *condition(observed, found.remediation),
        *spread_condition(observed, found.spread),
    ]
    new_status: dict[str, Any] = {
        "replicas": counts.replicas,
        "fullyLabeledReplicas": counts.fully_labeled,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "deletingReplicas": counts.deletions.count,
        "observedGeneration": generation_of(observed.body),
        "labelSelector": str(observed.desired.selector),
        "ordinals": _ordinals(observed.status, ordinals),
        **error_fields("", ""),
        "restingFailureDomains": spread_status(found.spread),
        "remediated": to_status(found.remediation.places),
        "conditions": _merged(observed, conditions),
    }
    return merge_patch(observed.status, new_status)


def paused_patch(observed: Observed) -> dict[str, Any]:
    """Says that it is paused and leaves all else as it was."""
    condition = Condition(SetCondition.PAUSED, "True", Reason.PAUSED, observed.paused)
    return merge_patch(observed.status, {"conditions": _merged(observed, [condition])})


def invalid_patch(observed: Observed) -> dict[str, Any]:
    """Terminal: the spec can't be used. Counts and journal stay as they are."""
    problem = observed.desired.problem
    reason = Reason.INVALID_CONFIGURATION
    decided = [
        Condition(SetCondition.READY, "False", reason, problem),
        Condition(SetCondition.SCALING_UP, "False", reason, problem),
        Condition(SetCondition.SCALING_DOWN, "False", reason, problem),
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


def _ordinals(status: Mapping[str, Any], ordinals: Ordinals) -> dict[str, Any]:
    """Without nulls where there is nothing to remove: not every server drops them from a new object."""
    written = ordinals.to_status()
    have = status.get("ordinals")
    return written if isinstance(have, Mapping) else {key: value for key, value in written.items() if value is not None}


def _conditions(observed: Observed, counts: Counts, held: Hold | None) -> list[Condition]:
    alive = (*observed.members.active, *observed.members.leaving)
    rollup = roll_up(alive)
    conditions = [
        _ready(observed, counts, rollup, held),
        _available(observed, counts, rollup),
        _machines_ready(alive, observed.desired.replicas, rollup),
        _scaling_up(observed, counts, rollup, held),
        _scaling_down(observed, counts),
        Condition(SetCondition.PAUSED, "False", Reason.NOT_PAUSED),
        *up_to_date_condition(observed),
    ]
    if is_deleting(observed.body):
        left = counts.replicas + len(observed.members.deleting)
        message = counted(left, "Machine is left", "Machines are left")
        reason, text = counts.deletions.reason or Reason.DELETING, counts.deletions.text
        conditions.append(Condition(SetCondition.DELETING, "True", reason, f"{message}; {text}" if text else message))
    return conditions


def _frozen(observed: Observed, why: str) -> list[Condition]:
    """Only shown once there was a reason to."""
    if why:
        return [Condition(SetCondition.FROZEN, "True", Reason.CEILING_REACHED, why)]
    if find(observed.status.get("conditions"), SetCondition.FROZEN):
        return [Condition(SetCondition.FROZEN, "False", Reason.BELOW_CEILING)]
    return []


def _ready(observed: Observed, counts: Counts, rollup: Rollup, held: Hold | None) -> Condition:
    wanted = observed.desired.replicas
    if counts.ready >= wanted and counts.replicas == wanted:
        held_up = counts.deletions.reason
        # True, since the set is as asked for; the reason is what tables show, and must not call a stuck deletion ready.
        return Condition(SetCondition.READY, "True", held_up or Reason.READY, counts.deletions.text if held_up else "")
    protected = observed.members.protected
    if counts.replicas > wanted and len(protected) > wanted:
        return Condition(SetCondition.READY, "False", Reason.MACHINES_PROTECTED, protection_sentence(protected))
    if counts.replicas > wanted:
        return Condition(
            SetCondition.READY, "False", Reason.SCALING_DOWN, f"{counted(counts.replicas, 'Machine')}, {wanted} wanted"
        )
    reason = rollup.reason or (held.reason if held else Reason.SCALING_UP)
    message = f"{counts.ready} of {counted(wanted, 'Machine is ready', 'Machines are ready')}"
    return Condition(SetCondition.READY, "False", reason, f"{message}: {rollup.text}" if rollup.text else message)


def _available(observed: Observed, counts: Counts, rollup: Rollup) -> Condition:
    wanted = observed.desired.replicas
    if counts.available >= wanted:
        return Condition(AVAILABLE, "True", Reason.AVAILABLE)
    waiting = counts.ready >= wanted
    reason = Reason.WAITING_FOR_MIN_READY_SECONDS if waiting else rollup.reason or Reason.NOT_AVAILABLE
    message = f"{counts.available} of {counted(wanted, 'Machine is available', 'Machines are available')}"
    return Condition(AVAILABLE, "False", reason, message)


def _machines_ready(alive: tuple[MachineFacts, ...], wanted: int, rollup: Rollup) -> Condition:
    if not alive and wanted:
        return Condition(SetCondition.MACHINES_READY, "False", Reason.PENDING, "no Machine exists yet")
    if not rollup.text:
        return Condition(SetCondition.MACHINES_READY, "True", Reason.READY)
    reason = Reason.MACHINES_FAILED if any(machine.failed for machine in alive) else Reason.NOT_READY
    return Condition(SetCondition.MACHINES_READY, "False", reason, rollup.text)


def _scaling_up(observed: Observed, counts: Counts, rollup: Rollup, held: Hold | None) -> Condition:
    wanted = observed.desired.replicas
    if len(observed.members.active) >= wanted or is_deleting(observed.body):
        return Condition(SetCondition.SCALING_UP, "False", Reason.NOT_SCALING_UP)
    message = f"from {counts.replicas} to {counted(wanted, 'Machine')}"
    if held is not None:
        return Condition(SetCondition.SCALING_UP, "True", held.reason, f"{message} is held back: {held.why}")
    why = f": {rollup.text}" if rollup.text else ""
    return Condition(SetCondition.SCALING_UP, "True", Reason.SCALING_UP, message + why)


def _scaling_down(observed: Observed, counts: Counts) -> Condition:
    wanted, going = observed.desired.replicas, counts.deletions
    excess = len(observed.members.active) - wanted
    if excess <= 0 and not going.count and not is_deleting(observed.body):
        return Condition(SetCondition.SCALING_DOWN, "False", Reason.NOT_SCALING_DOWN)
    parts = [f"from {len(observed.members.active)} to {counted(wanted, 'Machine')}"] if excess > 0 else []
    if going.text:
        parts.append(going.text)
    protected = observed.members.protected
    if len(protected) > wanted and not is_deleting(observed.body):
        message = "; ".join([", ".join(parts), protection_sentence(protected)])
        return Condition(SetCondition.SCALING_DOWN, "True", Reason.MACHINES_PROTECTED, message)
    return Condition(SetCondition.SCALING_DOWN, "True", going.reason or Reason.SCALING_DOWN, ", ".join(parts))
