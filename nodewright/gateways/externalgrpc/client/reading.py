"""Answers of a provider → our words. Whatever it answers is bounded, and what can't be used is named. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from google.protobuf.message import DecodeError

from api import limits, names
from controllers.autoscaler.external import Instance, InstanceState
from nodewright.gateways.externalgrpc.wire import cloudprovider_pb2 as wire
from nodewright.gateways.externalgrpc.wire import core_pb2 as core
from providers.base.contract import Shape, Taint

_OUT_OF_RESOURCES = 1
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HOSTNAME = "kubernetes.io/hostname"
_STATES = {
    1: InstanceState.RUNNING,
    2: InstanceState.CREATING,
    3: InstanceState.DELETING,
}


class AnswerError(ValueError):
    """An answer that can't be used; the message says why."""


def group_ids(found: Iterable[wire.NodeGroup]) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
    """Group → its bounds, and what is wrong with the others. Raises AnswerError if there are too many."""
    good: dict[str, tuple[int, int]] = {}
    bad: dict[str, str] = {}
    for number, group in enumerate(found):
        if number >= limits.MAX_PROVIDER_GROUPS:
            raise AnswerError(f"NodeGroups: more than {limits.MAX_PROVIDER_GROUPS} groups")
        if not usable_id(group.id):
            bad[reported(group.id)] = "its id is empty, too long or has control characters"
        elif group.id in good:
            bad[group.id] = "the provider lists it twice"
        elif not 0 <= group.minSize <= group.maxSize <= limits.MAX_PROVIDER_SIZE:
            bad[group.id] = f"bounds {group.minSize} to {group.maxSize} are no range up to {limits.MAX_PROVIDER_SIZE}"
        else:
            good[group.id] = (group.minSize, group.maxSize)
    for name in bad.keys() & good.keys():
        del good[name]
    return good, bad


def size(target: int) -> int:
    if not 0 <= target <= limits.MAX_PROVIDER_SIZE:
        raise AnswerError(f"NodeGroupTargetSize: {target} is not between 0 and {limits.MAX_PROVIDER_SIZE}")
    return target


def instances(found: Iterable[wire.Instance]) -> tuple[Instance, ...]:
    """Each once. Raises AnswerError if there are too many."""
    known: dict[str, Instance] = {}
    for number, each in enumerate(found):
        if number >= limits.MAX_PROVIDER_INSTANCES:
            raise AnswerError(f"NodeGroupNodes: more than {limits.MAX_PROVIDER_INSTANCES} instances")
        if usable_id(each.id):
            known.setdefault(each.id, _instance(each))
    return tuple(known.values())


def _instance(each: wire.Instance) -> Instance:
    """An error counts of an instance that is being created only, as for the Cluster Autoscaler."""
    state = _STATES.get(each.status.instanceState, InstanceState.UNKNOWN)
    info = each.status.errorInfo
    if state is not InstanceState.CREATING or not info.errorCode:
        return Instance(each.id, state)
    text = f"{reported(info.errorCode)}: {reported(info.errorMessage)}"
    return Instance(each.id, state, text, info.instanceErrorClass == _OUT_OF_RESOURCES)


def template(content: bytes) -> Shape:
    """Raises AnswerError. What pods may use counts as all that the host has: the provider has taken off the rest."""
    if not content:
        raise AnswerError("NodeGroupTemplateNodeInfo: the answer has no Node")
    if len(content) > limits.MAX_PROVIDER_NODE:
        raise AnswerError(f"NodeGroupTemplateNodeInfo: the Node has more than {limits.MAX_PROVIDER_NODE} bytes")
    try:
        node = core.Node.FromString(content)
    except DecodeError as error:
        raise AnswerError("NodeGroupTemplateNodeInfo: the Node can't be decoded") from error
    offered = node.status.allocatable or node.status.capacity
    for what, entries in (("labels", node.metadata.labels), ("taints", node.spec.taints), ("resources", offered)):
        if len(entries) > limits.MAX_PROVIDER_ENTRIES:
            raise AnswerError(f"NodeGroupTemplateNodeInfo: more than {limits.MAX_PROVIDER_ENTRIES} {what}")
    return Shape(
        capacity={name: amount.string for name, amount in offered.items()},
        labels={key: value for key, value in node.metadata.labels.items() if key != _HOSTNAME},
        taints=tuple(map(_taint, node.spec.taints)),
    )


def _taint(taint: core.Taint) -> Taint:
    if not taint.key or taint.effect not in _EFFECTS:
        raise AnswerError(f"NodeGroupTemplateNodeInfo: taint {reported(taint.key)!r} has no known effect")
    return Taint(key=taint.key, value=taint.value, effect=taint.effect)


def options(found: wire.NodeGroupAutoscalingOptionsResponse) -> dict[str, str]:
    """As annotations have them. Unset: the group wants nothing of its own."""
    if not found.HasField("nodeGroupAutoscalingOptions"):
        return {}
    reported = found.nodeGroupAutoscalingOptions
    reported_: dict[str, str] = {
        "zeroormaxnodescaling": str(reported.zeroOrMaxNodeScaling).lower(),
        "ignoredaemonsetsutilization": str(reported.ignoreDaemonSetsUtilization).lower(),
    }
    for key, share in (
        ("scaledownutilizationthreshold", reported.scaleDownUtilizationThreshold),
        ("scaledowngpuutilizationthreshold", reported.scaleDownGpuUtilizationThreshold),
    ):
        if math.isfinite(share) and 0 < share <= 1:
            reported_[key] = repr(share)
    for key, name in (
        ("scaledownunneededtime", "scaleDownUnneededDuration"),
        ("maxnodeprovisiontime", "MaxNodeProvisionDuration"),
    ):
        seconds = getattr(reported, name).seconds
        if reported.HasField(name) and 0 < seconds < limits.MAX_PROVIDER_SECONDS:
            reported_[key] = f"{seconds}s"
    return reported_


def price(found: float) -> float | None:
    return found if math.isfinite(found) and found >= 0 else None


def usable_id(found: str) -> bool:
    return 0 < len(found) <= limits.MAX_PROVIDER_ID and found.isprintable()


def reported(found: str) -> str:
    """Text of the provider, safe to log."""
    kept = found[: limits.MAX_PROVIDER_TEXT]
    return "".join(letter if letter.isprintable() else " " for letter in kept)


def fake_node(instance: str, reason: str) -> wire.ExternalGrpcNode:
    """For an instance without a Node: its id is all there is."""
    annotations = {names.FAKE_NODE_REASON: reason}
    return wire.ExternalGrpcNode(providerID=instance, name=instance, annotations=annotations)
