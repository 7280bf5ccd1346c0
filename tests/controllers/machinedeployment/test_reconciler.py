"""What wakes a MachineDeployment."""

from __future__ import annotations

from controllers.kernel.reconciler import Reconciler, Wake
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, Kind
from controllers.machinedeployment.observe import Observed
from controllers.machinedeployment.reconciler import RECONCILER
from tests.builders import FakeView, cluster, machine, machine_deployment, machine_set
from tests.builders.objects import Builder

MD = Key("default", "md")


def wake_of(kind: Kind) -> Wake:
    return next(wake for wake in RECONCILER.wakes if wake.kind == kind)


def woken(kind: Kind, by: Builder, *others: Builder) -> list[Key]:
    return list(wake_of(kind).keys(by.build(), FakeView(*others)))


def test_it_is_a_room() -> None:
    reconciler: Reconciler[Observed] = RECONCILER
    assert (reconciler.name, reconciler.kind) == ("machinedeployment", MACHINE_DEPLOYMENT)
    assert set(reconciler.reads) >= {MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, CLUSTER}
    assert reconciler.needs(MD, FakeView()) is None
    assert reconciler.observe(MD, FakeView(), None) is None


def test_a_set_wakes_its_deployment_and_an_orphan_those_that_would_adopt_it() -> None:
    owner = machine_deployment("md")
    assert woken(MACHINE_SET, machine_set("ms").of(owner)) == [MD]
    lost = machine_set("ms").labelled(pool="md")
    assert woken(MACHINE_SET, lost, owner, machine_deployment("other")) == [MD]
    assert woken(MACHINE_SET, machine_set("ms").owned_by(cluster("c")), owner) == []


def test_a_machine_wakes_the_deployment_of_its_set() -> None:
    owner = machine_deployment("md")
    owned = machine_set("ms").of(owner)
    assert woken(MACHINE, machine("m").of(owned), owned, owner) == [MD]
    assert woken(MACHINE, machine("m").of(machine_set("alone")), machine_set("alone")) == []
    assert woken(MACHINE, machine("m")) == []


def test_a_cluster_wakes_its_deployments() -> None:
    assert woken(CLUSTER, cluster("c"), machine_deployment("md").in_cluster("c"), machine_deployment("x")) == [MD]


def test_a_machine_s_addresses_wake_nobody() -> None:
    ignores = wake_of(MACHINE).ignores
    assert ignores is not None
    before = machine("m").ready()
    after = machine("m").ready()
    after.status["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}]
    assert ignores(before.build(), after.build())
    assert not ignores(before.build(), machine("m").not_ready().build())


def test_a_refused_update_in_place_wakes_the_deployment() -> None:
    """Found end to end: UpToDate was False before, with another reason, and nobody looked."""
    member = machine("m").of(machine_set("ms")).ready()
    asked = member.condition("UpToDate", "False", "UpdatingInPlace").build()
    refused = member.condition("UpToDate", "False", "NeedsReplacement", "another host").build()
    ignores = wake_of(MACHINE).ignores
    assert ignores is not None
    assert not ignores(asked, refused)
