"""What a Cluster says of the way to its own API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.cluster.reconciler import RECONCILER
from controllers.kernel.actions import Event, Patch
from controllers.kernel.plan import NOTHING, Plan
from controllers.kernel.refs import Key
from controllers.kernel.view import MANAGEMENT_CLUSTER, Reached, Unreachable, Workload
from tests.builders import NOW, Builder, FakeView, cluster, machine
from tests.controllers.machine.arena import merged

REACHED = Reached("prod-kubeconfig")
LOST = Unreachable("prod-kubeconfig", "Unreachable", "connect: refused", NOW - timedelta(seconds=45))
ELSEWHERE = cluster("prod").finalized_by(names.CLUSTER_FINALIZER)


def plan(workload: Workload, *objects: Builder | dict[str, Any]) -> Plan:
    observed = RECONCILER.observe(Key("default", "prod"), FakeView(*objects).living_in(workload), None)
    assert observed is not None
    return RECONCILER.plan(observed)


def written(found: Plan) -> dict[str, Any]:
    (patch,) = [action for action in found.actions() if isinstance(action, Patch)]
    status: dict[str, Any] = patch.patch["status"]
    return status


def condition(status: dict[str, Any], type_: str = "Reachable") -> tuple[str, str, str]:
    (found,) = [c for c in status["conditions"] if c["type"] == type_]
    return found["status"], found["reason"], found["message"]


def saying(workload: Workload) -> dict[str, Any]:
    """The Cluster as it is after it has said so."""
    body = ELSEWHERE.build()
    body["status"] = merged({}, written(plan(workload, ELSEWHERE)))
    return body


def test_a_cluster_without_a_secret_is_where_it_lives() -> None:
    status = written(plan(MANAGEMENT_CLUSTER, cluster("prod")))
    assert condition(status) == ("True", "Reachable", "its Nodes live in the cluster that holds it")
    assert "kubeconfigSecret" not in status


def test_a_cluster_that_is_reached_says_by_what() -> None:
    status = written(plan(REACHED, ELSEWHERE))
    assert condition(status) == ("True", "Reachable", "by Secret prod-kubeconfig")
    assert status["kubeconfigSecret"] == "prod-kubeconfig"


def test_a_cluster_whose_requests_can_not_be_read_is_reached_and_says_what_is_missing() -> None:
    lacking = Reached("prod-kubeconfig", lacking="certificatesigningrequests: 403 Forbidden")
    status, reason, message = condition(written(plan(lacking, ELSEWHERE)))
    assert (status, reason) == ("True", "Reachable")
    assert "certificates of its kubelets are not approved: certificatesigningrequests: 403 Forbidden; grant" in message
    assert plan(lacking, saying(lacking)) == NOTHING, "said once"


def test_a_cluster_that_is_lost_says_why_and_since_when_at_once() -> None:
    found = plan(LOST, saying(REACHED), machine("a").in_cluster("prod").pending().created(0))
    status = written(found)
    assert condition(status) == ("False", "Unreachable", "connect: refused; last answer at 2026-06-01T11:59:15Z")
    assert condition(status, "Ready")[:2] == ("False", "Unreachable")
    (event,) = [action for action in found.actions() if isinstance(action, Event)]
    assert (event.type, event.reason) == ("Warning", "Unreachable")


def test_a_cluster_that_was_never_heard_of_says_so() -> None:
    never = Unreachable("prod-kubeconfig", "InvalidKubeconfig", "Secret default/prod-kubeconfig, key value: not YAML")
    said = condition(written(plan(never, ELSEWHERE)))
    assert said[1:] == (
        "InvalidKubeconfig",
        "Secret default/prod-kubeconfig, key value: not YAML; no answer since the controllers started",
    )


def test_its_return_is_an_event_and_its_first_contact_is_none() -> None:
    (event,) = [action for action in plan(REACHED, saying(LOST)).actions() if isinstance(action, Event)]
    assert (event.type, event.reason) == ("Normal", "Reachable")
    assert not [action for action in plan(REACHED, ELSEWHERE).actions() if isinstance(action, Event)]


@pytest.mark.parametrize("workload", [MANAGEMENT_CLUSTER, REACHED, LOST])
def test_it_is_said_once(workload: Workload) -> None:
    assert plan(workload, saying(workload)) == NOTHING


def test_a_cluster_of_its_own_is_held_while_machines_are_left() -> None:
    """Gone, nobody would know where their Nodes live."""
    (patch,) = plan(REACHED, cluster("prod")).actions()
    assert isinstance(patch, Patch)
    assert (patch.patch, patch.resource_version) == ({"metadata": {"finalizers": [names.CLUSTER_FINALIZER]}}, "1")


@pytest.mark.parametrize(
    ("workload", "body"),
    [
        (MANAGEMENT_CLUSTER, cluster("prod")),
        (REACHED, cluster("prod").paused()),
        (REACHED, cluster("prod").deleting(5, "other")),
    ],
    ids=["home", "paused", "going"],
)
def test_others_are_not_held(workload: Workload, body: Builder) -> None:
    patches = [a for a in plan(workload, body).actions() if isinstance(a, Patch)]
    assert not any("finalizers" in patch.patch.get("metadata", {}) for patch in patches)


def test_a_cluster_that_may_have_no_secret_at_all_is_not_said_to_have_one() -> None:
    """Nobody could look: were it recorded, the Cluster could never be home again."""
    found = plan(Unreachable("", "Unreachable", "Secret default/prod-kubeconfig can't be read"), cluster("prod"))
    assert "kubeconfigSecret" not in written(found)
    assert condition(written(found))[:2] == ("False", "Unreachable")
