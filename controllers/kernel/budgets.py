"""Bounds of a rollout, and the pace at which its status is written.

How many Machines a rollout may have above its replicas, and how many available ones it must keep.

When to write a status that only counts what moves anyway: not at every single step.

Written at once: a new generation, a terminal error, a condition that turns bad, the goal reached, a fifth of the way.
Everything else waits until nothing has moved for SETTLE seconds (times of Kubernetes have whole seconds).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from api.intorstring import IntOrStringError, percent, resolve
from api.views import RollingUpdateView
from controllers.kernel.conditions import is_true
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.refs import Obj, spec_of, status_of

DEFAULT_MAX_SURGE: int | str = RollingUpdateView().max_surge
DEFAULT_MAX_UNAVAILABLE: int | str = RollingUpdateView().max_unavailable
"""Defaults of the lineage: one more, none less."""


class BudgetError(ValueError):
    """``field`` is the path below ``spec.strategy.rollingUpdate``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """Counts of Machines. ``max_total`` = replicas + surge; ``min_available`` = replicas − unavailable."""

    surge: int
    unavailable: int
    max_total: int
    min_available: int


def rollout_limits(
    replicas: int,
    max_surge: int | str | None = DEFAULT_MAX_SURGE,
    max_unavailable: int | str | None = DEFAULT_MAX_UNAVAILABLE,
) -> RolloutLimits:
    """Surge rounds up, unavailable down; when percentages make both 0, one may be unavailable, else nothing could move.

    As kube's Deployment and the machine controllers that descend from it. Raises BudgetError.

    - 3 replicas, maxSurge 1, maxUnavailable 0: at most 4 Machines, at least 3 available.
    - 10 replicas, 25 % and 25 %: surge 2.5 → 3, unavailable 2.5 → 2: at most 13, at least 8.
    - 3 replicas, maxSurge 0, maxUnavailable 10 %: 0.3 → 0, so one may be unavailable: at most 3, at least 2.
    """
    wanted_surge = DEFAULT_MAX_SURGE if max_surge is None else max_surge
    wanted_unavailable = DEFAULT_MAX_UNAVAILABLE if max_unavailable is None else max_unavailable
    surge = _resolve("maxSurge", wanted_surge, replicas, up=True)
    unavailable = _resolve("maxUnavailable", wanted_unavailable, replicas, up=False)
    if (percent(wanted_unavailable) or 0) > 100:
        raise BudgetError("maxUnavailable", f"{wanted_unavailable} is over 100%")
    if surge == 0 and unavailable == 0:
        if _is_zero(wanted_surge) and _is_zero(wanted_unavailable):
            raise BudgetError("maxUnavailable", "must not be 0 when maxSurge is 0")
        unavailable = 1
    unavailable = min(unavailable, replicas)
    return RolloutLimits(surge, unavailable, replicas + surge, replicas - unavailable)


def _resolve(field: str, value: int | str, replicas: int, *, up: bool) -> int:
    try:
        return resolve(value, replicas, "up" if up else "down")
    except IntOrStringError as error:
        raise BudgetError(field, str(error)) from None


def _is_zero(value: int | str) -> bool:
    return value == 0 or percent(value) == 0


SETTLE = 2.0
_PROGRESS = frozenset(
    (
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "updatedReplicas",
        "deletingReplicas",
        "fullyLabeledReplicas",
        "ordinals",
        "conditions",
    )
)
_GOOD = ("Ready", "Available", "MachinesReady")
_MIN_STRIDE = 10
SMALL = 100
"""Machines that are looked at again for each change of one."""
_GATHER_EACH = 0.0005
_LONGEST_GATHERING = 2.0


@dataclass(frozen=True, slots=True)
class StatusChange:
    """``before``: the observed status; ``patch``: what would be written; ``arrived``: as many and as ready as asked."""

    before: Mapping[str, Any]
    patch: Mapping[str, Any]
    wanted: int
    arrived: bool


def hold_back(change: StatusChange, machines: Iterable[MachineFacts], now: datetime) -> float:
    """Seconds for which the patch should be held back; 0: write it now."""
    patch = change.patch
    if not patch or change.arrived or not patch.keys() <= _PROGRESS or _turns_bad(change) or _is_a_stride(change):
        return 0.0
    moved = max((machine.last_moved for machine in machines), default=None)
    return max((timedelta(seconds=SETTLE) - (now - moved)).total_seconds(), 0.0) if moved else 0.0


def gathering(body: Obj | None, *counts: str) -> float:
    """Seconds for which changes of its Machines may be gathered before an object is looked at.

    A look costs as much as it has Machines, and each of them changes several times on its way: looked at each time, N
    Machines would cost N² in all. ``counts`` names the numbers of Machines in its status; ``spec.replicas`` counts too.
    """
    if body is None:
        return 0.0
    spec, status = spec_of(body), status_of(body)
    found = [spec.get("replicas"), *(status.get(name) for name in counts)]
    most = max((number for number in found if isinstance(number, int)), default=0)
    return min(most * _GATHER_EACH, _LONGEST_GATHERING) if most >= SMALL else 0.0


def _turns_bad(change: StatusChange) -> bool:
    if "conditions" not in change.patch:
        return False
    before, after = change.before.get("conditions"), change.patch["conditions"]
    return any(is_true(before, type_) and not is_true(after, type_) for type_ in _GOOD)


def _is_a_stride(change: StatusChange) -> bool:
    """Big sets show progress while it goes on."""
    stride = max(change.wanted // 5, _MIN_STRIDE)
    return any(
        abs(change.patch[name] - (change.before.get(name) or 0)) >= stride
        for name in ("replicas", "readyReplicas")
        if name in change.patch
    )
