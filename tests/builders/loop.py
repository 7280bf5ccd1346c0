"""Run both set rooms against a World until nothing happens any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Key, Kind, key_of
from controllers.kernel.view import View
from controllers.machinedeployment.reconciler import RECONCILER as DEPLOYMENTS
from controllers.machineset.reconciler import RECONCILER as SETS
from tests.builders.world import World

RECONCILERS: dict[Kind, Any] = {MACHINE_DEPLOYMENT: DEPLOYMENTS, MACHINE_SET: SETS}


def plan_for(view: View, kind: Kind, name: str, namespace: str = "default") -> Plan:
    """What the room of ``kind`` would do now; an empty plan if the object is gone."""
    reconciler = RECONCILERS[kind]
    observed = reconciler.observe(Key(namespace, name), view, None)
    plan: Plan = Plan() if observed is None else reconciler.plan(observed)
    return plan


def keys(world: World) -> Iterator[tuple[Kind, Key]]:
    for kind in RECONCILERS:
        for obj in world.all(kind):
            yield kind, key_of(obj)


def reconcile_once(world: World) -> int:
    """Every room once for every object, each on the present; returns the number of writes."""
    before = len(world.writes)
    for kind, key in list(keys(world)):
        world.run(plan_for(world.view(), kind, key.name, key.namespace))
    return len(world.writes) - before


def settle(world: World, *, machines_work: bool = True, reconciles: int = 200) -> int:
    """Rounds and time until nobody writes and no Machine moves; returns the writes. Fails if it never settles."""
    writes, still = 0, 0
    for _ in range(reconciles):
        wrote = reconcile_once(world)
        moved = world.make_ready() + world.finish_deletions() + world.change_hosts() if machines_work else 0
        writes += wrote
        still = 0 if wrote or moved else still + 1
        if still == 3:
            return writes
        world.advance(3)
    raise AssertionError(f"did not settle in {reconciles} rounds: {world.writes[-5:]}")
