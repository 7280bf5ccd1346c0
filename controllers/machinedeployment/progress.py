"""Is the rollout done, does it move, has it taken too long?

Nothing is remembered: the last progress is the youngest thing that happened to any Machine or MachineSet, or the last
decision about sizes.
"""

from __future__ import annotations

from datetime import datetime

from controllers.kernel.machine_facts import MachineFacts
from controllers.machinedeployment import intents
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.revisions import current, old


def is_rolling_out(observed: Observed) -> bool:
    """Machines of an old template are left, or new ones never joined. A Node that fails later starts no rollout."""
    now = current(observed)
    if now is None:
        return True
    if sum(state.total for state in old(observed)) > observed.wish.partition:
        return True
    wanted = observed.wish.replicas - min(observed.wish.partition, sum(state.replicas for state in old(observed)))
    return now.members.existing < wanted or any(not machine.node_name for machine in now.members.active)


def is_complete(observed: Observed) -> bool:
    """Every Machine that is asked for is there, is of the current template and is available; no other is left."""
    now = current(observed)
    return (
        now is not None
        and now.quiet
        and now.replicas == now.available == observed.wish.replicas
        and all(state.total == 0 for state in old(observed))
    )


def last_progress(observed: Observed) -> datetime:
    moments = [machine.last_moved for state in observed.sets for machine in _machines(state)]
    moments.extend(state.created for state in observed.sets)
    decided = intents.decided_at(observed)
    if decided is not None:
        moments.append(decided)
    return max(moments, default=observed.now)


def overdue_in(observed: Observed) -> float | None:
    """Seconds until the deadline (negative: since); None if there is none or no rollout runs."""
    if not observed.wish.deadline or observed.wish.paused or not is_rolling_out(observed):
        return None
    return (last_progress(observed) + observed.wish.deadline - observed.now).total_seconds()


def is_overdue(observed: Observed) -> bool:
    left = overdue_in(observed)
    return left is not None and left <= 0


def _machines(state: SetState) -> tuple[MachineFacts, ...]:
    return (*state.members.active, *state.members.leaving, *state.members.deleting)
