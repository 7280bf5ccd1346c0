"""How hard a drain pushes: evict; then delete and force, each from a moment that somebody chose, by default never.

| stage | begins | what it does to a pod that has to go |
|---|---|---|
| evict | at once | asks for an eviction: PodDisruptionBudgets are kept |
| delete | ``nodeDrainDeleteAfter`` | deletes it with its own grace period: budgets no longer hold it |
| force | ``nodeDrainForceAfter`` | deletes it without grace, also one that is terminating |
| give up | ``nodeDrainTimeout`` | leaves what is left: the host goes with it |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from controllers.drain.pods import Sorted, is_forced
from controllers.kernel.actions import Action, Delete, Evict
from controllers.kernel.refs import POD, Obj, key_of, ref_of

MOST_EVICTIONS = 50
"""Pods that one reconcile asks to go."""
UNREACHABLE_GRACE_SECONDS = 1
"""For pods that nobody can stop: the kubelet is silent, so that a longer grace would only delay their replacement."""


class Stage(StrEnum):
    """In the words of the condition."""

    EVICT = "draining"
    DELETE = "deleting the pods of"
    FORCE = "deleting by force the pods of"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Times from the beginning of the drain; None: never."""

    delete: timedelta | None = None
    force: timedelta | None = None
    give_up: timedelta | None = None

    def stage(self, passed: timedelta) -> Stage:
        if self.force is not None and passed >= self.force:
            return Stage.FORCE
        if self.delete is not None and passed >= self.delete:
            return Stage.DELETE
        return Stage.EVICT

    def is_over(self, passed: timedelta) -> bool:
        return self.give_up is not None and passed >= self.give_up


NO_DEADLINES = Deadlines()


def actions(stage: Stage, pods: Sorted, why: str, reachable: bool = True) -> tuple[Action, ...]:
    """What to ask for now."""
    grace = None if reachable else UNREACHABLE_GRACE_SECONDS
    found: list[Action] = []
    match stage:
        case Stage.EVICT:
            found += (Evict(ref_of(POD, p), f"evict pod {key_of(p)}: {why}", grace) for p in pods.evictable)
        case Stage.DELETE:
            found += (_delete(pod, f"delete pod {key_of(pod)}, nodeDrainDeleteAfter has passed: {why}", grace)
                      for pod in pods.moving)  # fmt: skip
        case Stage.FORCE:
            left = (*pods.moving, *(pod for pod in pods.terminating if not is_forced(pod)))
            found += (_delete(pod, f"delete pod {key_of(pod)} by force, nodeDrainForceAfter has passed: {why}", 0)
                      for pod in left)  # fmt: skip
    return tuple(found[:MOST_EVICTIONS])


def _delete(pod: Obj, why: str, grace: int | None) -> Delete:
    return Delete(ref_of(POD, pod), why, grace_seconds=grace)
