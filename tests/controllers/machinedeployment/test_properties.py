"""What must hold for a rollout whatever happens in whatever order, with views that lag and processes that die.

Both rooms run, each in a process of its own. In these worlds Machines become ready and stay so (or never do, with a
broken template), so that whatever drops availability is our own hand.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.actions import Action, Create, Delete
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Obj
from tests.builders import World, machine_deployment
from tests.builders.loop import reconcile_once, settle
from tests.builders.schedule import Process
from tests.examples import usually

NAME = "md"
BROKEN = "0.0.0"
VERSIONS = ("1.34.0", "1.35.0", "1.36.0", BROKEN)

WEIGHTS = {
    ("deployment", "sets"): 6,
    ("seen by deployment", "seen by sets"): 6,
    ("ready", "host gone"): 3,
    ("time",): 2,
    ("template", "restart"): 1,
}
seeds = st.integers(0, 2**32)
limits = st.tuples(st.integers(1, 6), st.integers(0, 2), st.integers(0, 2)).filter(lambda t: t[1] + t[2] > 0)


def schedule_of(seed: int, length: int = 150) -> list[tuple[str, Any]]:
    """A long story from one number: lists drawn one by one are too short to get through a rollout."""
    dice = random.Random(seed)
    kinds = dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length)
    return [(dice.choice(kind), dice.choice((0, 1, 2, 3, 5, None, None, None))) for kind in kinds]


class WatchedWorld(World):
    """Checks every write against the truth at that moment."""

    def __init__(self, replicas: int, surge: int, unavailable: int) -> None:
        super().__init__(machine_deployment(NAME).replicas(replicas).rolling(surge, unavailable))
        self.most = replicas + surge
        self.least = max(replicas - unavailable, 0)

    def apply(self, action: Action) -> None:
        before = self.ready()
        super().apply(action)
        if isinstance(action, Create):
            alive = self.alive()
            assert len(alive) <= self.most, f"{len(alive)} Machines, at most {self.most}: {action.why}"
        if isinstance(action, Delete) and len(self.ready()) < len(before):
            left = len(self.ready())
            assert left >= self.least, f"{left} available Machines, at least {self.least}: {action.why}"

    def alive(self) -> list[Obj]:
        return [machine for machine in self.all(MACHINE) if not machine["metadata"].get("deletionTimestamp")]

    def ready(self) -> list[Obj]:
        return [machine for machine in self.alive() if (machine.get("status") or {}).get("nodeRef")]

    def healthy_ones(self) -> list[Obj]:
        """Machines whose template is not broken."""
        return [m for m in self.all(MACHINE) if m["spec"]["versions"]["kubelet"] != BROKEN]


def happen(world: WatchedWorld, deployment: Process, sets: Process, event: tuple[str, Any]) -> None:
    what, drawn = event
    amount = 30 if drawn is None else drawn
    match what:
        case "deployment":
            deployment.round(MACHINE_DEPLOYMENT, NAME, drawn)
        case "sets":
            for body in world.all(MACHINE_SET):
                sets.round(MACHINE_SET, body["metadata"]["name"], drawn)
        case "seen by deployment":
            for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT):
                deployment.catch_up(kind, amount)
        case "seen by sets":
            for kind in (MACHINE_SET, MACHINE):
                sets.catch_up(kind, amount)
        case "ready":
            world.make_ready(world.healthy_ones()[: amount + 1])
        case "host gone":
            world.finish_deletions()
        case "time":
            world.advance(min(amount, 5))
        case "template":
            version = VERSIONS[amount % len(VERSIONS)]
            change_template(world, version)
        case "restart":
            (deployment if amount % 2 else sets).restart()


def change_template(world: World, version: str) -> None:
    world.change(
        MACHINE_DEPLOYMENT, NAME, lambda body: body["spec"]["template"]["spec"]["versions"].update(kubelet=version)
    )


@given(limits, seeds)
@usually(12)
def test_never_above_the_surge_and_never_below_the_minimum_by_our_own_hand(
    given_limits: tuple[int, int, int], seed: int
) -> None:
    """Any prefix of a plan applied, any view that is old but monotone (CAPI#9334, #13649, MCM#802)."""
    world = WatchedWorld(*given_limits)
    settle(world)
    change_template(world, "1.35.0")
    deployment, sets = Process(world), Process(world)
    for event in schedule_of(seed):
        happen(world, deployment, sets, event)


@given(limits, seeds)
@usually(6)
def test_whatever_happened_before_a_good_template_is_rolled_out_and_then_nothing_is_written(
    given_limits: tuple[int, int, int], seed: int
) -> None:
    world = WatchedWorld(*given_limits)
    settle(world)
    change_template(world, "1.35.0")
    deployment, sets = Process(world), Process(world)
    for event in schedule_of(seed):
        happen(world, deployment, sets, event)
    change_template(world, "1.37.0")
    settle(world)
    machines = world.all(MACHINE)
    assert len(machines) == given_limits[0]
    assert {machine["spec"]["versions"]["kubelet"] for machine in machines} == {"1.37.0"}
    assert reconcile_once(world) == 0
    sizes = sorted(body["spec"]["replicas"] for body in world.all(MACHINE_SET))
    assert sizes[-1] == given_limits[0]
    assert len(sizes) <= 2, "one old MachineSet is kept, the rest is forgotten"
