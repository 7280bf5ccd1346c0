"""How many replicas each MachineSet is to have now: in a rollout, and when it is scaled meanwhile.

What a strategy answers: how many replicas each MachineSet is to have now, and why not more.

Every single change must be right without the others: they are applied in no order, and the process may die in between.

Scaling in the middle of a rollout: each MachineSet keeps its share, so that the risk of the new template does.

As apps/v1 Deployment does it, with two differences: a set without a record of its share keeps its size
(machine-controller-manager#802 read "no record" as zero and scaled everything away), and on the way down Machines that
are not available go first, wherever they are.

10 replicas, maxSurge 20 %: at most 12 Machines, in the middle of a rollout 8 old and 4 new. After scaling to 20 at
most 24 may exist, and each set keeps its share: old 8 × 24 / 12 = 16, new 4 × 24 / 12 = 8.

RollingUpdate: never above replicas + surge, never below the minimum available by our own hand.

The arithmetic is apps/v1 Deployment's with one difference: here it is *known* which Machines a
MachineSet would remove, since the order is shared. So an unhealthy old Machine goes at once and for free, and nothing
is assumed. Limits are taken from what is there before this reconcile, so each change stands alone.

Replicas of (old, new) on the way, 3 replicas, every Machine available as soon as it is made:

- maxSurge 1, maxUnavailable 0 (at most 4, at least 3 available): 3,1 → 2,1 → 2,2 → 1,2 → 1,3 → 0,3
- maxSurge 0, maxUnavailable 1 (at most 3, at least 2 available): 2,0 → 2,1 → 1,1 → 1,2 → 0,2 → 0,3

``spare`` is how many available Machines may go. With 3 old and 1 new available and 3 required it is 3 + 1 − 3 = 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from api import names
from controllers.kernel.conditions import counted
from controllers.kernel.machine_facts import protection_sentence
from controllers.machinedeployment.observe import Observed, SetState
from controllers.machinedeployment.spec import disruptions_left


@dataclass(frozen=True, slots=True)
class Targets:
    """``replicas`` by uid of the MachineSet; one that is not named keeps what it has (never zero: MCM#802)."""

    replicas: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, state: SetState) -> int:
        return max(self.replicas.get(state.uid, state.replicas), state.floor)


def within_ceiling(sizes: Mapping[str, int], sets: Sequence[SetState], max_total: int) -> dict[str, int]:
    """``sizes`` (by uid) by which no MachineSet makes a Machine too many: those that others have to give up, and still
    have, hold hosts until they are gone (seed 614 scaled down in a rollout). Older sets give way first.
    """
    held = {state.uid: max(sizes.get(state.uid, state.replicas), state.members.alive) for state in sets}
    allowed = dict(sizes)
    for state in sets:
        if state.uid in sizes:
            others = sum(held.values()) - held[state.uid]
            allowed[state.uid] = min(sizes[state.uid], max(max_total - others, state.members.alive))
            held[state.uid] = max(allowed[state.uid], state.members.alive)
    return allowed


class Stock:
    """A MachineSet while a reconcile is worked out: whoever goes first is taken from its head.

    Protected Machines are at its end and are never taken.
    """

    def __init__(self, state: SetState, replicas: int | None = None) -> None:
        self.state = state
        wanted = state.replicas if replicas is None else replicas
        missing = max(wanted - len(state.going), 0)
        self._queue = [*([None] * missing), *state.going]
        del self._queue[: len(self._queue) - wanted]

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def takeable(self) -> bool:
        """Whether there is one to take."""
        return bool(self._queue) and (self._queue[0] is None or not self._queue[0].protected)

    def head_is_annotated(self) -> bool:
        return bool(self._queue) and self._queue[0] is not None and self._queue[0].annotated

    def head_is_available(self, available: frozenset[str]) -> bool:
        head = self._queue[0]
        return head is not None and head.uid in available

    def take(self) -> None:
        self._queue.pop(0)

    def count(self, available: frozenset[str]) -> int:
        """How many available Machines are left."""
        return sum(1 for machine in self._queue if machine is not None and machine.uid in available)


def is_scaled(observed: Observed) -> bool:
    """The replicas asked for are others than those for which the MachineSets have their sizes."""
    active = _active(observed)
    return len(active) > 1 and _differs(active, observed.desired.replicas)


def scale_proportionally(
    observed: Observed, now: SetState | None, old: Sequence[SetState], *, finish: bool = True
) -> Targets:
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
    return Targets({active[0].uid: most}) if len(active) == 1 else scale_proportionally(observed, now, old)


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
    undisturbed = disruptions_left(observed, observed.allowed)
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
    notes += [protection_sentence(protected)] if protected else []
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
