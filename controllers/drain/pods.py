"""Which pods of a Node have to go, in which order, which may stay, and what holds one back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.drain.budgets import Hold, PDBBudget
from controllers.drain.context import Behavior, DrainContext
from controllers.kernel.refs import DAEMON_SET, Obj, annotations_of, is_deleting, key_of, spec_of

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""On the API's image of a static pod: the kubelet runs it from a file, and an eviction changes nothing."""
SYSTEM_CRITICAL = 2_000_000_000
"""Priority of ``system-cluster-critical``, the lowest of those that Kubernetes keeps for itself."""

Tier = tuple[int, bool, bool, int]
"""(order of a MachineDrainRule, system-critical, left by its DaemonSet, priority): the lowest moves first, alone."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The pods of a Node, each in exactly one bucket."""

    staying: tuple[Obj, ...]
    """DaemonSet, mirror, finished and exempted pods: they don't hold up a drain."""
    terminating: tuple[Obj, ...]
    completing: tuple[Obj, ...]
    """Wanted to end by themselves. They don't keep others from moving."""
    blocked: tuple[tuple[Obj, Hold], ...]
    """Pods of the tier that moves now, each with what forbids its eviction."""
    evictable: tuple[Obj, ...]
    """Pods of the tier that moves now, lowest priority first."""
    later: tuple[Obj, ...]
    """Of higher tiers: their turn comes when the present one has gone."""

    @property
    def moving(self) -> tuple[Obj, ...]:
        """The tier that moves now, whatever a budget says."""
        return (*self.evictable, *(pod for pod, _ in self.blocked))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left that a drain waits for."""
        return not (self.terminating or self.completing or self.moving or self.later)


def sort(drain_context: DrainContext, in_tiers: bool = True) -> Sorted:
    """Put each pod into its bucket. Of pods under one budget only as many are evictable as it allows now.

    ``in_tiers`` False: all that have to go belong to one tier, for a Node where no order can be kept.
    """
    staying: list[Obj] = []
    terminating: list[Obj] = []
    completing: list[Obj] = []
    moving: list[tuple[Tier, Obj]] = []
    floor: list[Tier] = []
    for pod in sorted(drain_context.pods, key=lambda pod: str(key_of(pod))):
        treatment = drain_context.rules.treatment(pod, drain_context.namespaces.get(key_of(pod).namespace, {}))
        tier = (treatment.order, _priority(pod) >= SYSTEM_CRITICAL, _of_daemon_set(pod), _priority(pod))
        if treatment.behavior is Behavior.SKIP or _may_stay(pod, drain_context):
            staying.append(pod)
        elif is_deleting(pod):
            terminating.append(pod)
            if not is_forced(pod):
                floor.append(tier)
        elif treatment.behavior is Behavior.WAIT_COMPLETED:
            completing.append(pod)
        else:
            moving.append((tier, pod))
    moving.sort(key=lambda entry: entry[0])
    lowest = min([*floor, *(tier for tier, _ in moving)], default=None)
    now = [pod for tier, pod in moving if not in_tiers or tier == lowest]
    later = tuple(pod for tier, pod in moving if in_tiers and tier != lowest)
    blocked, evictable = _asked(now, drain_context)
    return Sorted(tuple(staying), tuple(terminating), tuple(completing), blocked, evictable, later)


def is_forced(pod: Obj) -> bool:
    """Deleted without any grace: only a finalizer keeps the object, and nothing more can be done about the pod."""
    return is_deleting(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def lost_with(pod: Obj) -> str:
    """What ends with the pod though nobody asked for that, "" if all of it comes back elsewhere."""
    if not any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences") or ()):
        return "no controller makes it again"
    volumes = spec_of(pod).get("volumes") or ()
    scratch = [str(volume.get("name")) for volume in volumes if isinstance(volume.get("emptyDir"), Mapping)]
    return f"emptyDir {', '.join(scratch[:3])}" if scratch else ""


def _asked(tier: list[Obj], drain_context: DrainContext) -> tuple[tuple[tuple[Obj, Hold], ...], tuple[Obj, ...]]:
    budget_ = PDBBudget(drain_context.budgets)
    answers = [(pod, budget_.ask(pod)) for pod in tier]
    blocked = tuple((pod, hold) for pod, hold in answers if hold is not None)
    return blocked, tuple(pod for pod, hold in answers if hold is None)


def _priority(pod: Obj) -> int:
    priority = spec_of(pod).get("priority")
    return priority if isinstance(priority, int) else 0


def _of_daemon_set(pod: Obj) -> bool:
    return any(o.get("controller") and o.get("kind") == DAEMON_SET.name for o in _owners(pod))


def _may_stay(pod: Obj, drain_context: DrainContext) -> bool:
    """Mirror and finished pods, and those of a DaemonSet that lives: it would put them back at once."""
    if MIRROR_ANNOTATION in annotations_of(pod) or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return True
    return _of_daemon_set(pod) and any(
        o.get("controller") and o.get("uid") in drain_context.daemon_sets for o in _owners(pod)
    )


def _owners(pod: Obj) -> tuple[Mapping[str, object], ...]:
    return tuple(pod["metadata"].get("ownerReferences") or ())
