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

from controllers.autoscaler.cluster_state import LOOKED_AT_WITHIN, is_unschedulable
from controllers.autoscaler.options import GrowthOptions
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import Obj, is_deleting, spec_of

_GRAIN = timedelta(seconds=1)


def arrivals_of(
    pods: Iterable[Obj], *, owners: Mapping[str, Any] | None = None, all_count: bool = False
) -> tuple[datetime, ...]:
    """When pods without a Node were made, rising; those called Unschedulable long after: when they were. Empty if none
    is Unschedulable, unless ``all_count``.

    ``owners``: uid → when those were made whose pods are expected before they are there. Such pods come together, with
    their owner, or long after that with the first of them.
    """
    found: set[tuple[Any, Any]] = set()
    first: dict[str, Any] = {}
    waits = all_count
    for pod in pods:
        spec = spec_of(pod)
        if spec.get("nodeName") or spec.get("schedulingGates") or is_deleting(pod):
            continue
        condition: Mapping[str, Any] = find((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
        waits = waits or is_unschedulable(pod)
        created = pod["metadata"].get("creationTimestamp")
        if owners and (uid := controller_uid(pod)) in owners:
            first[uid] = min(first.get(uid) or created, created or "")
            continue
        found.add((created, condition.get("lastTransitionTime")))
    found |= {(made, first.get(uid)) for uid, made in (owners or {}).items()}
    read = {_arrival(*times) for times in found} if waits else set()
    return tuple(sorted(time for time in read if time is not None))


def _arrival(created: Any, called: Any) -> datetime | None:
    """kube-scheduler takes its time for many pods, and they are decided on before it has looked at all of them."""
    made, looked_at = parse_time(created), parse_time(called)
    late = made is None or (looked_at is not None and looked_at - made > LOOKED_AT_WITHIN)
    return looked_at if late else made


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


def seconds_for_nodes(
    arrivals: Sequence[datetime], *, now: datetime, grown: datetime | None, growth: GrowthOptions
) -> float:
    """For how long Nodes that were added are waited for before those that wait for them are decided on once more; 0:
    not. kube-scheduler gives the first of them to other pods than was planned, and each look meanwhile would add some
    for the others; once all are there, one look adds what is really missing.

        max 10 s; pods came at 12:00:00, Nodes were added at 12:00:04: 12:00:14 at the latest
        another pod comes at 12:00:06: its batch counts alone (``seconds_left``)
    """
    if not growth.batch_idle or not arrivals or grown is None or arrivals[-1] >= grown - _GRAIN:
        return 0.0
    left = growth.batch_max - (now - grown)
    return min(left, growth.batch_max).total_seconds() if left > timedelta(0) else 0.0
