"""Pods rarely come alone: while more of them come, nothing is decided, for some seconds at most.

    idle 1 s, max 10 s; pods come at 12:00:00, 01 and 02: it is decided at 12:00:04
    pods come each second for a minute: it is decided at 12:00:10, and from then on as before

As Karpenter's batch (``BATCH_IDLE_DURATION``, ``BATCH_MAX_DURATION``): Nodes for 1000 pods that were decided on
together cost less than those for 200 and 200 and 200. New Nodes end a batch. API servers tell whole seconds, so a pod
may have come up to a second after what its time says. Clocks that differ by more than that switch it off, rather than
to hold anything up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controllers.autoscaler.options import GrowthOptions
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.refs import Obj, is_deleting, spec_of

_GRAIN = timedelta(seconds=1)


def arrivals_of(pods: Iterable[Obj]) -> tuple[datetime, ...]:
    """When pods without a Node were made, or were last called Unschedulable; rising. Empty if none is Unschedulable."""
    found: set[str] = set()
    waits = False
    for pod in pods:
        spec = spec_of(pod)
        if spec.get("nodeName") or spec.get("schedulingGates") or is_deleting(pod):
            continue
        condition: Mapping[str, Any] = find((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
        waits = waits or condition.get("reason") == "Unschedulable"
        times = (pod["metadata"].get("creationTimestamp"), condition.get("lastTransitionTime"))
        found.add(max((time for time in times if isinstance(time, str)), default=""))
    read = (parse_time(text) for text in found) if waits else ()
    return tuple(sorted(time for time in read if time is not None))


def seconds_left(
    arrivals: Sequence[datetime], *, now: datetime, grown: datetime | None, growth: GrowthOptions
) -> float:
    """For how long no pod must come until it is decided; 0: now. ``grown``: when Nodes were last added."""
    if not growth.batch_idle or not arrivals or arrivals[-1] > now + _GRAIN:
        return 0.0
    first = last = arrivals[-1]
    for time in reversed(arrivals):
        if first - time > growth.batch_idle + _GRAIN or (grown is not None and time < grown - _GRAIN):
            break
        first = time
    end = min(last + _GRAIN + growth.batch_idle, first + growth.batch_max)
    return max(0.0, (end - now).total_seconds())
