"""Recreate: all old Machines go, hosts included, before the first new one comes.

While a protected old Machine is there that can't be: then none goes, since no new one could come in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from controllers.kernel.conditions import counted
from controllers.kernel.machine_facts import protection_sentence
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.rolling_update import Stock, Targets


def recreate(observed: Observed, now: SetState, old: Sequence[SetState]) -> Targets:
    wanted = observed.desired.replicas
    protected = [machine for state in old for machine in state.protected]
    if protected:
        return Targets(_smaller(now, old, wanted), (f"the rollout waits: {protection_sentence(protected)}",))
    targets = {state.uid: 0 for state in old}
    left = sum(state.total + len(state.members.deleting) for state in old)
    targets[now.uid] = min(now.replicas, wanted) if left else wanted
    notes = ("new Machines wait until " + counted(left, "old one is gone", "old ones are gone"),) if left else ()
    return Targets(targets, notes)


def _smaller(now: SetState, old: Sequence[SetState], wanted: int) -> dict[str, int]:
    """All sizes as they are; where the deployment was scaled down, new Machines go before old ones."""
    stocks = [Stock(state) for state in (now, *old)]
    excess = sum(map(len, stocks)) - wanted
    for stock in stocks:
        while excess > 0 and stock.takeable:
            stock.take()
            excess -= 1
    return {stock.state.uid: len(stock) for stock in stocks}
