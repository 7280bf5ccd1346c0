"""Rolling many Machines takes as few steps as the surge allows, and no step waits for a resync."""

from __future__ import annotations

from nodewright.sim.rolling import run


def test_each_wave_follows_the_last_one_at_once() -> None:
    """cluster-api#1127: ten minutes for each step. The clock is virtual: this is about waiting, not about speed."""
    rolled = run(20, 5)
    assert rolled.steps <= 1.1 * rolled.least_steps
    assert rolled.virtual_seconds <= 1.1 * rolled.least_seconds
    assert rolled.fewest_available == 20
