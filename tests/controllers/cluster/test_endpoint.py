"""A Cluster whose provider makes its endpoint: written down first, then made, told, given to hosts, removed last."""

from __future__ import annotations

from typing import Any

import pytest

from api import names
from controllers.cluster.reconciler import ClusterReconciler
from controllers.kernel.actions import Action, EnsureEndpoint, Patch, RemoveEndpoint
from controllers.kernel.endpoints import EndpointKnown, has_own_api
from controllers.kernel.plan import Plan, Wait
from controllers.kernel.refs import Key
from providers.base.endpoints import EndpointMember, EndpointRequest
from tests.builders import Builder, FakeView, cluster, machine

CONFIG: dict[str, Any] = {"apiVersion": "cloud/v1", "kind": "CloudCluster", "endpoint": {"floatingIP": {}}}
OTHER: dict[str, Any] = {**CONFIG, "endpoint": {"loadBalancer": {}}}
HOST = "203.0.113.7"


class Endpoints:
    def __init__(self, known: EndpointKnown | None = None) -> None:
        self.known = known
        self.requests: list[EndpointRequest] = []

    def look(self, request: EndpointRequest) -> EndpointKnown | None:
        self.requests.append(request)
        return self.known


def a_cluster(
    *, asks: dict[str, Any] | None = CONFIG, recorded: dict[str, Any] | None = CONFIG, host: str = "", held: bool = True
) -> Builder:
    found = cluster("c-1")
    if asks is not None:
        found.spec["providerConfig"] = {"value": asks}
    if recorded is not None:
        found.status["providerStatus"] = recorded
    if host:
        found.spec["controlPlaneEndpoint"] = {"host": host, "port": 6443}
    return found.finalized_by(names.CLUSTER_FINALIZER) if held else found


def planned(known: EndpointKnown | None, *objects: Builder) -> tuple[Plan, Endpoints]:
    endpoints = Endpoints(known)
    reconciler = ClusterReconciler(endpoints=endpoints)
    observed = reconciler.observe(Key("default", "c-1"), FakeView(*objects), None)
    assert observed is not None
    return reconciler.plan(observed), endpoints


def calls(plan: Plan) -> list[Action]:
    return [each for each in plan.actions() if isinstance(each, EnsureEndpoint | RemoveEndpoint)]


