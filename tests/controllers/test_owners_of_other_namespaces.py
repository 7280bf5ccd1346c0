"""Who knows the UID of another namespace's set makes nothing its own by that: owner references stay in a namespace.

Kubernetes' garbage collector takes such an object away, but not at once, and a finalizer keeps it.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controllers.cloudpool import pool
from controllers.kernel.ownership import controlled, find_controller
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, key_of
from nodewright.reports import rollouts
from tests.builders import Builder, FakeView, machine, machine_deployment, machine_set
from tests.controllers.autoscaler.fleet import Fleet
from tests.runtime.test_any_json import reconcilers


def busy() -> list[Builder]:
    deployment = machine_deployment("md").replicas(2)
    sets = machine_set("ms").of(deployment).replicas(2)
    return [deployment, sets, *(machine(name).of(sets).ready() for name in ("m-1", "m-2"))]


def hostile() -> list[dict[str, Any]]:
    """A copy of each object that has an owner, in another namespace, with the same ownerReference."""
    found = []
    for body in busy():
        copied = copy.deepcopy(body.build())
        copied["metadata"].update(namespace="hostile", uid=f"{copied['metadata']['uid']}-hostile")
        if copied["metadata"].get("ownerReferences"):
            found.append(copied)
    return found


@pytest.mark.parametrize("reconciler", reconcilers(), ids=lambda each: each.name)
def test_they_change_no_plan(reconciler: Reconciler[Any]) -> None:
    plain, with_hostile = FakeView(*busy()), FakeView(*busy(), *hostile())
    for body in plain.all(reconciler.kind):
        plans = []
        for view in (plain, with_hostile):
            observed = reconciler.observe(key_of(body), view, None)
            assert observed is not None
            plans.append(reconciler.plan(observed))
        assert plans[0] == plans[1]


def test_they_own_nothing_and_are_nobodys() -> None:
    view = FakeView(*busy(), *hostile())
    owner = view.get(MACHINE_SET, Key("default", "ms"))
    assert owner is not None
    assert {str(key_of(one)) for one in controlled(owner, MACHINE, view)} == {"default/m-1", "default/m-2"}
    for kind, name in ((MACHINE, "m-1"), (MACHINE_SET, "ms")):
        parent = MACHINE_SET if kind == MACHINE else MACHINE_DEPLOYMENT
        for namespace, there in (("default", True), ("hostile", False)):
            body = view.get(kind, Key(namespace, name))
            assert body is not None
            assert (find_controller(body, parent, view) is not None) is there


@pytest.mark.parametrize(("kind", "name"), [(MACHINE_DEPLOYMENT, "md"), (MACHINE_SET, "ms")])
def test_a_cloudpool_does_not_count_them(kind: Any, name: str) -> None:
    found = pool.observe(kind, Key("default", name), FakeView(*busy(), *hostile()))
    assert found is not None
    assert [str(member.facts.key) for member in found.members] == ["default/m-1", "default/m-2"]


def test_no_rollout_shows_them() -> None:
    shown = []
    for view in (FakeView(*busy()), FakeView(*busy(), *hostile())):
        shown.append(rollouts.rollouts([busy()[0].build()], view))
    assert shown[0] == shown[1]


def test_the_autoscaler_counts_none_of_them() -> None:
    fleet = Fleet()
    fleet.group("busy")
    fleet.deployments["busy"]["spec"]["replicas"] = 2
    fleet.settle()
    own = fleet.observed().groups
    for objects in (fleet.sets, fleet.machines):
        for name, body in list(objects.items()):
            meta = {**body["metadata"], "namespace": "hostile", "uid": f"{name}-hostile"}
            objects[f"{name}-hostile"] = {**body, "metadata": meta}
    assert fleet.observed().groups == own
