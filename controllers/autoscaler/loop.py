"""Standing → Plan: what is decided, with what has to be kept before it and told after it."""

from __future__ import annotations

from api import names
from controllers.autoscaler import memory
from controllers.autoscaler.cluster_state import ClusterState
from controllers.autoscaler.figures import asleep, figures
from controllers.autoscaler.plan import plan as decide
from controllers.autoscaler.reporting import configured, report
from controllers.kernel.actions import Action, Event
from controllers.kernel.plan import Plan, Step, Wait, steps
from controllers.kernel.refs import LEASE, Key, Ref

_SOON = 1.0
"""Seconds after which to look again for something that is just being found out."""


def plan(cluster_state: ClusterState) -> Plan:
    options = cluster_state.observed.options
    pause = why_not(cluster_state)
    interval = options.scan_interval.total_seconds()
    if pause:
        wait = Wait(min(_SOON, interval) if cluster_state.unresolved else interval, pause)
        return Plan(steps(_warned(cluster_state)), wait, (pause,), asleep())
    decision = decide(cluster_state.observed)
    remembered = memory.write(decision.memory)
    return Plan(
        (*_kept(cluster_state, remembered), *decision.steps, *report(cluster_state, decision)),
        Wait(min(_SOON, interval) if cluster_state.awaiting_template else interval, "the next scan"),
        (decision.frozen,) if decision.frozen else (),
        figures(cluster_state, decision),
    )


def why_not(cluster_state: ClusterState) -> str:
    """Why nothing may be decided now; "" if it may."""
    if cluster_state.other_autoscaler:
        holder = cluster_state.other_autoscaler
        return f"the Cluster Autoscaler is at work: {holder} holds the Lease {names.AUTOSCALER_LEASE}"
    return cluster_state.unresolved


def _warned(cluster_state: ClusterState) -> list[Action]:
    """On the Lease: the ConfigMaps are the other's."""
    key = Key(cluster_state.observed.options.namespace, names.AUTOSCALER_LEASE)
    if not cluster_state.other_autoscaler:
        return []
    return [Event(Ref(LEASE, key), "Warning", "AnotherAutoscaler", "Nodewright's autoscaler does nothing meanwhile")]


def _kept(cluster_state: ClusterState, text: str) -> tuple[Step, ...]:
    """Before all else, or a rate or a delay would be forgotten by dying."""
    before = cluster_state.kept
    if text == ((before or {}).get("data") or {}).get("memory"):
        return ()
    return steps([configured(cluster_state.observed.options.memory_key, before, {"memory": text})])
