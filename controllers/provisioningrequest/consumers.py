"""Pods that consume a request and find no place: no Node is made for them, and they and their request say why.

The proposal: if others took the checked capacity, "the CA will not provision the capacity … and will result in
visibility events passed to the ProvReq and pods".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from api.conditions import ProvisioningCondition
from controllers.autoscaler.cluster_state import is_unschedulable
from controllers.autoscaler.requests import Request, consumed_by
from controllers.autoscaler.status import MOST_EVENTS
from controllers.kernel.actions import Event
from controllers.kernel.conditions import counted
from controllers.kernel.refs import POD, Key, Obj, Ref, is_deleting, ref_of
from controllers.provisioningrequest.classes import CheckCapacity, ProvisioningClass

REASON = "NotTriggerScaleUp"
"""The Cluster Autoscaler's word on pods for which nothing grows."""
_LONGEST = 900


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a Node, and the request that it names."""

    pod: Ref
    request: Key


def waiting_for_place(pods: Iterable[Obj]) -> tuple[Waiting, ...]:
    """Pods that kube-scheduler found no Node for."""
    return tuple(
        Waiting(ref_of(POD, pod), request)
        for pod in pods
        if is_unschedulable(pod) and not is_deleting(pod) and (request := consumed_by(pod)) is not None
    )


def consumer_events(
    waiting: Iterable[Waiting], requests: Iterable[Request], classes: dict[str, ProvisioningClass]
) -> Iterator[Event]:
    """At most MOST_EVENTS on pods, and one on each request of the class check-capacity that has such pods."""
    by_key = {request.ref.key: request for request in requests}
    pods: dict[Key, int] = {}
    for number, each in enumerate(waiting):
        request = by_key.get(each.request)
        if request is not None and not isinstance(classes.get(request.class_name), CheckCapacity):
            continue
        if request is not None:
            pods[each.request] = pods.get(each.request, 0) + 1
        if number < MOST_EVENTS:
            yield Event(each.pod, "Normal", REASON, _of_pod(each.request, request)[:_LONGEST])
    for key, count in pods.items():
        those = counted(count, "pod")
        why = f"{those} that consume it found no Node, and none is made for them: {_cluster_state(by_key[key])}"
        yield Event(by_key[key].ref, "Warning", REASON, why[:_LONGEST])


def _of_pod(named: Key, request: Request | None) -> str:
    if request is None:
        return f"it consumes ProvisioningRequest {named}, which does not exist; the pod waits until there is one"
    return (
        f"it consumes ProvisioningRequest {named}, whose class only checks for room: no Node is made for it; "
        f"{_cluster_state(request)}"
    )


def _cluster_state(request: Request) -> str:
    """What has become of the room, as the request itself says it."""
    if request.says(ProvisioningCondition.FAILED):
        return "the request has failed"
    if request.says(ProvisioningCondition.CAPACITY_REVOKED) or request.says(ProvisioningCondition.BOOKING_EXPIRED):
        return "its booking is over; delete the request or the pod's annotations to have Nodes made"
    if request.says(ProvisioningCondition.PROVISIONED):
        return "the room was found, and other pods or a Node's limits took it since"
    return "the room has not been found yet"
