"""How many Machines a rollout may have above its replicas, and how many available ones it must keep."""

from __future__ import annotations

from dataclasses import dataclass

from api.intorstring import IntOrStringError, percent, resolve
from api.views import RollingUpdateView

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
