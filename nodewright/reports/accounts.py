"""Accounts of providers: how many hosts each has, what is on its way, and what the provider or a limit refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from api.conditions import MachineCondition, Reason
from controllers.kernel.conditions import find
from controllers.kernel.machine_facts import read
from controllers.kernel.refs import Obj, key_of
from nodewright.reports.json_parts import part, text
from nodewright.reports.tree.advice import advice_for
from nodewright.reports.tree.runbooks import runbook_for
from providers.base.errors import ErrorClass

MOST = 200
_LIMITS: Final = (Reason.HOSTS_IN_FLIGHT, Reason.CLASS_HOSTS_IN_FLIGHT, Reason.BACKED_OFF)
_REFUSALS: Final = frozenset(map(str, (*ErrorClass, *_LIMITS, Reason.PROVIDER_UNREACHABLE, Reason.PROVIDER_UNKNOWN)))


@dataclass(slots=True)
class _Account:
    states: Counter[str] = field(default_factory=Counter)
    refusals: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What only the process that calls the providers knows, by scope. ``known``: this is that process.

    ``orphans``: hosts that no Machine knows. ``pausing``: scopes whose circuit breaker is open.
    """

    known: bool = False
    orphans: Mapping[str, int] = field(default_factory=dict)
    pausing: frozenset[str] = frozenset()


def accounts(machines: Iterable[Obj], gauges: Gauges) -> dict[str, Any]:
    """``accounts`` by ``status.hostScope`` (``provider/scope``), those with refusals first."""
    found: dict[str, _Account] = {scope: _Account() for scope in (*gauges.orphans, *gauges.pausing)}
    for machine in machines:
        facts = read(machine)
        account = found.setdefault(_scope(machine), _Account())
        account.states[_stage(facts)] += 1
        condition = find(part(machine, "status").get("conditions"), MachineCondition.INFRASTRUCTURE_READY) or {}
        reason = text(condition, "reason") if condition.get("status") != "True" else facts.reason
        if reason in _REFUSALS:
            _count(account.refusals, reason, text(condition, "message") or facts.message[:512], str(key_of(machine)))
    values = [_value(scope, account, gauges) for scope, account in found.items()]
    values.sort(key=lambda each: (not each["refusals"], each["scope"]))
    return {"accounts": values[:MOST], "leftOut": max(0, len(values) - MOST), "gauges": gauges.known}


def _scope(machine: Obj) -> str:
    """Where its host is, or "not made yet"."""
    return text(machine, "status", "hostScope") or "no host yet"


def _stage(facts: Any) -> str:
    if facts.deleting:
        return "being deleted"
    return "hosts" if facts.has_host else "on their way"


def _count(refusals: dict[str, dict[str, Any]], reason: str, message: str, example: str) -> None:
    entry = refusals.setdefault(reason, {"reason": reason, "count": 0, "message": message, "example": example})
    entry["count"] += 1


def _value(scope: str, account: _Account, gauges: Gauges) -> dict[str, Any]:
    return {
        "scope": scope,
        "orphans": gauges.orphans.get(scope, 0),
        "pausing": scope in gauges.pausing,
        "states": dict(account.states),
        "refusals": [
            {**each, **_step(str(each["reason"])), "limit": each["reason"] in _LIMITS}
            for each in sorted(account.refusals.values(), key=lambda each: -each["count"])
        ],
    }


def _step(reason: str) -> dict[str, str]:
    return {"nextStep": advice_for(reason), "runbook": runbook_for(reason)}
