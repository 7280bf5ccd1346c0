"""RollingUpdate: never above replicas + surge, never below the minimum available by our own hand.

The arithmetic is apps/v1 Deployment's with one difference: here it is *known* which Machines a
MachineSet would remove, since the order is shared. So an unhealthy old Machine goes at once and for free, and nothing
is assumed. Limits are taken from what is there before this reconcile, so each change stands alone.

Replicas of (old, new) on the way, 3 replicas, every Machine available as soon as it is made:

- maxSurge 1, maxUnavailable 0 (at most 4, at least 3 available): 3,1 → 2,1 → 2,2 → 1,2 → 1,3 → 0,3
- maxSurge 0, maxUnavailable 1 (at most 3, at least 2 available): 2,0 → 2,1 → 1,1 → 1,2 → 0,2 → 0,3

``spare`` is how many available Machines may go. With 3 old and 1 new available and 3 required it is 3 + 1 − 3 = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from controllers.kernel.protection import sentence
from controllers.kernel.wording import counted
from controllers.machinedeployment import disruption
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.targets import Stock, Targets, within_ceiling


def roll(observed: Observed, now: SetState, old: Sequence[SetState]) -> Targets:
    """One reconcile from the old MachineSets to ``now``, the current one."""
    limits = observed.desired.limits
    available = available_uids(observed)
    new_size, notes = _size_of_new(observed, now, old)
    kept = min(now.replicas, new_size)
    new_stock = Stock(now, kept)
    new_available = new_stock.count(available)
    stocks = [Stock(state) for state in old]
    stocks.sort(key=lambda stock: not stock.head_is_annotated())
    may_go = sum(map(len, stocks)) + kept - limits.min_available - (kept - new_available)
    may_go = min(may_go, sum(map(len, stocks)) - observed.desired.partition)
    spare = new_available + sum(stock.count(available) for stock in stocks) - limits.min_available
    undisturbed = disruption.left(observed, observed.allowed)
    if undisturbed is not None:
        spare = min(spare, undisturbed)
    _take_unavailable(stocks, available, may_go)
    may_go -= sum(len(state.going) for state in old) - sum(map(len, stocks))
    _take_while_spare(stocks, available, may_go, spare)
    targets = {stock.state.uid: len(stock) for stock in stocks}
    if new_size <= now.replicas:
        new_size = _within_ceiling(new_stock, available, limits.max_total - sum(targets.values()))
    targets[now.uid] = new_size
    if new_size < now.replicas:
        targets |= within_ceiling({now.uid: new_size}, observed.sets, limits.max_total)
    if undisturbed != 0 and not _changes(targets, (now, *old)) and _is_stuck(now, old, available):
        return Targets({**targets, **_break_deadlock(stocks, available)}, (*notes, "breaking a deadlock by one"))
    protected = [machine for state in old for machine in state.protected]
    notes += [sentence(protected)] if protected else []
    left = sum(map(len, stocks)) - max(observed.desired.partition, len(protected))
    if undisturbed == 0 and left > 0:
        notes.append(f"as many Machines are down as may be: {observed.allowed.why}")
    elif left > 0:
        notes.append(
            f"{counted(left, 'old Machine waits', 'old Machines wait')}: "
            f"{limits.min_available} available ones must stay, {max(spare, 0)} can be spared"
        )
    return Targets(targets, tuple(notes))


def available_uids(observed: Observed) -> frozenset[str]:
    """UIDs of the Machines that are available and stay."""
    return frozenset(
        machine.uid
        for state in observed.sets
        for machine in state.going
        if machine is not None and machine.is_available(observed.desired.min_ready, observed.now)
    )


def taken_back(observed: Observed, state: SetState, size: int) -> int:
    """How small ``state`` may be made on its way down to ``size``: a surge that is over goes, but nothing that the
    minimum needs. Else a marked Machine that serves would go before one that was just changed and does not serve yet.

    A scale-down of the deployment is obeyed at once: it takes the marked Machines.
    """
    if state.scaled_for != observed.desired.replicas:
        return size
    available, stock = available_uids(observed), Stock(state)
    spare = len(available) - observed.desired.limits.min_available
    while len(stock) > size and stock.takeable:
        spare -= 1 if stock.head_is_available(available) else 0
        if spare < 0:
            break
        stock.take()
    return max(len(stock), size)


def _size_of_new(observed: Observed, now: SetState, old: Sequence[SetState]) -> tuple[int, list[str]]:
    """Up as far as the ceiling allows; down straight to what is wanted (its unavailable Machines go first).

    Protected old Machines count: another one in the place of each would be one too many for as long as they stay.
    """
    desired = observed.desired
    protected = sum(len(state.protected) for state in old)
    goal = max(desired.replicas - max(min(desired.partition, sum(state.replicas for state in old)), protected), 0)
    if now.replicas >= goal:
        return taken_back(observed, now, goal), []
    # Machines of its own that it was to give up are kept when it may be bigger again: they take no room from it.
    most = desired.limits.max_total - sum(state.total for state in old)
    if most <= now.replicas:
        limit, total = counted(desired.limits.max_total, "Machine"), now.total + sum(state.total for state in old)
        return now.replicas, [f"new Machines wait: there may be {limit} with the surge, and there are {total}"]
    return min(most, goal), []


def _take_unavailable(stocks: Sequence[Stock], available: frozenset[str], may_go: int) -> None:
    for stock in stocks:
        while may_go > 0 and stock.takeable and not stock.head_is_available(available):
            stock.take()
            may_go -= 1


def _take_while_spare(stocks: Sequence[Stock], available: frozenset[str], may_go: int, spare: int) -> None:
    for stock in stocks:
        while may_go > 0 and stock.takeable:
            costs = 1 if stock.head_is_available(available) else 0
            if costs > spare:
                break
            stock.take()
            may_go -= 1
            spare -= costs


def _within_ceiling(stock: Stock, available: frozenset[str], free: int) -> int:
    """After the deployment was scaled down in a rollout: new Machines that are not available give way first."""
    while len(stock) > max(free, 0) and stock.takeable and not stock.head_is_available(available):
        stock.take()
    return len(stock)


def _changes(targets: dict[str, int], states: Sequence[SetState]) -> bool:
    return any(targets[state.uid] != state.replicas for state in states)


def _is_stuck(now: SetState, old: Sequence[SetState], available: frozenset[str]) -> bool:
    """Everything is at rest, all new Machines are available, and an unhealthy old one hides behind a marked one.

    While an old one still comes up it is not: that one may be what the minimum lacks.
    """
    at_rest = now.quiet and all(state.quiet for state in old) and not any(map(_comes_up, old))
    return at_rest and now.available == now.replicas and any(_unavailable(state, available) for state in old)


def _comes_up(state: SetState) -> bool:
    """One of its Machines has no Node yet, and nothing says that it will not get one."""
    return any(m is None or not (m.node_name or m.failed or m.unhealthy) for m in state.going)


def _unavailable(state: SetState, available: frozenset[str]) -> bool:
    return any(m is None or (m.uid not in available and not m.protected) for m in state.going)


def _break_deadlock(stocks: Sequence[Stock], available: frozenset[str]) -> dict[str, int]:
    stock = next(stock for stock in stocks if _unavailable(stock.state, available))
    return {stock.state.uid: len(stock) - 1}
