"""The numbers that docstrings of the arithmetic give as examples are played here, so that they stay true."""

from __future__ import annotations

import pytest

from controllers.kernel.budgets import RolloutLimits, rollout_limits
from tests.builders import World, machine_deployment
from tests.builders.loop import reconcile_once, settle
from tests.controllers.machinedeployment.stories import NEW, OLD, set_replicas, set_template, sets_of


def sizes_on_the_way(world: World) -> list[tuple[int, int]]:
    """(old, new) replicas each time they change, until nothing moves."""
    seen: list[tuple[int, int]] = []
    for _ in range(60):
        reconcile_once(world)
        now = sets_of(world)
        sizes = now.get(OLD, 0), now.get(NEW, 0)
        if not seen or sizes != seen[-1]:
            seen.append(sizes)
        world.make_ready()
        world.finish_deletions()
        world.advance(3)
    return seen


@pytest.mark.parametrize(
    ("surge", "unavailable", "want"),
    [
        (1, 0, [(3, 1), (2, 1), (2, 2), (1, 2), (1, 3), (0, 3)]),
        (0, 1, [(2, 0), (2, 1), (1, 1), (1, 2), (0, 2), (0, 3)]),
    ],
)
def test_a_rolling_update_of_three(surge: int, unavailable: int, want: list[tuple[int, int]]) -> None:
    world = World(machine_deployment("md").replicas(3).rolling(surge, unavailable).kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    assert sizes_on_the_way(world)[-len(want) :] == want


def test_ten_machines_scaled_to_twenty_in_a_rollout_keep_their_shares() -> None:
    world = World(machine_deployment("md").replicas(10).rolling("20%", "20%").kubelet(OLD))
    settle(world)
    set_template(world, NEW)
    for _ in range(8):
        reconcile_once(world)
        world.finish_deletions()
        world.advance(3)
    before = sets_of(world)
    set_replicas(world, 20)
    reconcile_once(world)
    assert (before, sets_of(world)) == ({OLD: 8, NEW: 4}, {OLD: 16, NEW: 8})


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "want"),
    [
        (3, 1, 0, RolloutLimits(1, 0, 4, 3)),
        (10, "25%", "25%", RolloutLimits(3, 2, 13, 8)),
        (1, "10%", "10%", RolloutLimits(1, 0, 2, 1)),
        (3, 0, "10%", RolloutLimits(0, 1, 3, 2)),
    ],
)
def test_limits_of_a_rollout(replicas: int, surge: int | str, unavailable: int | str, want: RolloutLimits) -> None:
    assert rollout_limits(replicas, surge, unavailable) == want
