"""Surge and unavailable: test vectors."""

from __future__ import annotations

import pytest

from controllers.kernel.budgets import BudgetError, RolloutLimits, rollout_limits

VECTORS = {
    "10 replicas, a quarter each": (10, "25%", "25%", RolloutLimits(3, 2, 13, 8)),
    "1 replica, percentages round to nothing, so one may be missing": (1, 0, "25%", RolloutLimits(0, 1, 1, 0)),
    "3 replicas, one more": (3, 1, 0, RolloutLimits(1, 0, 4, 3)),
    "3 replicas, 35 % more rounds up": (3, "35%", 0, RolloutLimits(2, 0, 5, 3)),
    "no replicas": (0, 1, 0, RolloutLimits(1, 0, 1, 0)),
    "more unavailable than replicas is capped": (4, 0, 10, RolloutLimits(0, 4, 4, 0)),
    "defaults are one more and none less": (3, None, None, RolloutLimits(1, 0, 4, 3)),
    "100 % unavailable": (3, 0, "100%", RolloutLimits(0, 3, 3, 0)),
    "surge of 150 % is allowed": (4, "150%", 0, RolloutLimits(6, 0, 10, 4)),
    "no replicas and only percentages": (0, "25%", "25%", RolloutLimits(0, 0, 0, 0)),
}


@pytest.mark.parametrize(("replicas", "surge", "unavailable", "want"), VECTORS.values(), ids=VECTORS.keys())
def test_limits(replicas: int, surge: int | str, unavailable: int | str, want: RolloutLimits) -> None:
    assert rollout_limits(replicas, surge, unavailable) == want


REFUSED = {
    "150 % unavailable": (5, 0, "150%", "maxUnavailable"),
    "both zero": (3, 0, 0, "maxUnavailable"),
    "both zero as percentages": (3, "0%", "0%", "maxUnavailable"),
    "a negative surge": (3, -1, 1, "maxSurge"),
    "a word": (3, "many", 1, "maxSurge"),
    "a truth value": (3, True, 1, "maxSurge"),
    "a fraction": (3, 1, "2.5%", "maxUnavailable"),
}


@pytest.mark.parametrize(("replicas", "surge", "unavailable", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_what_can_never_move_or_be_read_is_refused_with_the_field(
    replicas: int, surge: int | str, unavailable: int | str, field: str
) -> None:
    with pytest.raises(BudgetError) as refused:
        rollout_limits(replicas, surge, unavailable)
    assert refused.value.field == field
