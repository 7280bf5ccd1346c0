"""Scaling in the middle of a rollout: each MachineSet keeps its share, so that the risk of the new template does.

As apps/v1 Deployment does it, with two differences: a set without a record of its share keeps its size
(machine-controller-manager#802 read "no record" as zero and scaled everything away), and on the way down Machines that
are not available go first, wherever they are.

10 replicas, maxSurge 20 %: at most 12 Machines, in the middle of a rollout 8 old and 4 new. After scaling to 20 at
most 24 may exist, and each set keeps its share: old 8 × 24 / 12 = 16, new 4 × 24 / 12 = 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from api import names
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.rolling_update import available_uids, taken_back
from controllers.machinedeployment.targets import Stock, Targets, within_ceiling


def is_scaled(observed: Observed) -> bool:
    """The replicas asked for are others than those for which the MachineSets have their sizes."""
    active = _active(observed)
    return len(active) > 1 and _differs(active, observed.desired.replicas)


def scale(observed: Observed, now: SetState | None, old: Sequence[SetState], *, finish: bool = True) -> Targets:
    """Sizes for the deployment's replicas without moving the rollout.

    ``finish``: old Machines go when the new ones are all there (nothing is left to wait for).
    """
    wanted = observed.desired.replicas
    active = _active(observed)
    free = _free(observed)
    if len(active) <= 1:
        only = active[0] if active else now or (old[-1] if old else None)
        if only is None:
            return Targets()
        size = min(wanted, max(only.replicas, free + only.total))
        sizes = {only.uid: taken_back(observed, only, size)}
        return Targets(within_ceiling(sizes, observed.sets, observed.desired.limits.max_total))
    if finish and now is not None and now.replicas == wanted and now.available >= wanted:
        return Targets({state.uid: 0 for state in old}, ("the new Machines are all there",))
    if not _differs(active, wanted):
        return Targets()
    allowed = observed.desired.limits.max_total if wanted else 0
    add = allowed - sum(state.replicas for state in active)
    sizes = _grow(active, allowed, min(add, free)) if add >= 0 else _shrink(observed, active, -add)
    return Targets(within_ceiling(sizes, observed.sets, allowed))


def give_up_first(observed: Observed, now: SetState | None, old: Sequence[SetState]) -> Targets | None:
    """Sizes that can't wait for a set to get another template: whoever scaled down wants no Machine made for the size
    of before, and a set that is short of one makes it (seed 34). None if nothing is to be given up.

    A set alone keeps the surge, which it is given again once it updates in place.
    """
    active, most = _active(observed), observed.desired.limits.max_total if observed.desired.replicas else 0
    if not _differs(active, observed.desired.replicas) or sum(state.replicas for state in active) <= most:
        return None
    return Targets({active[0].uid: most}) if len(active) == 1 else scale(observed, now, old)


def _active(observed: Observed) -> list[SetState]:
    return [state for state in observed.sets if state.replicas > 0 and state.readable]


def _differs(active: Sequence[SetState], wanted: int) -> bool:
    return any(state.scaled_for not in (None, wanted) for state in active)


def _free(observed: Observed) -> int:
    """How many Machines may be created now: Machines that a set gives up hold hosts until they are gone."""
    return max(observed.desired.limits.max_total - sum(state.total for state in observed.sets), 0)


def _grow(active: Sequence[SetState], allowed: int, add: int) -> dict[str, int]:
    """Bigger sets first, newer first among equals; what rounding leaves goes to the first.

    Machines that a set was to give up and still has are taken back before others are made (found by simulation), also
    those that it has chosen already (seed 1289): it takes its choice back as far as its replicas grow.
    """
    order = sorted(active, key=lambda state: (-state.replicas, -state.created.timestamp(), state.name))
    sizes, left = {}, add
    for state in order:
        there = state.members.existing + len(state.members.recallable)
        back = min(max(there - state.replicas, 0), left)
        sizes[state.uid] = state.replicas + back
        left -= back
    for state in order:
        share = min(max(_share(state, allowed) - sizes[state.uid], 0), left)
        sizes[state.uid] += share
        left -= share
    sizes[order[0].uid] += left
    return sizes


def _shrink(observed: Observed, active: Sequence[SetState], remove: int) -> dict[str, int]:
    available = available_uids(observed)
    stocks = [Stock(state) for state in active]
    for stock in stocks:
        while remove > 0 and stock.takeable and not stock.head_is_available(available):
            stock.take()
            remove -= 1
    stocks.sort(key=lambda stock: (-len(stock), stock.state.created, stock.state.name))
    total, left = sum(map(len, stocks)), remove
    for stock in stocks:
        share = min(round(len(stock) * remove / total) if total else 0, left)
        for _ in range(share):
            if stock.takeable:
                stock.take()
                left -= 1
    for stock in stocks:
        while left > 0 and stock.takeable:
            stock.take()
            left -= 1
    return {stock.state.uid: len(stock) for stock in stocks}


def _share(state: SetState, allowed: int) -> int:
    """The size that keeps the set's share of the most there may be; its own size if it has no record."""
    before = state.recorded(names.MAX_REPLICAS_ANNOTATION)
    return round(state.replicas * allowed / before) if before else state.replicas


def scale_annotations(replicas: int, max_total: int) -> Mapping[str, str]:
    """What each MachineSet remembers of the deployment for the next proportional scaling."""
    return {names.DESIRED_REPLICAS_ANNOTATION: str(replicas), names.MAX_REPLICAS_ANNOTATION: str(max_total)}
