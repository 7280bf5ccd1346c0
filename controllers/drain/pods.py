"""Which pods of a Node have to go, which may stay, and which budget holds one back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from api.selectors import SelectorError, from_label_selector
from controllers.kernel.refs import Obj, annotations_of, is_deleting, key_of, labels_of

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""On the API's image of a static pod: the kubelet runs it from a file, and an eviction changes nothing."""
DRAIN_LABEL = "cluster.x-k8s.io/drain"
"""CAPI, on a pod: ``skip`` leaves it alone, ``wait-completed`` waits until it ends by itself."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The pods of a Node, each in exactly one bucket."""

    staying: tuple[Obj, ...]
    """DaemonSet, mirror, finished and exempted pods: they don't hold up a drain."""
    terminating: tuple[Obj, ...]
    completing: tuple[Obj, ...]
    """Wanted to end by themselves."""
    blocked: tuple[tuple[Obj, str], ...]
    """With the PodDisruptionBudget that allows no disruption now."""
    evictable: tuple[Obj, ...]
    """Lowest priority first, so that what matters most moves last."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left that a drain waits for."""
        return not (self.terminating or self.completing or self.blocked or self.evictable)


def sort(pods: Iterable[Obj], budgets: Sequence[Obj]) -> Sorted:
    """Put each pod into its bucket. Of pods under one budget only as many are evictable as it allows now."""
    buckets: dict[str, list[Obj]] = {"staying": [], "terminating": [], "completing": []}
    evictable: list[Obj] = []
    blocked: list[tuple[Obj, str]] = []
    spent: Counter[str] = Counter()
    for pod in sorted(pods, key=_order):
        bucket = _bucket(pod)
        if bucket:
            buckets[bucket].append(pod)
            continue
        holding = [budget for budget in budgets if _covers(budget, pod)]
        full = next((budget for budget in holding if _allows(budget) <= spent[str(key_of(budget))]), None)
        if full is not None:
            blocked.append((pod, str(key_of(full))))
            continue
        spent.update(str(key_of(budget)) for budget in holding)
        evictable.append(pod)
    return Sorted(
        tuple(buckets["staying"]),
        tuple(buckets["terminating"]),
        tuple(buckets["completing"]),
        tuple(blocked),
        tuple(evictable),
    )


def _order(pod: Obj) -> tuple[int, str]:
    priority = (pod.get("spec") or {}).get("priority")
    return (priority if isinstance(priority, int) else 0, str(key_of(pod)))


def _bucket(pod: Obj) -> str:
    """ "" for a pod that has to be evicted."""
    wish = labels_of(pod).get(DRAIN_LABEL)
    owners = pod["metadata"].get("ownerReferences") or ()
    if (
        wish == "skip"
        or MIRROR_ANNOTATION in annotations_of(pod)
        or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        or any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)
    ):
        return "staying"
    if is_deleting(pod):
        return "terminating"
    return "completing" if wish == "wait-completed" else ""


def _covers(budget: Obj, pod: Obj) -> bool:
    if key_of(budget).namespace != key_of(pod).namespace:
        return False
    selector = (budget.get("spec") or {}).get("selector")
    if not isinstance(selector, Mapping):
        return False
    try:
        return from_label_selector(selector).matches(labels_of(pod))
    except SelectorError:
        return False


def _allows(budget: Obj) -> int:
    """Disruptions allowed now. A budget whose controller has not counted yet is left for the API to judge."""
    allowed = (budget.get("status") or {}).get("disruptionsAllowed")
    return allowed if isinstance(allowed, int) else 1 << 30
