"""How far a rollout is: the sizes that were decided, and whether it is done, moves or takes too long.

The journal of a rollout: which sizes were decided on which versions of the MachineSets.

It lives in ``status.rollout`` as ``{at: time, sets: [{name, version, replicas}]}`` and is written, guarded by the
MachineDeployment's resourceVersion, before MachineSets are scaled. A MachineSet that still shows the version on which
its size was decided may or may not have been scaled already, so nothing more is decided until that is known: a view
that lags in one of several MachineSets can't take a second share of the same budget (CAPI#9334).

Is the rollout done, does it move, has it taken too long?

The last progress is the youngest thing that happened to any Machine or MachineSet, or the last decision about sizes: it
is read from them each time. All that is remembered is when the present spec was seen first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.names import OnFailure, StrategyType
from controllers.kernel.actions import Patch
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.members import roll_up
from controllers.kernel.refs import generation_of, is_deleting, resource_version_of
from controllers.kernel.template import template_hash
from controllers.machinedeployment.creation import current_set, old_sets
from controllers.machinedeployment.effective_template import Record
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.rolling_update import Targets

PATIENCE = 2.0
"""Seconds within which the effect of a decided size should be visible."""


@dataclass(frozen=True, slots=True)
class Intent:
    """``replicas`` was decided for the MachineSet ``name`` when it had the resourceVersion ``version``."""

    name: str
    version: str
    replicas: int


def decided_at(observed: Observed) -> datetime | None:
    """When sizes were last decided."""
    found = observed.status.get("rollout")
    return parse_time(found.get("at")) if isinstance(found, Mapping) else None


def outstanding_intents(observed: Observed) -> list[SetState]:
    """MachineSets of which it is not known whether they got their decided size."""
    versions = {intent.name: intent for intent in _read(observed.status)}
    return [
        state
        for state in observed.sets
        if state.name in versions
        and versions[state.name].version == resource_version_of(state.body)
        and versions[state.name].replicas != state.replicas
    ]


def is_fresh_intent(observed: Observed) -> bool:
    """The decision is so young that its effect may just not be visible yet."""
    at = decided_at(observed)
    return at is not None and observed.now - at < timedelta(seconds=PATIENCE)


def touches(observed: Observed, states: list[SetState]) -> list[Patch]:
    """Writes that settle it: each succeeds only if the decided size was *not* applied, and then shows a new version."""
    return [
        Patch(
            state.ref,
            {"metadata": {"annotations": {names.TOUCHED_ANNOTATION: format_time(observed.now)}}},
            why=f"learn whether MachineSet {state.name} got the size that was decided",
            resource_version=resource_version_of(state.body),
        )
        for state in states
    ]


def intents_status(observed: Observed, targets: Targets) -> dict[str, Any]:
    """The journal to write before these sizes are applied; {} if no size changes."""
    sets = [
        {"name": state.name, "version": resource_version_of(state.body), "replicas": targets.of(state)}
        for state in observed.sets
        if targets.of(state) != state.replicas
    ]
    return {"rollout": {"at": format_time(observed.now), "sets": sets}} if sets else {}


def _read(status: Mapping[str, Any]) -> list[Intent]:
    """A damaged journal decides nothing: then only the guards on each MachineSet protect."""
    found = status.get("rollout")
    sets = found.get("sets") if isinstance(found, Mapping) else None
    intents = []
    for entry in sets if isinstance(sets, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("replicas"), int):
            intents.append(Intent(str(entry.get("name", "")), str(entry.get("version", "")), entry["replicas"]))
    return intents


def is_rolling_out(observed: Observed) -> bool:
    """Machines of an old template are left, or new ones never joined. A Node that fails later starts no rollout."""
    now = current_set(observed)
    if now is None:
        return True
    if now.updating or len(now.outdated) > observed.desired.partition:
        return True
    if sum(state.total for state in old_sets(observed)) > observed.desired.partition:
        return True
    wanted = observed.desired.replicas - min(
        observed.desired.partition, sum(state.replicas for state in old_sets(observed))
    )
    return now.members.existing < wanted or any(not machine.node_name for machine in now.members.active)


def held_by_protection(observed: Observed) -> tuple[MachineFacts, ...]:
    """Protected Machines if nothing but they keeps the rollout from its end; () if anything else is to be done."""
    now, before = current_set(observed), old_sets(observed)
    protected = tuple(machine for state in before for machine in state.protected)
    if now is None or observed.desired.paused:
        return ()
    if protected and observed.desired.strategy == StrategyType.RECREATE:
        return protected
    partition = observed.desired.partition
    refused = tuple(m for m in now.members.active if m.protected and m.refusal and m.uid in now.updating)
    if len(now.updating) > len(refused) or (not refused and len(now.outdated) > partition):
        return ()
    left = sum(state.total for state in before)
    if left > max(len(protected), partition) or (left <= partition and not refused):
        return ()
    goal = observed.desired.replicas - max(min(partition, left), len(protected))
    joined = all(machine.node_name for machine in now.members.active)
    return (*protected, *refused) if now.members.existing >= goal and joined else ()


def is_complete(observed: Observed) -> bool:
    """Every Machine that is asked for is there, is of the current template and is available; no other is left."""
    now = current_set(observed)
    return (
        now is not None
        and now.quiet
        and now.replicas == now.available == max(observed.desired.replicas, now.floor)
        and not now.outdated
        and not now.updating
        and all(state.total == 0 for state in old_sets(observed))
    )


def last_progress(observed: Observed) -> datetime:
    moments = [machine.last_moved for state in observed.sets for machine in _machines(state)]
    moments.extend(state.created for state in observed.sets)
    decided = decided_at(observed)
    if decided is not None:
        moments.append(decided)
    if observed.rollback is not None and observed.rollback.at is not None:
        moments.append(observed.rollback.at)
    moments.extend(moment for moment in (seen_at(observed), observed.allowed.eased) if moment is not None)
    return max(moments, default=observed.now)


def seen_at(observed: Observed) -> datetime | None:
    """When this spec was seen first: a rollout that was resumed or begins late is not late from its first moment on."""
    if observed.status.get("observedGeneration") != generation_of(observed.body):
        return observed.now
    return parse_time(str(observed.status.get("specSeenAt") or ""))


def overdue_in(observed: Observed) -> float | None:
    """Seconds until the deadline (negative: since); None if there is none, or nothing of it is up to us.

    A rollout that waits for people (OnDelete, protected Machines) or for a disruption budget is not late.
    """
    if not observed.desired.deadline or observed.desired.paused or not is_rolling_out(observed):
        return None
    if _waits_for_people(observed) or observed.allowed.closed or held_by_protection(observed):
        return None
    return (last_progress(observed) + observed.desired.deadline - observed.now).total_seconds()


def is_stopped(observed: Observed) -> bool:
    """It stood still for too long, and ``onFailure`` says to stop; what was taken back already is seen through."""
    goes_on = observed.desired.on_failure == OnFailure.CONTINUE or observed.rollback is not None
    return not goes_on and is_overdue(observed)


def failed_rollout(observed: Observed) -> Record | None:
    """What to write down when the rollout is to be taken back now; None if it is not, or there is nothing before it."""
    if observed.desired.on_failure != OnFailure.ROLLBACK or not is_stopped(observed):
        return None
    failed = template_hash(observed.desired.template)
    now, before = current_set(observed), last_good(observed)
    if before is None:
        return None
    return Record(
        at=observed.now,
        failed=failed,
        hash=template_hash(before.body["spec"]["template"]),
        from_revision=now.revision if now is not None else 0,
        to_revision=before.revision,
        message=standstill(observed),
    )


def last_good(observed: Observed) -> SetState | None:
    """The MachineSet of the template that was rolled out completely last; where that is not known, of the last one."""
    failed = template_hash(observed.desired.template)
    hashes = {
        state.uid: template_hash(state.body["spec"]["template"])
        for state in observed.sets
        if state.readable and not is_deleting(state.body)
    }
    earlier = [state for state in observed.sets if hashes.get(state.uid, failed) != failed]
    good = [state for state in earlier if hashes[state.uid] == observed.status.get("completedHash")]
    return max(good or earlier, key=lambda state: (state.revision, state.created), default=None)


def standstill(observed: Observed) -> str:
    """What to say of a rollout that is overdue."""
    seconds = int(observed.desired.deadline.total_seconds())
    stood = f"no progress since {format_time(last_progress(observed))}, more than {seconds} s ago"
    rollup = roll_up(machine for state in observed.sets for machine in (*state.members.active, *state.members.leaving))
    return f"{stood}: {rollup.text}" if rollup.text else stood


def _waits_for_people(observed: Observed) -> bool:
    """All that is there has joined, and what is left is to be deleted by somebody."""
    if observed.desired.strategy != StrategyType.ON_DELETE:
        return False
    machines = [machine for state in observed.sets for machine in state.members.active]
    return len(machines) >= observed.desired.replicas and all(machine.node_name for machine in machines)


def is_overdue(observed: Observed) -> bool:
    left = overdue_in(observed)
    return left is not None and left <= 0


def _machines(state: SetState) -> tuple[MachineFacts, ...]:
    return (*state.members.active, *state.members.leaving, *state.members.deleting)
