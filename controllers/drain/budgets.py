"""Which PodDisruptionBudget holds a pod back? What the eviction API will say, foreseen from the budgets' status.

Follows what Kubernetes' eviction subresource asks: pods that are pending or ended are free, a pod under several budgets
is refused always (with a 500), an unready one may go if its budget says so or is healthy without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from api.selectors import SelectorError, from_label_selector
from controllers.kernel.conditions import find, is_true
from controllers.kernel.refs import Obj, generation_of, key_of, labels_of, spec_of

_MANY = 1 << 30
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a pod can't be evicted now. ``for_good``: time alone changes nothing, somebody has to edit a budget."""

    why: str
    for_good: bool = False


@dataclass(slots=True)
class PDBBudget:
    """Counts the evictions of one reconcile against each budget."""

    budgets: Sequence[Obj]
    spent: Counter[str] = field(default_factory=Counter)

    def ask(self, pod: Obj) -> Hold | None:
        """None if the pod may be evicted, which is then counted."""
        if (pod.get("status") or {}).get("phase") in {"Pending", "Succeeded", "Failed"}:
            return None
        holding = [budget for budget in self.budgets if _covers(budget, pod)]
        if not holding:
            return None
        if len(holding) > 1:
            titles = ", ".join(str(key_of(budget)) for budget in holding[:_MOST_NAMES])
            return Hold(f"{len(holding)} PodDisruptionBudgets select it: {titles}; Kubernetes evicts no such pod", True)
        (budget,) = holding
        title = str(key_of(budget))
        if _unready_may_go(budget, pod):
            return None
        if _allowed(budget) > self.spent[title]:
            self.spent[title] += 1
            return None
        never = _never_allows(budget)
        return Hold(f"PodDisruptionBudget {title}{f', which never allows one: {never}' if never else ''}", bool(never))


def _covers(budget: Obj, pod: Obj) -> bool:
    if key_of(budget).namespace != key_of(pod).namespace:
        return False
    selector = _spec(budget).get("selector")
    if not isinstance(selector, Mapping):
        return False
    try:
        return from_label_selector(selector).matches(labels_of(pod))
    except SelectorError:
        return False


def _allowed(budget: Obj) -> int:
    """Disruptions allowed now. A budget whose controller has not counted yet is left for the API to judge."""
    status = _status(budget)
    allowed, seen = status.get("disruptionsAllowed"), status.get("observedGeneration")
    if not isinstance(allowed, int) or (isinstance(seen, int) and seen < generation_of(budget)):
        return _MANY
    return allowed


def _unready_may_go(budget: Obj, pod: Obj) -> bool:
    if is_true((pod.get("status") or {}).get("conditions"), "Ready"):
        return False
    if _spec(budget).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, wanted = _status(budget).get("currentHealthy"), _status(budget).get("desiredHealthy")
    return isinstance(healthy, int) and isinstance(wanted, int) and healthy >= wanted > 0


def _never_allows(budget: Obj) -> str:
    """Why no eviction will ever be allowed while the budget and its pods stay as they are; "" if one may be."""
    spec, status = _spec(budget), _status(budget)
    condition = find(status.get("conditions"), "DisruptionAllowed")
    if condition is not None and condition.get("reason") == "SyncFailed":
        return f"its pods can't be counted ({condition.get('message') or 'no reason given'})"
    most = spec.get("maxUnavailable")
    if most is not None and str(most) in {"0", "0%"}:
        return f"maxUnavailable is {most}"
    wanted, expected = status.get("desiredHealthy"), status.get("expectedPods")
    if isinstance(wanted, int) and isinstance(expected, int) and 0 < expected <= wanted:
        return f"it asks for {wanted} healthy pods and there are to be {expected}"
    return ""


def _spec(budget: Obj) -> Mapping[str, Any]:
    return spec_of(budget)


def _status(budget: Obj) -> Mapping[str, Any]:
    return budget.get("status") or {}
