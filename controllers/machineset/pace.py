"""When to write a status that only counts what moves anyway: not at every single step.

Written at once: a new generation, a terminal error, a condition that turns bad, the goal reached, a fifth of the way.
Everything else waits until nothing has moved for SETTLE seconds (times of Kubernetes have whole seconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from api.conditions import DeploymentCondition, SetCondition
from controllers.kernel.conditions import is_true
from controllers.machineset.observe import Observed
from controllers.machineset.status import count

SETTLE = 2.0
_PROGRESS = frozenset(
    ("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas", "ordinals", "conditions")
)
_GOOD = (SetCondition.READY, SetCondition.MACHINES_READY, DeploymentCondition.AVAILABLE)
_MIN_STRIDE = 10


def hold_back(observed: Observed, patch: Mapping[str, Any]) -> float:
    """Seconds for which this status patch should be held back; 0: write it now."""
    if not patch or not patch.keys() <= _PROGRESS or _turns_bad(observed, patch) or _has_arrived(observed):
        return 0.0
    if _a_stride(observed, patch) or _saw_reserved_one_go(observed):
        return 0.0
    members = observed.members
    moved = [machine.last_moved for machine in (*members.active, *members.leaving, *members.deleting)]
    if not moved:
        return 0.0
    age = observed.now - max(moved)
    return max((timedelta(seconds=SETTLE) - age).total_seconds(), 0.0)


def _turns_bad(observed: Observed, patch: Mapping[str, Any]) -> bool:
    if "conditions" not in patch:
        return False
    before = observed.status.get("conditions")
    return any(is_true(before, type_) and not is_true(patch["conditions"], type_) for type_ in _GOOD)


def _has_arrived(observed: Observed) -> bool:
    members, wanted = observed.members, observed.wish.replicas
    if members.pending or members.leaving or members.deleting or len(members.active) != wanted:
        return False
    return all(machine.ready for machine in members.active)


def _a_stride(observed: Observed, patch: Mapping[str, Any]) -> bool:
    """Big sets show progress while it goes on."""
    counts, stride = count(observed), max(observed.wish.replicas // 5, _MIN_STRIDE)
    written = observed.status
    return (
        abs(counts.ready - written.get("readyReplicas", 0)) >= stride
        or abs(counts.replicas - written.get("replicas", 0)) >= stride
    ) and bool(patch)


def _saw_reserved_one_go(observed: Observed) -> bool:
    """A number must leave the journal while its deleted Machine is still seen, or it would be given out again."""
    return bool(observed.journal.reserved) and bool(observed.members.deleting)
