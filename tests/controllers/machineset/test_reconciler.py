"""What wakes a MachineSet, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controllers.kernel.reconciler import Reconciler, Wake
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, Kind
from controllers.machineset.observe import Observed
from controllers.machineset.reconciler import RECONCILER
from tests.builders import FakeView, cluster, machine, machine_deployment, machine_set
from tests.builders.objects import Builder

POOL = Key("default", "pool")


def wake_of(kind: Kind) -> Wake:
    return next(wake for wake in RECONCILER.wakes if wake.kind == kind)


def woken(kind: Kind, by: Builder, *others: Builder) -> list[Key]:
    return list(wake_of(kind).keys(by.build(), FakeView(*others)))


def test_it_is_a_room() -> None:
    reconciler: Reconciler[Observed] = RECONCILER
    assert (reconciler.name, reconciler.kind) == ("machineset", MACHINE_SET)
    assert set(reconciler.reads) >= {MACHINE_SET, MACHINE, CLUSTER}
    assert reconciler.needs(POOL, FakeView()) is None
    assert reconciler.observe(POOL, FakeView(), None) is None


def test_a_machine_wakes_its_set() -> None:
    assert woken(MACHINE, machine("m").of(machine_set("pool"))) == [POOL]


def test_a_machine_of_another_kind_of_owner_wakes_nobody() -> None:
    assert woken(MACHINE, machine("m").owned_by(cluster("c")), machine_set("pool")) == []


def test_an_orphan_wakes_the_sets_that_would_adopt_it() -> None:
    sets = (
        machine_set("pool"),
        machine_set("other"),
        machine_set("pool", "elsewhere"),
        machine_set("odd").selecting({}),
    )
    assert woken(MACHINE, machine("m").labelled(pool="pool"), *sets) == [POOL]


def test_a_cluster_and_a_deployment_wake_their_sets() -> None:
    deployment = machine_deployment("md")
    owned = machine_set("pool").owned_by(deployment).in_cluster("c")
    assert woken(CLUSTER, cluster("c"), owned, machine_set("other")) == [POOL]
    assert woken(MACHINE_DEPLOYMENT, deployment, owned, machine_set("other")) == [POOL]


Change = Callable[[dict[str, Any]], object]
MATTERS: dict[str, tuple[bool, Change]] = {
    "readiness": (True, lambda m: m["status"]["conditions"][0].update(status="False")),
    "the reason it is not ready": (True, lambda m: m["status"].update(failureMessage="x", failureReason="y")),
    "a node": (True, lambda m: m["status"]["nodeRef"].update(name="other")),
    "deletion": (True, lambda m: m["metadata"].update(deletionTimestamp="2026-06-01T12:00:00Z")),
    "labels": (True, lambda m: m["metadata"]["labels"].update(a="b")),
    "the autoscaler's mark": (True, lambda m: m["metadata"].update(annotations={"cluster.k8s.io/delete-machine": "x"})),
    "its owner": (True, lambda m: m["metadata"].pop("ownerReferences")),
    "its taints": (True, lambda m: m["spec"].update(taints=[])),
    "addresses": (False, lambda m: m["status"].update(addresses=[{"type": "InternalIP", "address": "10.0.0.1"}])),
    "another condition": (False, lambda m: m["status"]["conditions"].append({"type": "Drained", "status": "True"})),
    "its version only": (False, lambda m: m["metadata"].update(resourceVersion="99")),
    "a finalizer": (False, lambda m: m["metadata"].update(finalizers=[])),
}


@pytest.mark.parametrize(("matters", "change"), MATTERS.values(), ids=MATTERS.keys())
def test_changes_of_a_machine(matters: bool, change: Change) -> None:
    builder = machine("m").of(machine_set("pool")).ready()
    before, after = builder.build(), builder.build()
    change(after)
    ignores = wake_of(MACHINE).ignores
    assert ignores is not None
    assert ignores(before, after) is not matters


def test_a_cluster_matters_only_by_its_pause_and_its_deletion() -> None:
    ignores = wake_of(CLUSTER).ignores
    assert ignores is not None
    plain = cluster("c").build()
    assert ignores(plain, cluster("c").condition("Ready", "True").build())
    assert not ignores(plain, cluster("c").paused().build())
    assert not ignores(plain, cluster("c").deleting().build())
