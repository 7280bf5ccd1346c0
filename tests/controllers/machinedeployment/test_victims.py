"""Whoever a MachineDeployment believes to go first is who its MachineSet deletes: one order, asked by both."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.refs import MACHINE_SET, Key
from controllers.machinedeployment.observe import observe
from controllers.machineset.observe import observe as observe_set
from controllers.machineset.plan import plan as plan_set
from tests.builders import FakeView, machine, machine_deployment, machine_set
from tests.builders.objects import Builder, MachineSetBuilder
from tests.builders.plans import deletes
from tests.examples import usually

POLICIES = ("Random", "Newest", "Oldest")


def some_machine(of: MachineSetBuilder, index: int, dice: random.Random) -> Builder:
    found = machine(f"m-{index}").of(of).created(dice.randint(0, 10**7))
    match dice.choice(("ready", "ready", "ready", "not ready", "pending", "failed", "going")):
        case "ready":
            found.ready()
        case "not ready":
            found.not_ready()
        case "pending":
            found.pending()
        case "failed":
            found.failed()
        case _:
            found.ready().deleting()
    if dice.random() < 0.15:
        found.marked_for_deletion()
    if dice.random() < 0.3:
        found.priority(dice.randint(-3, 3))
    return found


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(0, 9), st.sampled_from(POLICIES))
@usually(40)
def test_the_deployment_foresees_whom_its_set_deletes(seed: int, count: int, fewer: int, policy: str) -> None:
    dice = random.Random(seed)
    owner = machine_deployment("md").replicas(count)
    body = machine_set("ms").of(owner).replicas(count).delete_policy(policy).observed()
    members = [some_machine(body, index, dice) for index in range(count)]
    seen = observe(Key("default", "md"), FakeView(owner, body, *members))
    assert seen is not None
    (state,) = seen.sets
    target = max(len(state.going) - fewer, 0)
    foreseen = {found.key.name for found in state.going[: len(state.going) - target] if found is not None}
    lowered = body.replicas(target).observed()
    observed = observe_set(Key("default", "ms"), FakeView(owner, lowered, *members))
    assert observed is not None
    assert set(deletes(plan_set(observed))) == foreseen, f"{MACHINE_SET}: {policy}"
