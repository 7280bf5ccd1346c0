"""Tokens and bootstrap Secrets under bad luck: none outlives its Machine, no two hosts share one, none is left over."""

from __future__ import annotations

import pytest

from nodewright.sim import faults
from nodewright.sim.engine import Scenario
from nodewright.sim.faults import Faults
from nodewright.sim.report import run_seed

SLOW = {"bootSeconds": 20.0, "joinSeconds": 600.0}
"""Many Machines go before they have joined, and tokens have to be renewed."""
LUCK = {
    "none": faults.NONE,
    "crashes between any two calls": Faults(crash=0.05),
    "lost answers of the API": Faults(lost_answer=0.08),
    "writes that the API refuses": Faults(refused_write=0.08),
    "all at once": faults.ROUGH,
}


@pytest.mark.parametrize("luck", LUCK)
def test_no_token_outlives_its_machine_and_none_is_shared(luck: str) -> None:
    for seed in range(2):
        result = run_seed(seed, Scenario(edits=8, faults=LUCK[luck], bootstrap=True, config=SLOW))
        assert not result.breach, result.summary()
        assert result.writes["create Secret"] >= 2, "no bootstrap data was made"
