"""PodDisruptionBudgets as one purse for a whole plan: what one Node's pods take is gone for the next Node's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api.reading import spec_of
from api.selectors import Selector, SelectorError, from_label_selector
from controllers.scheduling.marks import Index, marks_of
from controllers.scheduling.shapes import PodInfo, PodKind


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """``allowed`` disruptions now; ``why`` says more where that is 0 for another reason than use."""

    namespace: str
    name: str
    selector: Selector
    allowed: int
    why: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class OverBudget:
    pod: PodInfo
    why: str


def read_budget(budget: Mapping[str, Any]) -> Budget:
    """A core PodDisruptionBudget. One that nobody has counted yet, or that can't be read, allows nothing."""
    meta, spec, status = budget["metadata"], spec_of(budget), budget.get("status") or {}
    namespace, name = meta.get("namespace", ""), meta["name"]
    try:
        selector = from_label_selector(spec.get("selector"))
    except SelectorError as error:
        return Budget(namespace, name, Selector(), 0, f"its selector can't be read: {error}")
    allowed = status.get("disruptionsAllowed")
    if not isinstance(allowed, int):
        return Budget(namespace, name, selector, 0, "its status is not filled yet")
    return Budget(namespace, name, selector, allowed)


class PDBBudgets:
    """What is left of the budgets."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._by_namespace: dict[str, Index[Budget]] = {}
        self._left = {budget: budget.allowed for budget in budgets}
        for budget in self._left:
            self._by_namespace.setdefault(budget.namespace, Index()).add(budget, marks_of(budget.selector))
        self._covering: dict[PodKind, tuple[Budget, ...]] = {}

    def covering(self, kind: PodKind) -> tuple[Budget, ...]:
        """Budgets that hold such a pod."""
        known = self._covering.get(kind)
        if known is None:
            index = self._by_namespace.get(kind.namespace)
            found = dict.fromkeys(index.concerning(kind.labels.items())) if index is not None else ()
            known = tuple(budget for budget in found if budget.selector.matches(kind.labels))
            self._covering[kind] = known
        return known

    def lacks(self, pods: Iterable[PodInfo]) -> OverBudget | None:
        """The first pod whose eviction the budgets don't allow, if all pods before it are evicted."""
        if not self._left:
            return None
        needed: Counter[Budget] = Counter()
        for pod in pods:
            covering = self.covering(pod.kind)
            if len(covering) > 1:
                names = ", ".join(map(str, covering))
                return OverBudget(pod, f"the API evicts no pod that has several PodDisruptionBudgets ({names})")
            for budget in covering:
                needed[budget] += 1
                if needed[budget] > self._left[budget]:
                    return OverBudget(pod, self._explanation(budget))
        return None

    def take(self, pods: Iterable[PodInfo]) -> None:
        """Spend what the eviction of the pods costs."""
        for pod in pods if self._left else ():
            for budget in self.covering(pod.kind):
                self._left[budget] -= 1

    def _explanation(self, budget: Budget) -> str:
        if budget.why:
            return f"PodDisruptionBudget {budget} allows no disruption: {budget.why}"
        planned = budget.allowed - self._left[budget]
        spent = f", {planned} of them taken by Nodes that go before" if planned else ""
        return f"PodDisruptionBudget {budget} allows {budget.allowed} disruptions{spent}"
