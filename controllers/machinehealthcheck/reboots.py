"""Is the host of an unhealthy Machine booted anew, before its owner is asked to replace it? (docs/adr/0030)

The request is written into the Machine's status, with an id of its own, before anybody acts on it; the Machine's own
controller has it done. What follows is judged by the Machine's health alone: it has until the deadline to come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import find
from controllers.kernel.memory import digest
from controllers.kernel.refs import uid_of
from controllers.kernel.remediation import RebootRequest, reboot_request_of, unhealthy_since
from controllers.machinehealthcheck.health import Unhealthy
from controllers.machinehealthcheck.observe import Target
from controllers.machinehealthcheck.spec import Strategy

_MAY_HELP = frozenset({Reason.UNHEALTHY_NODE, Reason.UNHEALTHY_MACHINE, Reason.NODE_MISSING})
"""What a host may get over by being booted anew. One that never joined has nothing to go back to."""


@dataclass(frozen=True, slots=True)
class Reboots:
    """By name of the Machine: ``asked`` are those of which a reboot is under way, ``fresh`` those among them that are
    asked for now."""

    asked: Mapping[str, RebootRequest] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()

    @property
    def look_at(self) -> datetime | None:
        return min((each.deadline for each in self.asked.values()), default=None)


NO_REBOOTS = Reboots()


def reboot_of(target: Target, strategy: Strategy, now: datetime) -> RebootRequest | None:
    """The one that is under way or to be asked for; None: the Machine is to be replaced."""
    machine = target.machine
    verdict = target.verdict
    if not isinstance(verdict, Unhealthy) or verdict.asked or verdict.reason not in _MAY_HELP:
        return None
    if not strategy.reboots or machine.selected_for_deletion or _is_unsupported(target):
        return None
    before = reboot_request_of(machine.body)
    since = unhealthy_since(machine.body) or now
    counts = before is not None and (
        before.requested_at >= since or since - before.requested_at < strategy.min_healthy_period
    )
    if before is not None and counts and now < before.deadline:
        return before
    number = before.number + 1 if before is not None and counts else 1
    if number > strategy.reboots:
        return None
    attempt = digest([uid_of(machine.body), since.isoformat(), number], 16)
    return RebootRequest(attempt, number, now, now + strategy.reboot_timeout)


def split(chosen: Sequence[Target], strategy: Strategy, now: datetime) -> tuple[frozenset[str], Reboots]:
    """Names of those of ``chosen`` that are to be replaced, and the reboots of the others."""
    before = {target.name: reboot_request_of(target.machine.body) for target in chosen}
    asked = {target.name: reboot for target in chosen if (reboot := reboot_of(target, strategy, now)) is not None}
    fresh = frozenset(name for name, reboot in asked.items() if reboot != before[name])
    return frozenset(target.name for target in chosen) - asked.keys(), Reboots(asked, fresh)


def _is_unsupported(target: Target) -> bool:
    conditions = (target.machine.body.get("status") or {}).get("conditions")
    found = find(conditions, MachineCondition.HOST_REBOOTED)
    return found is not None and found.get("reason") == Reason.REBOOT_UNSUPPORTED
