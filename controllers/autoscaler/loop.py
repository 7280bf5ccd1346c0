"""Standing → Plan: what is decided, with what has to be kept before it and told after it."""

from __future__ import annotations

from api import names
from controllers.autoscaler import memory
from controllers.autoscaler.plan import plan as decide
from controllers.autoscaler.standing import Standing
from controllers.kernel.actions import Create, Patch
from controllers.kernel.plan import Plan, Step, Wait, steps
from controllers.kernel.refs import CONFIG_MAP, Key, Obj, ref_of, resource_version_of

_SOON = 1.0
"""Seconds after which to look again for something that is just being found out."""


def plan(standing: Standing) -> Plan:
    options = standing.observed.options
    pause = _why_not(standing)
    interval = options.scan_interval.total_seconds()
    if pause:
        return Plan((), Wait(min(_SOON, interval) if standing.unclear else interval, pause), (pause,))
    decision = decide(standing.observed)
    remembered = memory.write(decision.memory)
    return Plan(
        (*_kept(standing, remembered), *decision.steps),
        Wait(min(_SOON, interval) if standing.asking else interval, "the next scan"),
        (decision.frozen,) if decision.frozen else (),
    )


def _why_not(standing: Standing) -> str:
    """Why nothing may be decided now; "" if it may."""
    if standing.rival:
        return f"the Cluster Autoscaler is at work: {standing.rival} holds the Lease {names.AUTOSCALER_LEASE}"
    return standing.unclear


def _kept(standing: Standing, text: str) -> tuple[Step, ...]:
    """Before all else, or a rate or a delay would be forgotten by dying."""
    before = standing.kept
    if text == ((before or {}).get("data") or {}).get("memory"):
        return ()
    key = Key(standing.observed.options.namespace, names.AUTOSCALER_MEMORY)
    return steps([written(key, before, {"memory": text}, "to be remembered")])


def written(key: Key, before: Obj | None, data: dict[str, str], why: str) -> Create | Patch:
    """The ConfigMap ``key`` with ``data``; others' keys in it stay."""
    if before is None:
        meta = {"namespace": key.namespace, "name": key.name}
        return Create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, why)
    return Patch(ref_of(CONFIG_MAP, before), {"data": data}, why, resource_version=resource_version_of(before))
