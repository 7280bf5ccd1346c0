"""OnDelete: old Machines are replaced when somebody deletes them, and at no other time."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.kernel.conditions import counted
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.rolling_update import Stock, Targets, available_uids


def follow(observed: Observed, now: SetState, old: Sequence[SetState]) -> Targets:
    """Old MachineSets shrink to the Machines that are left of them; the current one fills up what is missing.

    When the deployment was scaled down: old unavailable Machines go first, then old ones, then new ones.
    """
    wanted = observed.desired.replicas
    available = available_uids(observed)
    stocks = [Stock(state, min(state.replicas, state.members.existing)) for state in old]
    excess = sum(map(len, stocks)) + now.replicas - wanted
    for only_unavailable in (True, False):
        for stock in stocks:
            while excess > 0 and stock.takeable and not (only_unavailable and stock.head_is_available(available)):
                stock.take()
                excess -= 1
    targets = {stock.state.uid: len(stock) for stock in stocks}
    left = sum(targets.values())
    still_there = sum(state.members.alive for state in old)
    if now.replicas > wanted - left:
        targets[now.uid] = max(wanted - left, 0)
    else:
        targets[now.uid] = max(min(wanted - still_there, wanted), now.replicas)
    notes = (counted(left, "old Machine stays", "old Machines stay") + " until somebody deletes them",) if left else ()
    return Targets(targets, notes)
