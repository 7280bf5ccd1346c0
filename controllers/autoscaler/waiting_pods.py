"""Pods that wait for a Node, as kube-scheduler's conditions and the times of the pods tell it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from controllers.kernel.conditions import find, parse_time
from controllers.kernel.refs import Obj, is_deleting, spec_of
from controllers.scheduling.shapes import PodInfo

LOOKED_AT_WITHIN = timedelta(minutes=1)
"""What kube-scheduler has not looked at after so long, it leaves alone."""


def comes_again(pod: PodInfo) -> bool:
    """Whether its controller makes another one in its place when its Node goes."""
    keeping = pod.kind.keeping
    return keeping.replicated and not keeping.daemon_set and not keeping.mirror and not pod.kind.terminating


def look_for_nodes(pods: Iterable[tuple[Obj, PodInfo]], now: datetime) -> list[PodInfo]:
    """Those for which kube-scheduler found none, and young ones that it has yet to look at, if it looks at all: decided
    on 300 of 1000 pods, Nodes would be chosen as if the others did not come. All are tried on Nodes that are there.
    """
    found, unseen, schedulers = [], [], set[Any]()
    for body, pod in pods:
        if is_unschedulable(body):
            found.append(pod)
            schedulers.add(spec_of(body).get("schedulerName"))
        elif not is_deleting(body) and find((body.get("status") or {}).get("conditions"), "PodScheduled") is None:
            unseen.append((body, pod))
    return found + [pod for body, pod in unseen if _is_next(body, pod, schedulers=schedulers, now=now)]


def _is_next(body: Obj, pod: PodInfo, *, schedulers: Container[Any], now: datetime) -> bool:
    created = parse_time(pod.created)
    return created is not None and now - created < LOOKED_AT_WITHIN and spec_of(body).get("schedulerName") in schedulers


def is_unschedulable(pod: Obj) -> bool:
    """Whether kube-scheduler found no Node for it."""
    if is_deleting(pod):
        return False
    condition: Mapping[str, Any] = find((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
    return condition.get("status") == "False" and condition.get("reason") == "Unschedulable"
