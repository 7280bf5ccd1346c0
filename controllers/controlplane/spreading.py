"""Which failure domains have no host for a Machine of the control plane, and where such a Machine asks instead.

Only a Machine without a host is sent elsewhere. The domain that it leaves rests, which is written first, so that no
reconcile sends it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from api.conditions import ControlPlaneCondition, Reason
from controllers.controlplane.observe import Observed
from controllers.controlplane.placement import loads, next_domain
from controllers.kernel.actions import Action, Event, Patch
from controllers.kernel.conditions import Condition, find
from controllers.kernel.failure_domains import Resting, balanced
from controllers.kernel.machine_facts import MachineFacts

REST = timedelta(minutes=10)
"""As long as in a MachineSet: the longest back-off of that class of errors."""


@dataclass(frozen=True, slots=True)
class Move:
    """A Machine that asks for its host in ``domain`` from now on, and the record that the one it left rests."""

    machine: MachineFacts
    domain: str
    rests: Resting


def move_of(observed: Observed) -> Move | None:
    """One Machine joins at a time, so one moves. Where all domains are exhausted it waits where it is."""
    short = next(iter(_short_of_a_host(observed)), None)
    if short is None or observed.state.blocked or set(observed.state.domains) <= observed.state.exhausted:
        return None
    until = (observed.now + REST).replace(microsecond=0)
    domain = next_domain(observed.state)
    return Move(short, domain, Resting(short.failure_domain, short.shortage, until))


def record(observed: Observed, move: Move | None) -> list[dict[str, str]] | None:
    """``status.restingFailureDomains``."""
    kept = {rest.domain: rest for rest in _resting(observed)}
    if move is not None:
        kept[move.rests.domain] = move.rests
    return [kept[domain].to_status() for domain in sorted(kept)] or None


def actions(observed: Observed, move: Move) -> list[Action]:
    """Guarded: a Machine that has got its host meanwhile stays."""
    machine = move.machine
    why = (
        f"Machine {machine.key.name} is to have its host in failure domain {move.domain}: "
        f"{machine.failure_domain} has none ({machine.shortage})"
    )
    patch = {"spec": {"failureDomain": move.domain}}
    return [
        Patch(machine.ref, patch, why, resource_version=machine.resource_version),
        Event(observed.ref, "Warning", Reason.FAILURE_DOMAIN_EXHAUSTED, f"{move.rests}; its Machine goes elsewhere"),
    ]


def condition(observed: Observed) -> list[Condition]:
    """How evenly Machines are spread, only where they are to be."""
    type_ = ControlPlaneCondition.BALANCED
    if not observed.state.domains:
        was = find(observed.status.get("conditions"), type_)
        return [Condition(type_, "True", Reason.BALANCED, "there are no failure domains to spread over")] if was else []
    words = {rest.domain: str(rest) for rest in _resting(observed)}
    for machine in _short_of_a_host(observed):
        without = f"failure domain {machine.failure_domain} has no host ({machine.shortage})"
        words.setdefault(machine.failure_domain, without)
    exhausted = [words[domain] for domain in sorted(words)]
    return [balanced(type_, observed.state.domains, loads(observed.state), exhausted)]


def _short_of_a_host(observed: Observed) -> list[MachineFacts]:
    return [
        m for m in observed.machines if m.shortage and not m.deleting and m.failure_domain in observed.state.domains
    ]


def _resting(observed: Observed) -> list[Resting]:
    return [rest for rest in observed.resting if rest.until > observed.now and rest.domain in observed.state.domains]
