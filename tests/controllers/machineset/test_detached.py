"""A Machine that a cloudpool detaches, after each prefix of the gateway's writes: no Machine is made or deleted."""

from __future__ import annotations

import pytest

from api import names
from controllers.kernel.refs import MACHINE_SET
from tests.builders import FakeView, machine, machine_deployment, machine_set
from tests.builders.loop import plan_for
from tests.builders.objects import Builder, MachineBuilder
from tests.builders.plans import creates, deletes

DEPLOYMENT = "uid-workers"


def pool(replicas: int, *, deployed: bool) -> Builder:
    found = machine_set("pool").replicas(replicas).observed()
    return found.owned_by(machine_deployment("workers")) if deployed else found


def detached_from(uid: str) -> MachineBuilder:
    return machine("a").ready().annotated(names.CLOUDPOOL_DETACHED_FROM_ANNOTATION, f"{uid}/7")


@pytest.mark.parametrize("deployed", [False, True])
@pytest.mark.parametrize("writes", ["none", "released", "released, smaller", "released, smaller, forgotten"])
def test_no_prefix_of_the_writes_makes_or_deletes_a_machine(writes: str, deployed: bool) -> None:
    owner = pool(2 if writes.endswith("smaller") or "forgotten" in writes else 3, deployed=deployed)
    uid = DEPLOYMENT if deployed else "uid-pool"
    first = machine("a").of(owner).ready() if writes == "none" else detached_from(uid)
    if "forgotten" in writes:
        first = machine("a").ready()
    others = [machine(name).of(owner).ready() for name in ("b", "c")]
    objects = [machine_deployment("workers").replicas(3)] if deployed else []
    found = plan_for(FakeView(owner, first, *others, *objects), MACHINE_SET, "pool")
    assert (creates(found), deletes(found)) == ([], [])


def test_a_larger_size_is_filled_beside_a_detached_machine() -> None:
    owner = pool(5, deployed=False)
    objects = (owner, detached_from("uid-pool"), machine("b").of(owner).ready(), machine("c").of(owner).ready())
    assert len(creates(plan_for(FakeView(*objects), MACHINE_SET, "pool"))) == 2


@pytest.mark.parametrize("value", ["uid-other/7", "uid-pool", "uid-pool/", ""])
def test_a_machine_of_another_pool_or_without_a_number_holds_nothing(value: str) -> None:
    owner = pool(1, deployed=False)
    stray = machine("a").ready().annotated(names.CLOUDPOOL_DETACHED_FROM_ANNOTATION, value)
    assert len(creates(plan_for(FakeView(owner, stray), MACHINE_SET, "pool"))) == 1
