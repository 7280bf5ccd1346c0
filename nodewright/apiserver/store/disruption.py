"""How many Pods may a PodDisruptionBudget lose now? What kube-controller-manager's disruption controller computes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nodewright.apiserver.store.change_log import Change
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.releasing import Releaser
from nodewright.apiserver.store.selectors import object_selector_match
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.store.versions import as_served
from nodewright.apiserver.store.work_queue import WorkQueue
from nodewright.apiserver.values import Obj

BUDGET = "budget"
BUDGETS = "poddisruptionbudgets.policy"
_ENDED_PHASES = ("Succeeded", "Failed")


class _UncountableError(Exception):
    """The Pods' controllers don't say how many there should be."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A budget's numbers, as in its status. `problem` says why they can't be computed; then none may go."""

    current_healthy: int
    desired_healthy: int
    expected_pods: int
    disruptions_allowed: int
    problem: str = ""


class Budgets:
    """Keeps the status of PodDisruptionBudgets."""

    def __init__(self, kernel: Kernel, releaser: Releaser, queue: WorkQueue) -> None:
        self._kernel = kernel
        self._releaser = releaser
        self._queue = queue

    def note(self, collection: str, change: Change) -> None:
        """Queue the budgets whose numbers a commit may have changed."""
        if collection == BUDGETS:
            if not change.removed:
                self._queue.add(BUDGET, ObjectKey(collection, change.namespace, change.name))
            return
        budgets = self._kernel.state.collection(BUDGETS)
        if not change.namespace or not budgets.count(change.namespace):
            return
        if collection == "pods":
            self._note_pod(change)
        elif _replicas(change.obj) != _replicas(change.previous):
            for budget in budgets.scan(change.namespace):
                self._queue.add(BUDGET, _key(budget))

    def note_restored(self, key: ObjectKey) -> None:
        """Queue a budget that was read from the journal."""
        if key.collection == BUDGETS:
            self._queue.add(BUDGET, key)

    def covering(self, pod: Obj) -> list[Obj]:
        """Give the budgets that select a Pod."""
        labels = pod["metadata"].get("labels") or {}
        budgets = self._kernel.state.collection(BUDGETS).scan(pod["metadata"]["namespace"])
        return [b for b in budgets if object_selector_match(b.get("spec", {}).get("selector"))(labels)]

    def refresh(self, key: ObjectKey) -> None:
        """Compute a budget's numbers and write its status if it changed."""
        budget = self._kernel.state.find(key)
        resource = self._kernel.registry.by_kind("policy", "v1", "PodDisruptionBudget")
        if budget is None or resource is None:
            return
        self._releaser.set_status(resource, key, self._status(as_served(resource, budget)))

    def allowance(self, budget: Obj) -> Allowance:
        """Compute how many of a budget's Pods may go now."""
        match = object_selector_match(budget.get("spec", {}).get("selector"))
        namespace = budget["metadata"]["namespace"]
        pods = [
            pod
            for pod in self._kernel.state.collection("pods").scan(namespace)
            if match(pod["metadata"].get("labels") or {})
            and (pod.get("status") or {}).get("phase") not in _ENDED_PHASES
        ]
        healthy = sum(1 for pod in pods if not pod["metadata"].get("deletionTimestamp") and is_ready(pod))
        try:
            expected, desired = self._expected(budget, pods)
        except _UncountableError as error:
            return Allowance(healthy, 0, 0, 0, str(error))
        allowed = max(0, healthy - desired) if expected > 0 else 0
        return Allowance(healthy, desired, expected, allowed)

    def _expected(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """Give (expectedPods, desiredHealthy); percentages round up, as intstr does for the controller."""
        spec = budget.get("spec") or {}
        most_away, least_there = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most_away is not None:
            expected = self._wanted_replicas(pods)
            return expected, max(0, expected - _resolve(most_away, expected))
        if isinstance(least_there, int):
            return len(pods), least_there
        if least_there is None:
            return len(pods), 0
        expected = self._wanted_replicas(pods)
        return expected, _resolve(least_there, expected)

    def _wanted_replicas(self, pods: Iterable[Obj]) -> int:
        wanted: dict[str, int] = {}
        for pod in pods:
            reference = _controller(pod)
            if reference is None or reference["uid"] in wanted:
                continue
            owner = self._kernel.state.find_uid(reference["uid"])
            above = _controller(owner) if owner is not None and owner["kind"] == "ReplicaSet" else None
            top = self._kernel.state.find_uid(above["uid"]) if above is not None else None
            owner = top or owner
            replicas = _replicas(owner)
            if owner is None or replicas is None:
                raise _UncountableError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            wanted[reference["uid"]] = 0 if owner["metadata"]["uid"] in wanted else replicas
            wanted.setdefault(owner["metadata"]["uid"], 0)
        return sum(wanted.values())

    def _status(self, budget: Obj) -> Obj:
        numbers = self.allowance(budget)
        generation = budget["metadata"].get("generation", 0)
        if numbers.problem:
            value, reason, message = "False", "SyncFailed", numbers.problem
        elif numbers.disruptions_allowed > 0:
            value, reason, message = "True", "SufficientPods", ""
        else:
            value, reason, message = "False", "InsufficientPods", ""
        before = (budget.get("status") or {}).get("conditions") or ()
        old: Obj = next((c for c in before if c.get("type") == "DisruptionAllowed"), {})
        since = old.get("lastTransitionTime") if old.get("status") == value else None
        condition = {
            "type": "DisruptionAllowed",
            "status": value,
            "observedGeneration": generation,
            "lastTransitionTime": since or self._kernel.now(),
            "reason": reason,
            "message": message,
        }
        return {
            "conditions": [condition],
            "currentHealthy": numbers.current_healthy,
            "desiredHealthy": numbers.desired_healthy,
            "disruptionsAllowed": numbers.disruptions_allowed,
            "expectedPods": numbers.expected_pods,
            "observedGeneration": generation,
        }

    def _note_pod(self, change: Change) -> None:
        affected = {_key(budget): None for budget in self.covering(change.obj)}
        if change.previous is not None:
            affected |= {_key(budget): None for budget in self.covering(change.previous)}
        for key in affected:
            self._queue.add(BUDGET, key)


def is_ready(pod: Obj) -> bool:
    """Say whether a Pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _key(budget: Obj) -> ObjectKey:
    return ObjectKey(BUDGETS, budget["metadata"]["namespace"], budget["metadata"]["name"])


def _controller(obj: Obj) -> Obj | None:
    references = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def _replicas(obj: Obj | None) -> int | None:
    spec = obj.get("spec") if obj is not None else None
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    return replicas if isinstance(replicas, int) else None


def _resolve(value: int | str, total: int) -> int:
    if isinstance(value, int):
        return value
    return math.ceil(int(value.rstrip("%")) * total / 100)
