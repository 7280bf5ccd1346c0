"""Workers after their control plane: one MachineDeployment at a time, in the order that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.kernel.plan import Wait
from controllers.kernel.refs import MACHINE_DEPLOYMENT
from tests.builders.objects import MachineDeploymentBuilder, machine_deployment
from tests.builders.plans import patches, status_of
from tests.controllers.controlplane.test_reconciler import ControlPlaneBuilder, members, planned, three, world

VERSION = "1.36.0"


def pool(name: str, kubelet: str, *, rolled_out: bool = True, **spec: Any) -> MachineDeploymentBuilder:
    found = machine_deployment(name).in_cluster("prod")
    found.spec.update({"replicas": 2, "template": {"spec": {"versions": {"kubelet": kubelet}}}, **spec})
    found.metadata["generation"] = 3
    updated = 2 if rolled_out else 1
    found.status.update({"observedGeneration": 3, "replicas": 2, "updatedReplicas": updated, "availableReplicas": 2})
    return found


def turn(*pools: MachineDeploymentBuilder, kubelet: str = "v1.36.0", **spec: Any) -> tuple[dict[str, Any], str]:
    """Patches of MachineDeployments by name, and what ``status.next`` says."""
    control_plane = ControlPlaneBuilder(version=VERSION, **{"upgrade": "Together", **spec})
    machines = three(control_plane)
    for each in machines:
        each.status["versions"] = {"kubelet": kubelet}
    plan = planned(world(control_plane, *machines).put(*pools), members(True, True, True))
    found = {name: action.patch for name, action in patches(plan, MACHINE_DEPLOYMENT).items()}
    assert isinstance(plan.outcome, Wait)
    return found, str(status_of(plan).get("next"))


def gets(version: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"versions": {"kubelet": version}}}}}


def test_one_gets_the_version_and_it_is_said() -> None:
    found, said = turn(pool("web", "1.35.4"), pool("db", "1.35.4"))
    assert found == {"db": gets(VERSION)}
    assert said == "MachineDeployment db gets 1.36.0, which its control plane has"


def test_the_order_is_the_users() -> None:
    pools = [pool("web", "1.35.4"), pool("db", "1.35.4"), pool("canary", "1.35.4")]
    assert turn(*pools, upgradeOrder=["web", "nobody", "canary"])[0].keys() == {"web"}


@pytest.mark.parametrize("first", [{"rolled_out": False}, {"replicas": 3}])
def test_the_next_one_waits_until_the_one_before_is_rolled_out(first: dict[str, Any]) -> None:
    found, said = turn(pool("web", "1.35.4"), pool("db", VERSION, **first))
    assert found == {}
    assert said == "MachineDeployment db rolls out 1.36.0"
    assert turn(pool("web", "1.35.4"), pool("db", VERSION))[0] == {"web": gets(VERSION)}


def test_one_that_is_paused_is_left_alone_and_named() -> None:
    annotated = pool("db", "1.35.4").annotated(names.PAUSED_ANNOTATION, "")
    for paused in (pool("db", "1.35.4", paused=True), annotated):
        found, said = turn(paused, pool("web", "1.35.4"))
        assert found == {}
        assert "MachineDeployment db does not get 1.36.0" in said


@pytest.mark.parametrize(
    ("pools", "more"),
    [
        ([pool("web", "1.35.4")], {"upgrade": "Alone"}),
        ([pool("web", "1.35.4")], {"kubelet": "v1.35.4"}),
        ([pool("web", "1.37.0")], {}),
        ([pool("web", "")], {}),
        ([pool("web", VERSION)], {}),
    ],
    ids=["not asked for", "the control plane is older", "they are newer", "no version", "they have it"],
)
def test_nothing_is_done(pools: list[MachineDeploymentBuilder], more: dict[str, Any]) -> None:
    assert turn(*pools, **more)[0] == {}