def written(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in plan.actions():
        if isinstance(each, Patch):
            found |= each.patch.get("status", each.patch)
    return found


def condition(plan: Plan) -> dict[str, Any]:
    (found,) = [each for each in written(plan)["conditions"] if each["type"] == "EndpointReady"]
    return dict(found)


def control_plane(name: str) -> Builder:
    found = machine(name).in_cluster("c-1")
    found.spec["versions"] = {"kubelet": "1.36.3", "controlPlane": "1.36.3"}
    return found


def test_the_cluster_is_held_before_anything_is_made() -> None:
    plan, _ = planned(EndpointKnown(), a_cluster(recorded=None, held=False))
    assert written(plan) == {"metadata": {"finalizers": [names.CLUSTER_FINALIZER]}}
    assert not calls(plan)


def test_what_it_is_made_with_is_written_down_before_it_is_made() -> None:
    plan, _ = planned(EndpointKnown(), a_cluster(recorded=None))
    assert written(plan)["providerStatus"] == CONFIG
    assert not calls(plan)
    plan, _ = planned(EndpointKnown(), a_cluster())
    (call,) = calls(plan)
    assert isinstance(call, EnsureEndpoint)
    assert (call.request.config, call.request.host) == (CONFIG, "")
    assert plan.outcome == Wait(2.0, "its certificates and its endpoint are looked at again")


def test_a_configuration_that_is_refused_is_not_written_down_and_the_cluster_says_why() -> None:
    known = EndpointKnown(reason="InvalidConfiguration", message="cloud: is required", due=False)
    plan, _ = planned(known, a_cluster(recorded=None))
    assert "providerStatus" not in written(plan)
    assert (condition(plan)["reason"], condition(plan)["message"]) == ("InvalidConfiguration", "cloud: is required")


def test_its_address_becomes_the_endpoint_of_the_cluster_under_the_version_that_was_read() -> None:
    plan, _ = planned(EndpointKnown(HOST, "there is no host"), a_cluster())
    (patch,) = [each for each in plan.actions() if isinstance(each, Patch) and "spec" in each.patch]
    assert patch.patch == {"spec": {"controlPlaneEndpoint": {"host": HOST, "port": 6443}}}
    assert patch.resource_version == "1"
    assert not calls(plan)


def test_hosts_of_the_control_plane_are_its_members_and_those_that_go_only_alone() -> None:
    objects = [control_plane("a"), control_plane("b").ready(), machine("worker").in_cluster("c-1").ready()]
    _, endpoints = planned(EndpointKnown(HOST), a_cluster(host=HOST), *objects)
    assert endpoints.requests[-1].members == (EndpointMember("uid-a"), EndpointMember("uid-b", ready=True))
    _, endpoints = planned(EndpointKnown(HOST), a_cluster(host=HOST), control_plane("a").deleting(), control_plane("b"))
    assert [member.machine_uid for member in endpoints.requests[-1].members] == ["uid-b"]
    _, endpoints = planned(EndpointKnown(HOST), a_cluster(host=HOST), control_plane("a").deleting())
    assert [member.machine_uid for member in endpoints.requests[-1].members] == ["uid-a"]


def test_one_that_is_as_requested_is_asked_about_now_and_then() -> None:
    plan, _ = planned(EndpointKnown(HOST, due=False), a_cluster(host=HOST))
    assert not calls(plan)
    assert condition(plan)["status"] == "True"
    assert HOST in condition(plan)["message"]
    assert plan.outcome == Wait(60.0, "its certificates and its endpoint are looked at again")


def test_an_error_of_the_cloud_is_the_condition() -> None:
    plan, _ = planned(EndpointKnown(reason="QuotaExceeded", message="no more", due=False), a_cluster())
    assert (condition(plan)["status"], condition(plan)["reason"]) == ("False", "QuotaExceeded")


def test_another_configuration_counts_once_nothing_of_the_earlier_is_left() -> None:
    plan, endpoints = planned(EndpointKnown(), a_cluster(asks=OTHER))
    (call,) = calls(plan)
    assert isinstance(call, RemoveEndpoint)
    assert endpoints.requests[-1].config == CONFIG
    assert "providerStatus" not in written(plan)
    plan, _ = planned(EndpointKnown(gone=True, due=False), a_cluster(asks=OTHER))
    assert written(plan)["providerStatus"] is None


def test_once_the_address_is_told_another_configuration_has_no_effect_and_that_is_said() -> None:
    for asks in (OTHER, None):
        plan, endpoints = planned(EndpointKnown(HOST, due=False), a_cluster(asks=asks, host=HOST))
        assert endpoints.requests[-1].config == CONFIG
        assert not calls(plan)
        assert "has no effect" in condition(plan)["message"]


def test_it_goes_after_the_last_machine_and_the_cluster_after_it() -> None:
    going = a_cluster(host=HOST).deleting()
    plan, _ = planned(EndpointKnown(HOST), going, control_plane("a").deleting())
    assert not [call for call in calls(plan) if isinstance(call, RemoveEndpoint)]
    plan, _ = planned(EndpointKnown(HOST), going)
    (call,) = calls(plan)
    assert isinstance(call, RemoveEndpoint)
    assert names.CLUSTER_FINALIZER not in str(written(plan))
    assert isinstance(plan.outcome, Wait)
    plan, _ = planned(EndpointKnown(gone=True, due=False), going)
    assert written(plan) == {"metadata": {"finalizers": None}}


def test_a_cluster_that_goes_before_anything_was_written_down_waits_for_nobody() -> None:
    plan, _ = planned(EndpointKnown(), a_cluster(recorded=None).deleting())
    assert written(plan) == {"metadata": {"finalizers": None}}


def test_nothing_is_asked_for_a_paused_cluster() -> None:
    paused = a_cluster()
    paused.spec["paused"] = True
    plan, _ = planned(EndpointKnown(), paused)
    assert not calls(plan)
    plan, _ = planned(EndpointKnown(HOST), paused.deleting())
    assert not calls(plan)
    assert "metadata" not in written(plan), "what was made still holds it"


@pytest.mark.parametrize("body", [a_cluster(recorded=None), a_cluster(asks=None), a_cluster(host=HOST, asks=None)])
def test_no_machine_of_it_joins_the_cluster_that_holds_it(body: Builder) -> None:
    """Before its endpoint is made the Cluster would look like home."""
    assert has_own_api(body.build())


def test_a_cluster_whose_provider_has_an_endpoint_of_another_kind_is_as_ever() -> None:
    assert not has_own_api(a_cluster(asks={**CONFIG, "endpoint": "https://cloud"}, recorded=None).build())
