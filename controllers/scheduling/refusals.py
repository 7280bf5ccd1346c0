"""Why a pod does not fit a Node: the predicate that says no, and kube-scheduler's words for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Predicate(StrEnum):
    """Named as the plugins of kube-scheduler, in the order in which they are asked. The first no counts."""

    GATES = "SchedulingGates"
    UNSCHEDULABLE = "NodeUnschedulable"
    TAINTS = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    PORTS = "NodePorts"
    RESOURCES = "NodeResourcesFit"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    VOLUME_LIMITS = "NodeVolumeLimits"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_ZONE = "VolumeZone"
    SPREAD = "PodTopologySpread"
    POD_AFFINITY = "InterPodAffinity"


@dataclass(frozen=True, slots=True)
class Refusal:
    """``reasons`` has more than one entry only where several resources are short."""

    predicate: Predicate
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.reasons)


UNSCHEDULABLE = Refusal(Predicate.UNSCHEDULABLE, ("node(s) were unschedulable",))
UNTOLERATED = Refusal(Predicate.TAINTS, ("node(s) had untolerated taint(s)",))
NOT_SELECTED = Refusal(Predicate.NODE_AFFINITY, ("node(s) didn't match Pod's node affinity/selector",))
PORT_TAKEN = Refusal(Predicate.PORTS, ("node(s) didn't have free ports for the requested pod ports",))
VOLUME_IN_USE = Refusal(
    Predicate.VOLUME_RESTRICTIONS,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod",
    ),
)
TOO_MANY_VOLUMES = Refusal(Predicate.VOLUME_LIMITS, ("node(s) exceed max volume count",))
VOLUME_ELSEWHERE = Refusal(Predicate.VOLUME_BINDING, ("node(s) didn't match PersistentVolume's node affinity",))
NO_VOLUME_HERE = Refusal(Predicate.VOLUME_BINDING, ("node(s) didn't find available persistent volumes to bind",))
OTHER_ZONE = Refusal(Predicate.VOLUME_ZONE, ("node(s) had no available volume zone",))
SKEWED = Refusal(Predicate.SPREAD, ("node(s) didn't match pod topology spread constraints",))
NO_TOPOLOGY = Refusal(
    Predicate.SPREAD, ("node(s) didn't match pod topology spread constraints (missing required label)",)
)
NO_COMPANY = Refusal(Predicate.POD_AFFINITY, ("node(s) didn't match pod affinity rules",))
BAD_COMPANY = Refusal(Predicate.POD_AFFINITY, ("node(s) didn't match pod anti-affinity rules",))
UNWELCOME = Refusal(Predicate.POD_AFFINITY, ("node(s) didn't satisfy existing pods anti-affinity rules",))


def short_of(resources: Iterable[str]) -> Refusal:
    words = tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in resources)
    return Refusal(Predicate.RESOURCES, words)


def blocked(why: str) -> Refusal:
    """No Node whatever can take the pod."""
    return Refusal(Predicate.GATES if "gates" in why else Predicate.VOLUME_BINDING, (why,))


def summary(refusals: Iterable[Refusal]) -> str:
    """As kube-scheduler sums up: ``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.``"""
    listed = list(refusals)
    if not listed:
        return "0/0 nodes are available."
    counts = Counter(reason for refusal in listed for reason in refusal.reasons)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(listed)} nodes are available: {reasons}."
