"""What a Machine costs the API server, counted by the server: ADR 0005."""

from __future__ import annotations

import asyncio

import pytest

from controllers.kernel.refs import MACHINE_SET
from nodewright.apiserver.app.stats import WRITES
from tests.runtime.town import Town

MACHINES = 30
QUIET_SECONDS = 60.0
ALLOWED_FOR_SETS = 10
"""Status writes and the one event of the MachineSet; they don't grow with the Machines."""


def _writes(town: Town, *resources: str) -> int:
    """Writes of the controllers; the simulated kubelets and the test itself are other clients."""
    return sum(
        count
        for key, count in town.plane.stats.snapshot().items()
        if key.user_agent == "nodewright" and key.verb in WRITES and (not resources or key.resource in resources)
    )


async def _grown(town: Town, **config: float) -> None:
    await town.machine_set("ms", MACHINES, **config)
    await town.until(lambda: town.ready() == MACHINES)
    await town.until(lambda: town.objects(MACHINE_SET)[0]["status"].get("readyReplicas") == MACHINES)


async def test_a_machine_costs_at_most_four_writes_until_it_is_ready(town: Town) -> None:
    async with town.controllers():
        town.plane.stats.reset()
        await _grown(town)
    own = _writes(town, "machines.cluster.k8s.io", "nodes")
    assert own <= 4 * MACHINES
    assert _writes(town) - own <= ALLOWED_FOR_SETS


async def test_a_slow_machine_costs_no_more_though_it_tells_where_it_stands(town: Town) -> None:
    async with town.controllers():
        town.plane.stats.reset()
        await _grown(town, bootSeconds=3.0)
    assert _writes(town, "machines.cluster.k8s.io", "nodes") <= 4 * MACHINES


@pytest.mark.slow
async def test_a_minute_of_steady_state_costs_no_write(town: Town) -> None:
    async with town.controllers() as manager:
        await _grown(town)
        await town.until(lambda: all(c.queue.idle and c.queue.next_due is None for c in manager.controllers))
        town.plane.stats.reset()
        await asyncio.sleep(QUIET_SECONDS)  # what is measured is that nothing happens in it
        assert _writes(town) == 0
