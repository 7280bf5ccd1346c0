"""Over which failure domains the Machines of a set go, and which of them leave one that has no host for them.

Only a Machine without a host is ever sent elsewhere, by its ``spec.failureDomain``. The domain that it leaves rests:
the record is written first, so that no reconcile sends it back. Machines that stay keep asking their provider, so a
domain in which one waits is tried all the time and takes no further ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.conditions import Reason, SetCondition
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import Condition, find
from controllers.kernel.failure_domains import Resting, balanced, choose
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import is_deleting
from controllers.kernel.wording import counted
from controllers.machineset.observe import Observed

REST = timedelta(minutes=10)
"""So long is a domain left alone that Machines have left: the longest back-off of its class of errors."""
TRIED_AT_ONCE = 10
"""Machines without a host that a domain may hold when others are sent there: it may have as little room."""


@dataclass(frozen=True, slots=True)
class Move:
    """A Machine that asks for its host elsewhere from now on."""

    machine: MachineFacts
    domain: str


@dataclass(frozen=True, slots=True)
class Spread:
    """``open``: domains in which Machines may be made. ``resting``: the record to keep. ``exhausted``: why not others.

    ``look_at``: when a domain has rested.
    """

    open: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    resting: tuple[Resting, ...] = ()
    exhausted: tuple[tuple[str, str], ...] = ()
    look_at: datetime | None = None


NO_SPREAD = Spread()


def spread(observed: Observed) -> Spread:
    """What is known of the domains now, and who leaves one."""
    if not observed.domains:
        return NO_SPREAD
    short = _short_of_a_host(observed)
    still = {rest.domain: rest for rest in observed.resting if rest.until > observed.now}
    without = {machine.failure_domain: machine.shortage for machine in short}
    without |= {rest.domain: rest.reason for rest in still.values()}
    domains = tuple(domain for domain in observed.domains if domain not in without)
    ends = is_deleting(observed.body) or observed.cluster_deleting
    moves = () if ends else _moves(observed, short, domains)
    for move in moves:
        left = move.machine.failure_domain
        still.setdefault(left, Resting(left, move.machine.shortage, _whole(observed.now + REST)))
    kept = tuple(still[domain] for domain in sorted(still) if domain in observed.domains)
    exhausted = tuple((domain, _description(domain, without[domain], still)) for domain in sorted(without))
    look_at = min((rest.until for rest in kept), default=None)
    return Spread(domains, moves, kept, exhausted, look_at)


def places(observed: Observed, found: Spread, ordinals: Iterable[int]) -> dict[int, str]:
    """Failure domains for these ordinals. Those on their way count, though it can't be seen where they went.

    Where every domain is exhausted a Machine waits in the emptiest: it may be the first that has room again.
    """
    asked = sorted(ordinals)
    on_their_way = [ordinal for ordinal in observed.members.pending if ordinal not in asked]
    loads = _loads(observed)
    for move in found.moves:
        loads[move.machine.failure_domain] -= 1
        loads[move.domain] += 1
    chosen = choose(found.open or observed.domains, loads, len(on_their_way) + len(asked))
    return dict(zip(asked, chosen[len(on_their_way) :], strict=False))


def move_patches(observed: Observed, found: Spread) -> list[Patch]:
    """Guarded: a Machine that has got its host meanwhile stays."""
    return [
        Patch(
            move.machine.ref,
            {"spec": {"failureDomain": move.domain}},
            f"Machine {move.machine.key.name} is to have its host in failure domain {move.domain}: "
            f"{move.machine.failure_domain} has none ({move.machine.shortage})",
            resource_version=move.machine.resource_version,
        )
        for move in found.moves
    ]


def news(observed: Observed, found: Spread) -> list[Action]:
    """An Event for each domain that begins to rest."""
    known = {rest.domain for rest in observed.resting if rest.until > observed.now}
    fresh = [rest for rest in found.resting if rest.domain not in known]
    return [
        Event(observed.ref, "Warning", Reason.FAILURE_DOMAIN_EXHAUSTED, f"{rest}; Machines go elsewhere")
        for rest in fresh
    ]


def to_status(found: Spread) -> list[dict[str, str]] | None:
    return [rest.to_status() for rest in found.resting] or None


def condition(observed: Observed, found: Spread) -> list[Condition]:
    """How evenly they are spread, and which domains are not used and why; only where they are to be spread."""
    type_ = SetCondition.BALANCED
    if not observed.domains:
        was = find(observed.status.get("conditions"), type_)
        return [Condition(type_, "True", Reason.BALANCED, "there are no failure domains to spread over")] if was else []
    return [balanced(type_, observed.domains, _loads(observed), [text for _, text in found.exhausted])]


def _moves(observed: Observed, short: list[MachineFacts], domains: tuple[str, ...]) -> tuple[Move, ...]:
    """The oldest first, each to the emptiest open domain that is not being tried by enough of them already."""
    loads = _loads(observed)
    trying = Counter(machine.failure_domain for machine in observed.members.active if not machine.has_host)
    found: list[Move] = []
    for machine in short:
        possible = [domain for domain in domains if trying[domain] < TRIED_AT_ONCE]
        if not possible:
            break
        (domain,) = choose(possible, loads, 1)
        loads[machine.failure_domain] -= 1
        loads[domain] += 1
        trying[domain] += 1
        found.append(Move(machine, domain))
    return tuple(found)


def _short_of_a_host(observed: Observed) -> list[MachineFacts]:
    unmatched = {machine.key for machine in observed.unmatched}
    found = [
        machine
        for machine in observed.members.active
        if machine.shortage and machine.failure_domain in observed.domains and machine.key not in unmatched
    ]
    return sorted(found, key=lambda machine: (machine.created, machine.key))


def _loads(observed: Observed) -> Counter[str]:
    return Counter(machine.failure_domain for machine in observed.members.active)


def _description(domain: str, reason: str, resting: dict[str, Resting]) -> str:
    rest = resting.get(domain)
    return str(rest) if rest is not None else f"failure domain {domain} has no host ({reason})"


def _whole(moment: datetime) -> datetime:
    """As it reads once it is written."""
    return moment.replace(microsecond=0)


def moved(found: Spread) -> str:
    return counted(len(found.moves), "Machine goes", "Machines go") + " to another failure domain"
