"""A version that does not work: the host went back, the rollout stops and says why, and there is a way on."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from api.conditions import ControlPlaneCondition, MachineCondition, Reason
from controllers.controlplane.planner import decide
from controllers.controlplane.state import InPlace, Policy, UpgradeInPlace
from controllers.kernel.actions import Event
from controllers.kernel.in_place import Revision
from controllers.kernel.plan import Blocked, Plan
from controllers.kernel.refs import MACHINE
from tests.builders.machines import MachineBuilder
from tests.builders.plans import condition_of, creates, patches
from tests.controllers.controlplane.test_placement import state
from tests.controllers.controlplane.test_reconciler import ControlPlaneBuilder, members, planned, three, world

WHY = "step 6/10 upgrade the control plane to v1.37.0 failed with 1, and the host went back: | Errors faced: timed out"


def broken(control_plane: ControlPlaneBuilder, asked: str = "1.37.0", *, runs: str = "1.36.0") -> Any:
    """cp-1 was handed ``asked``, and its host went back to ``runs``."""
    machines = three(control_plane)
    first = machines[0]
    first.spec["versions"] = {"kubelet": asked, "controlPlane": asked}
    first.annotated(names.TEMPLATE_ANNOTATION, Revision({"spec": first.body["spec"]}).digest)
    first.condition(MachineCondition.UP_TO_DATE, "False", Reason.UPDATE_FAILED, WHY)
    first.status["versions"] = {"kubelet": f"v{runs}"}
    return machines, runs


def scene(control_plane: ControlPlaneBuilder, machines: list[MachineBuilder], runs: str) -> Plan:
    view = world(control_plane, *machines)
    for pod in (each for each in _pods(view) if each["metadata"]["name"] == "kube-apiserver-node-cp-1"):
        pod["spec"] = {"containers": [{"name": "kube-apiserver", "image": f"registry:5000/kube-apiserver:v{runs}"}]}
        view.put(pod)
    return planned(view, members(True, True, True))


def _pods(view: Any) -> list[dict[str, Any]]:
    from tests.controllers.controlplane.test_reconciler import pods  # noqa: PLC0415

    return pods(1)


def test_the_rollout_stops_and_says_why() -> None:
    control_plane = ControlPlaneBuilder(version="1.37.0", rollout={"inPlace": "Prefer"})
    plan = scene(control_plane, *broken(control_plane))
    assert not patches(plan, MACHINE)
    assert not creates(plan)
    message = condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["message"]
    assert "Machine cp-1 could not be updated: step 6/10" in message
    assert "Errors faced: timed out" in message
    assert isinstance(plan.outcome, Blocked)
    [event] = [each for each in plan.actions() if isinstance(each, Event)]
    assert (event.type, event.reason) == ("Warning", Reason.CONTROL_PLANE_STUCK)
    assert condition_of(plan, ControlPlaneCondition.READY)["status"] == "True", "all three still serve"


@pytest.mark.parametrize("version", ["1.36.0", "1.36.5", "1.37.1"])
def test_another_version_that_can_be_reached_goes_on_with_the_host_that_went_back(version: str) -> None:
    """Back to the one before, though its Machine was on its way to 1.37: its API server never was."""
    control_plane = ControlPlaneBuilder(version=version, rollout={"inPlace": "Prefer"})
    plan = scene(control_plane, *broken(control_plane))
    touched = patches(plan, MACHINE)
    assert list(touched) == ["cp-1"]
    assert touched["cp-1"].patch["spec"]["versions"]["controlPlane"] == version


def test_a_host_whose_api_server_is_of_the_new_version_does_not_go_back_a_minor() -> None:
    """Its kubelet alone went back: etcd may hold objects of the new version."""
    control_plane = ControlPlaneBuilder(version="1.36.0", rollout={"inPlace": "Prefer"})
    machines, _ = broken(control_plane)
    plan = scene(control_plane, machines, "1.37.0")
    assert not patches(plan, MACHINE)
    assert "can't go back" in condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["message"]


def test_an_older_news_of_a_failure_is_none() -> None:
    """The Machine has another spec since, and its controller has not looked yet."""
    control_plane = ControlPlaneBuilder(version="1.37.0", rollout={"inPlace": "Prefer"})
    machines, runs = broken(control_plane)
    machines[0].metadata["generation"] = 9
    plan = scene(control_plane, machines, runs)
    assert "is being updated in place" in condition_of(plan, ControlPlaneCondition.MACHINES_UP_TO_DATE)["message"]


def test_the_one_that_went_back_comes_first_when_there_is_a_choice() -> None:
    from dataclasses import replace  # noqa: PLC0415

    found = state("abc", 3, old="012", policy=Policy(in_place=InPlace.REQUIRE))
    last = replace(found.machines[2], went_back=WHY)
    step = decide(replace(found, machines=(*found.machines[:2], last))).step
    assert isinstance(step, UpgradeInPlace)
    assert step.machine == "cp-2"
