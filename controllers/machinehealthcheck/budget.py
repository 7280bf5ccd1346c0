"""Which unhealthy Machines their owner is asked to replace now: newest first, no more at a time than allowed, and ever
more slowly where replacing does not help.

A *place* is a Machine and those made for it one after the other. It is being replaced from the request until the
replacement is healthy, so that a replacement that fails as well takes no second one of the budget. Whom its owner
leaves to a rollout is not being replaced, and gives way to all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.intorstring import resolve
from controllers.kernel.machine_facts import WAY_OUT
from controllers.kernel.remediation import is_being_rebooted, unhealthy_since
from controllers.machinehealthcheck import reboots
from controllers.machinehealthcheck.correlation import Freeze
from controllers.machinehealthcheck.health import Healthy, Unhealthy, Unseen, is_bad
from controllers.machinehealthcheck.observe import Observed, Target, in_treatment
from controllers.machinehealthcheck.reboots import NO_REBOOTS, Reboots
from controllers.machinehealthcheck.spec import Strategy

STUBBORN_PERIOD = timedelta(minutes=1)
"""Shortest wait between replacements that are not known to help, whatever ``retryPeriod`` says (MAO#736)."""
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Stock:
    """``bad``: places that are unhealthy, look so or are being replaced; ``moving``: those that are being replaced.

    ``expected``: Machines that there are to be.
    """

    bad: frozenset[str]
    moving: frozenset[str]
    expected: int


@dataclass(frozen=True, slots=True)
class Choice:
    """``selected_for_deletion``: names of Machines whose owner is to replace them. ``look_at``: when a wait is over.

    ``spare``: further replacements that the budget allows, None: any number. ``notes``: why others are not chosen.
    ``given_up``: names of Machines that were replaced too often. ``reboots``: of Machines that are not replaced yet.
    """

    selected_for_deletion: frozenset[str] = frozenset()
    spare: int | None = None
    look_at: datetime | None = None
    notes: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    reboots: Reboots = NO_REBOOTS


def stock(observed: Observed) -> Stock:
    strategy, now = observed.desired.strategy, observed.now
    going = observed.leaving | observed.unborn
    moving, bad = set(going), set(going)
    for target in observed.targets:
        young = _is_young(target, strategy, now) and not isinstance(target.verdict, Healthy)
        asked_for = _is_asked_for(target, now)
        if not target.deferred and (young or (asked_for and isinstance(target.verdict, Unhealthy | Unseen))):
            moving.add(place(target, strategy, now))
        if young or is_bad(target.verdict):
            bad.add(place(target, strategy, now))
    there = {place(target, strategy, now) for target in observed.targets}
    return Stock(frozenset(bad), frozenset(moving), len(observed.targets) + len(going - there))


def place(target: Target, strategy: Strategy, now: datetime) -> str:
    """The Machine that stands for its place: the one before, as long as this one has not proved itself."""
    return target.place.machine if retries(target, strategy, now) else target.name


def retries(target: Target, strategy: Strategy, now: datetime) -> int:
    """How often the place was replaced in a row; one that stayed healthy for long enough starts the count anew."""
    count, after = 0, unhealthy_since(target.machine.body) or now
    for moment in reversed(target.place.times):
        if after - moment >= strategy.min_healthy_period:
            break
        count, after = count + 1, moment
    return count


def _is_young(target: Target, strategy: Strategy, now: datetime) -> bool:
    """It took another's place a short while ago: until it is healthy, that one is still being replaced."""
    times = target.place.times
    return bool(times) and now - times[-1] < strategy.min_healthy_period


def choose(observed: Observed, frozen: Freeze, held: Stock) -> Choice:
    """Whom to condemn, if the circuit is closed."""
    strategy, now = observed.desired.strategy, observed.now
    limit = strategy.max_in_flight
    most = None if limit is None else resolve(limit, held.expected, "up")
    moving, notes = set(held.moving), []
    chosen: list[Target] = []
    waits: list[datetime] = []
    given_up: list[str] = []
    for target, verdict in _in_order(observed.targets, now):
        why = _never(target, verdict, frozen, needs_owner=_needs_owner(observed, target))
        tried = 0 if verdict.asked else retries(target, strategy, now)
        ready_at = _ready_at(target, verdict, strategy, tried)
        whose = place(target, strategy, now)
        if not why and strategy.max_retry is not None and tried > strategy.max_retry:
            given_up.append(target.name)
            why = f"its place was replaced {tried} times in a row, maxRetry is {strategy.max_retry}"
        elif not why and ready_at > now:
            waits.append(ready_at)
            why = f"its place was replaced {tried} times in a row, the next time comes later"
        elif not why and most is not None and whose not in moving and len(moving) >= most:
            why = f"maxInFlight allows {most} at a time"
        if why:
            notes.append(f"Machine {target.name} is not replaced now: {why}")
            continue
        moving.add(whose)
        chosen.append(target)
    selected, rebooting = reboots.split(chosen, strategy, now)
    waits += [rebooting.look_at] if rebooting.look_at is not None else []
    spare = None if most is None else max(most - len(moving), 0)
    return Choice(selected, spare, min(waits, default=None), tuple(notes), tuple(given_up), rebooting)


def _needs_owner(observed: Observed, target: Target) -> bool:
    """Whether it can only be mended by somebody who makes another."""
    is_rebooted = reboots.reboot_of(target, observed.desired.strategy, observed.now) is not None
    return observed.desired.template is None and (target.machine.protected or not is_rebooted)


def _is_asked_for(target: Target, now: datetime) -> bool:
    body = target.machine.body
    return target.machine.selected_for_deletion or in_treatment(body) or is_being_rebooted(body, now)


def _in_order(targets: Iterable[Target], now: datetime) -> list[tuple[Target, Unhealthy]]:
    """Those that were asked for already, those that a person asks for, then the newest (the least is lost with it).

    Last come those whose owner waits for a rollout: it in turn may wait for the others.
    """
    found = [(target, target.verdict) for target in targets if isinstance(target.verdict, Unhealthy)]
    return sorted(
        found,
        key=lambda pair: (
            pair[0].deferred,
            not _is_asked_for(pair[0], now),
            not pair[1].asked,
            -pair[0].machine.created.timestamp(),
            pair[0].name,
        ),
    )


def _never(target: Target, verdict: Unhealthy, frozen: Freeze, needs_owner: bool) -> str:
    """Why no owner is asked, whatever the budget; "" if one may be."""
    if target.machine.protected and needs_owner:
        return f"its membership status protects it (evictable: false); {WAY_OUT}"
    if not target.machine.owner_uid and needs_owner:
        return "nobody owns it, so nobody would make another; delete it by hand"
    if verdict.incurable and not verdict.asked:
        return "another one of this spec would fail alike"
    return frozen.why(target)


def _ready_at(target: Target, verdict: Unhealthy, strategy: Strategy, tried: int) -> datetime:
    """When the place may be replaced again."""
    if not tried:
        return target.machine.created
    period = max(strategy.retry_period, STUBBORN_PERIOD if verdict.stubborn else timedelta(0))
    doublings: int = 2 ** min(tried - 1, _MOST_DOUBLINGS)
    wait = min(period * doublings, max(strategy.max_retry_period, period))
    return target.place.times[-1] + wait
