"""An autoscaler for one Cluster: which groups are its own, where it keeps what it knows, what it does in the dark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.autoscaler.explaining import explain_group
from controllers.autoscaler.memory import Memory, read, write
from controllers.autoscaler.observe import Observed, observe
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Action, Create, Event, Patch, Scale
from controllers.kernel.reconciler import cluster_seen_by
from controllers.kernel.refs import (
    CONFIG_MAP,
    CSI_NODE,
    LEASE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    WORKLOAD_KINDS,
    Key,
)
from controllers.kernel.view import MANAGEMENT_CLUSTER, Reached, Unreachable, Workload
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from tests.builders.view import FakeView
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import NAMESPACE, config_map, view_of

PROD = Key("ns", "prod")
OPTIONS = AutoscalerOptions(cluster=PROD)
FOUND = Reached("prod-kubeconfig")
LOST = Unreachable("prod-kubeconfig", "Unreachable", "no answer")
NO_SECRET = Unreachable("", "KubeconfigMissing", "there is no Secret ns/prod-kubeconfig")


@pytest.fixture
def fleet() -> Fleet:
    """A group of prod, one of another Cluster and one of none, and a pod that any of them would help."""
    fleet = Fleet(OPTIONS)
    for name, cluster in (("web", "prod"), ("other", "test"), ("near", "")):
        fleet.group(name, 0, 5)
        if cluster:
            fleet.deployments[name]["spec"]["clusterName"] = cluster
            fleet.sets[name]["spec"]["clusterName"] = cluster
    fleet.pod("p")
    return fleet


def observed_in(fleet: Fleet, workload: Workload = FOUND, *more: Any, options: AutoscalerOptions = OPTIONS) -> Observed:
    return observe(view_of(fleet, *more).living_in(workload), options)


def actions(found: Observed) -> list[Action]:
    return list(plan(found).actions())


def sizes(found: Observed) -> dict[str, int]:
    return {action.target.key.name: action.replicas for action in actions(found) if isinstance(action, Scale)}


def told(found: Observed) -> dict[str, tuple[str, str]]:
    """Group → status and reason of the condition that is written."""
    return {
        action.target.key.name: (condition["status"], condition["reason"])
        for action in actions(found)
        if isinstance(action, Patch) and action.subresource == "status"
        for condition in action.patch["status"]["conditions"]
    }


def with_condition(fleet: Fleet, group: str, status: str, reason: str) -> None:
    said = {"type": "ScalingActive", "status": status, "reason": reason, "message": "", "lastTransitionTime": None}
    fleet.deployments[group]["status"] = {"conditions": [said]}


def test_its_cluster_s_groups_are_scaled_and_nothing_is_said_of_others(fleet: Fleet) -> None:
    fleet.deployments["other"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "few"
    with_condition(fleet, "near", "False", "InvalidConfiguration")
    found = observed_in(fleet)
    assert sizes(found) == {"web": 1}
    assert told(found) == {}
    assert {a.target.key.name for a in actions(found) if isinstance(a, Event)} == {"web", "p"}
    (why,) = explain_group(found, found.records.refs["md-near"]).below
    assert why.text == "is left alone: it is of no Cluster, and this autoscaler is for Cluster ns/prod"
    (why,) = explain_group(found, found.records.refs["md-other"]).below
    assert why.text == "is left alone: it is of Cluster ns/test, and this autoscaler is for Cluster ns/prod"


def test_autoscalers_of_several_clusters_may_share_a_namespace(fleet: Fleet) -> None:
    made = {a.body["metadata"]["name"] for a in actions(observed_in(fleet)) if isinstance(a, Create)}
    assert made == {f"{names.AUTOSCALER_MEMORY}.ns.prod", f"{names.AUTOSCALER_STATUS}.ns.prod"}
    keys = [AutoscalerOptions(cluster=Key(*each)).memory_key for each in (("a", "b.c"), ("a-b", "c"), ("a", "b-c"))]
    assert len({*keys, AutoscalerOptions().memory_key}) == 4
    assert AutoscalerOptions().memory_key == Key(NAMESPACE, names.AUTOSCALER_MEMORY)


@pytest.mark.parametrize("workload", [LOST, replace(LOST, reason="InvalidKubeconfig", why="the Secret is bad")])
def test_while_its_cluster_can_t_be_reached_nothing_is_scaled_and_its_groups_say_so(
    fleet: Fleet, workload: Unreachable
) -> None:
    """What was seen last is still shown, and counts for nothing. What was unneeded begins anew."""
    fleet.deployments["web"]["spec"]["replicas"] = 2
    fleet.settle()
    fleet.now += timedelta(hours=1)
    fleet.pod("q", cpu="64")
    unneeded = Memory({name: fleet.now - timedelta(hours=1) for name in fleet.nodes})
    kept = config_map(OPTIONS.memory_key.name, memory=write(unneeded))
    assert sizes(observed_in(fleet, FOUND, (CONFIG_MAP, kept))), "it would shrink"
    found = observed_in(fleet, workload, (CONFIG_MAP, kept))
    assert not sizes(found)
    assert not [a for a in actions(found) if isinstance(a, Patch) and a.target.kind.name == "Machine"]
    assert told(found) == {"web": ("False", "ConnectionDown")}
    (memory,) = [a for a in actions(found) if isinstance(a, Patch) and a.target.key == OPTIONS.memory_key]
    assert not read(memory.patch["data"]["memory"]).unneeded
    (why,) = {a.why for a in actions(found) if isinstance(a, Event) and a.reason == "ConnectionDown"}
    assert why == f"Cluster ns/prod can't be reached: {workload.why}"


def test_what_is_said_in_the_dark_is_said_once_and_taken_back(fleet: Fleet) -> None:
    (condition,) = [a for a in actions(observed_in(fleet, LOST)) if isinstance(a, Patch) and a.subresource == "status"]
    fleet.deployments["web"]["status"] = condition.patch["status"]
    assert told(observed_in(fleet, LOST)) == {}
    assert told(observed_in(fleet)) == {"web": ("True", "Scaled")}


def test_of_a_cluster_without_an_api_of_its_own_the_autoscaler_at_home_speaks(fleet: Fleet) -> None:
    with_condition(fleet, "web", "False", "BackedOff")
    found = observed_in(fleet, NO_SECRET)
    assert not sizes(found)
    assert told(found) == {}
    assert {a.reason for a in actions(found) if isinstance(a, Event)} == {"ClusterUnhealthy"}


@pytest.mark.parametrize(
    ("had", "wanted"),
    [
        (None, {"web": ("False", "NodesElsewhere")}),
        (("False", "NodesElsewhere"), {"web": ("False", "NodesElsewhere")}),
        (("True", "Scaled"), {}),
        (("False", "BackedOff"), {}),
        (("False", "ConnectionDown"), {}),
    ],
)
def test_at_home_it_speaks_of_groups_elsewhere_only_where_nobody_else_does(
    fleet: Fleet, had: tuple[str, str] | None, wanted: dict[str, tuple[str, str]]
) -> None:
    """Else two autoscalers would take back each other's words for ever."""
    del fleet.deployments["other"]
    if had is not None:
        with_condition(fleet, "web", *had)
    for bad in (False, True):
        if bad:
            fleet.deployments["web"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "few"
        view = view_of(fleet)
        view._clusters[PROD] = FakeView(now=fleet.now).living_in(FOUND)
        found = observe(view, AutoscalerOptions())
        assert sizes(found) == {"near": 1}
        assert told(found) == wanted
        assert bool([a for a in actions(found) if isinstance(a, Event) and a.reason == "NodesElsewhere"]) == bool(
            wanted
        )


def test_a_machine_has_its_time_to_become_a_node_from_when_that_can_be_seen(fleet: Fleet) -> None:
    """In an outage hosts join unseen. Given up on its return, they would all go."""
    fleet.deployments["web"]["spec"]["replicas"] = 1
    fleet.pods.clear()
    fleet.machine("web")
    fleet.now += timedelta(minutes=20)

    def after(outage_ended: float | None) -> dict[str, int]:
        view = view_of(fleet).living_in(FOUND)
        return sizes(observe(view if outage_ended is None else view.outage(NODE, outage_ended), OPTIONS))

    assert after(None) == {"web": 0}
    assert after(60.0) == {}
    assert after(15 * 60.0) == {"web": 0}


def test_a_machine_whose_own_controller_can_t_see_the_cluster_is_waited_for(fleet: Fleet) -> None:
    """It may have joined long ago: we can see the cluster and that controller can't."""
    fleet.deployments["web"]["spec"]["replicas"] = 1
    fleet.pods.clear()
    said = {"type": "Ready", "status": "Unknown", "reason": "ConnectionDown"}
    machine = fleet.machine("web", said)
    fleet.now += timedelta(minutes=20)
    assert sizes(observed_in(fleet)) == {}
    machine["status"] = {"conditions": [{**said, "reason": "WaitingForNode"}]}
    assert sizes(observed_in(fleet)) == {"web": 0}


def test_the_lease_of_the_cluster_autoscaler_and_all_that_pods_need_are_read_where_the_pods_are() -> None:
    reconciler = AutoscalerReconciler(OPTIONS)
    assert {NODE, POD, LEASE, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, CSI_NODE} <= WORKLOAD_KINDS & {*reconciler.reads}
    assert CONFIG_MAP not in WORKLOAD_KINDS, "what it remembers lies with the groups"
    assert cluster_seen_by(reconciler) == PROD
    assert (
        cluster_seen_by(AutoscalerReconciler())
        == cluster_seen_by(ProvisioningRequestReconciler())
        == MANAGEMENT_CLUSTER
    )
