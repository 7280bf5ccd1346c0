"""Standing → Plan: what is decided, with what has to be kept before it and told after it."""

from __future__ import annotations

from api import names
from controllers.autoscaler import memory
from controllers.autoscaler.figures import asleep, figures
from controllers.autoscaler.plan import plan as decide
from controllers.autoscaler.standing import Standing
from controllers.autoscaler.telling import configured, report
from controllers.kernel.actions import Action, Event
from controllers.kernel.plan import Plan, Step, Wait, steps
from controllers.kernel.refs import LEASE, Key, Ref

_SOON = 1.0
"""Seconds after which to look again for something that is just being found out."""


def plan(standing: Standing) -> Plan:
    options = standing.observed.options
    pause = why_not(standing)
    interval = options.scan_interval.total_seconds()
    if pause:
        wait = Wait(min(_SOON, interval) if standing.unclear else interval, pause)
        return Plan(steps(_warned(standing)), wait, (pause,), asleep())
    decision = decide(standing.observed)
    remembered = memory.write(decision.memory)
    return Plan(
        (*_kept(standing, remembered), *decision.steps, *report(standing, decision)),
        Wait(min(_SOON, interval) if standing.asking else interval, "the next scan"),
        (decision.frozen,) if decision.frozen else (),
        figures(standing, decision),
    )


def why_not(standing: Standing) -> str:
    """Why nothing may be decided now; "" if it may."""
    if standing.rival:
        return f"the Cluster Autoscaler is at work: {standing.rival} holds the Lease {names.AUTOSCALER_LEASE}"
    return standing.unclear


def _warned(standing: Standing) -> list[Action]:
    """On the Lease: the ConfigMaps are the other's."""
    key = Key(standing.observed.options.namespace, names.AUTOSCALER_LEASE)
    if not standing.rival:
        return []
    return [Event(Ref(LEASE, key), "Warning", "AnotherAutoscaler", "Nodewright's autoscaler does nothing meanwhile")]


def _kept(standing: Standing, text: str) -> tuple[Step, ...]:
    """Before all else, or a rate or a delay would be forgotten by dying."""
    before = standing.kept
    if text == ((before or {}).get("data") or {}).get("memory"):
        return ()
    return steps([configured(standing.observed.options.memory_key, before, {"memory": text})])
