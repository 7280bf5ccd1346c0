"""What a Cluster says of its Machines."""

from __future__ import annotations

from typing import Any

from api import names
from controllers.cluster.reconciler import RECONCILER, counts_the_same, of_member
from controllers.kernel.actions import Patch
from controllers.kernel.plan import NOTHING, Blocked, Plan, Wait
from controllers.kernel.refs import CLUSTER, Key
from tests.builders import Builder, FakeView, cluster, machine, machine_set
from tests.controllers.machine.arena import merged


def plan(*objects: Builder) -> Plan:
    observed = RECONCILER.observe(Key("default", "c-1"), FakeView(*objects), None)
    assert observed is not None
    return RECONCILER.plan(observed)


def status(*objects: Builder) -> dict[str, Any]:
    (patch,) = plan(*objects).actions()
    assert isinstance(patch, Patch)
    assert (patch.subresource, patch.resource_version) == ("status", "1")
    found: dict[str, Any] = patch.patch["status"]
    return found


def ready(found: dict[str, Any]) -> dict[str, Any]:
    (condition,) = [c for c in found["conditions"] if c["type"] == "Ready"]
    return dict(condition)


def test_a_cluster_counts_its_machines_and_those_that_are_ready() -> None:
    found = status(
        cluster("c-1"),
        machine("a").in_cluster("c-1").ready(),
        machine("b").in_cluster("c-1").ready(),
        machine("other").in_cluster("c-2").ready(),
        machine("elsewhere", "ns").in_cluster("c-1").ready(),
    )
    assert (found["machines"], found["readyMachines"], found["phase"]) == (2, 2, "Provisioned")
    assert ready(found)["status"] == "True"


def test_it_says_why_machines_are_not_ready_by_count() -> None:
    found = status(
        cluster("c-1"),
        *(machine(f"q{n}").in_cluster("c-1").pending("QuotaExceeded") for n in range(3)),
        machine("b").in_cluster("c-1").not_ready(),
    )
    assert ready(found)["message"] == "Machines that are not ready: 3× QuotaExceeded, 1× NodeNotReady"
    assert found["phase"] == "Provisioning"


def test_the_endpoint_of_a_cluster_of_machines_is_its_first_api_endpoint() -> None:
    """KEP-3: clients and autoscalers find the API in ``status.apiEndpoints``."""
    for host in ("api.example", "2001:db8::1"):
        builder = cluster("c-1")
        builder.spec["controlPlaneEndpoint"] = {"host": host, "port": 6443}
        assert status(builder)["apiEndpoints"] == [{"host": host, "port": 6443}]


def test_what_others_wrote_is_left_alone() -> None:
    builder = cluster("c-1").condition("Reachable", "True")
    builder.status["apiEndpoints"] = [{"host": "10.0.0.1", "port": 6443}]
    found = status(builder)
    assert "apiEndpoints" not in found
    assert "Reachable" in [c["type"] for c in found["conditions"]]


def test_a_cluster_whose_status_says_it_all_is_left_in_peace() -> None:
    objects = [machine("a").in_cluster("c-1").ready()]
    body = cluster("c-1").build()
    body["status"] = merged({}, status(cluster("c-1"), *objects))
    observed = RECONCILER.observe(Key("default", "c-1"), FakeView(body, *objects), None)
    assert observed is not None
    assert RECONCILER.plan(observed) == NOTHING


def test_while_machines_move_the_count_waits() -> None:
    known, waiting = cluster("c-1"), machine("a").in_cluster("c-1").pending()
    known.status.update(status(known, waiting))
    found = plan(known, waiting, machine("b").in_cluster("c-1").pending().created(0))
    assert list(found.actions()) == []
    assert isinstance(found.outcome, Wait)


def test_a_paused_cluster_says_so() -> None:
    found = status(cluster("c-1").paused())
    (condition,) = [c for c in found["conditions"] if c["type"] == "Paused"]
    assert condition["message"] == "Cluster default/c-1 has spec.paused"


def test_a_cluster_that_goes_waits_for_its_machines() -> None:
    going = cluster("c-1").deleting(5, names.CLUSTER_FINALIZER)
    found = plan(going, machine("a").in_cluster("c-1"), machine_set("s").in_cluster("c-1"))
    assert isinstance(found.outcome, Blocked)
    assert "1 Machine and 1 MachineSet" in found.outcome.why


def test_its_finalizer_goes_with_the_last_machine() -> None:
    going = cluster("c-1").deleting(5, names.CLUSTER_FINALIZER, "example.com/mine")
    (patch,) = plan(going).actions()
    assert isinstance(patch, Patch)
    assert patch.patch == {"metadata": {"finalizers": ["example.com/mine"]}}


def test_a_cluster_that_is_gone_needs_no_plan() -> None:
    assert RECONCILER.observe(Key("default", "c-1"), FakeView(), None) is None


def test_a_machine_wakes_its_cluster_only_if_a_count_may_change() -> None:
    before = machine("a").in_cluster("c-1").ready().build()
    busy = machine("a").in_cluster("c-1").ready().annotated("note").build()
    assert counts_the_same(before, busy)
    assert not counts_the_same(before, machine("a").in_cluster("c-1").not_ready().build())
    assert list(of_member(before, FakeView())) == [Key("default", "c-1")]
    assert RECONCILER.kind is CLUSTER
