"""What the room makes of the world before it decides: whose groups are its own, and when it decides nothing at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api import names
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.memory import read
from controllers.autoscaler.observe import observe
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.kernel.actions import Create, Event, Patch, Scale
from controllers.kernel.conditions import format_time
from controllers.kernel.plan import Wait
from controllers.kernel.refs import (
    CONFIG_MAP,
    CSI_NODE,
    LEASE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    Key,
    Kind,
    Ref,
)
from controllers.kernel.view import Reached, ShapeUnknown, Unreachable
from controllers.scaling.node_group import Bounds, Discovery, Filter
from providers.base.contract import Shape
from tests.builders.view import FakeView
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import NAMESPACE, config_map, observed_of, view_of

ELSEWHERE = Key("ns", "far")


@pytest.fixture
def fleet() -> Fleet:
    fleet = Fleet()
    fleet.group("web", 0, 5)
    fleet.pod("p")
    return fleet


def scaled(fleet: Fleet, **more: object) -> dict[str, int]:
    found = plan(observed_of(fleet, **more))  # type: ignore[arg-type]
    return {action.target.key.name: action.replicas for action in found.actions() if isinstance(action, Scale)}


def test_what_has_to_be_remembered_is_written_before_the_size(fleet: Fleet) -> None:
    first, second, *_ = plan(observed_of(fleet)).steps
    (kept,), (size,) = first, second
    assert isinstance(kept, Create)
    assert kept.body["metadata"] == {"namespace": NAMESPACE, "name": names.AUTOSCALER_MEMORY}
    assert [each.nodes for each in read(kept.body["data"]["memory"]).grown] == [1]
    assert isinstance(size, Scale)
    before = config_map(names.AUTOSCALER_MEMORY, memory="{}")
    (kept,), *_ = plan(observed_of(fleet, (CONFIG_MAP, before))).steps
    assert isinstance(kept, Patch)
    assert kept.resource_version == "9", "nobody else may have remembered something meanwhile"


@pytest.mark.parametrize(
    ("workload", "wanted"),
    [
        (None, {"web": 1}),
        (Reached("far-kubeconfig"), {}),
        (Unreachable("far-kubeconfig", "ConnectionDown", "no answer"), {}),
    ],
    ids=["at home", "in a cluster of their own", "in one that can't be reached"],
)
def test_groups_whose_nodes_live_elsewhere_are_left_alone(
    fleet: Fleet, workload: Reached | Unreachable | None, wanted: dict[str, int]
) -> None:
    fleet.deployments["web"]["spec"]["clusterName"] = "far"
    view = view_of(fleet)
    if workload is not None:
        elsewhere = FakeView()
        elsewhere._workload = workload
        view._clusters[ELSEWHERE] = elsewhere
    observed = observe(view, fleet.options)
    found = plan(observed)
    assert {a.target.key.name: a.replicas for a in found.actions() if isinstance(a, Scale)} == wanted
    told = [a for a in found.actions() if isinstance(a, Patch) and a.subresource == "status"]
    assert bool(told) != bool(wanted)
    if told:
        (condition,) = told[0].patch["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "ScalingActive",
            "False",
            "NodesElsewhere",
        )


@pytest.mark.parametrize("secret", ["", "far-kubeconfig"])
def test_while_nobody_knows_where_nodes_live_nothing_is_decided(fleet: Fleet, secret: str) -> None:
    """Else, after a restart, another group would grow for pods whose Nodes are on their way."""
    fleet.group("near", 0, 5)
    fleet.deployments["web"]["spec"]["clusterName"] = "far"
    view, unknown = view_of(fleet), FakeView()
    unknown._workload = Unreachable(secret, "Unreachable", "it is being found out", finding_out=True)
    view._clusters[ELSEWHERE] = unknown
    found = plan(observe(view, fleet.options))
    assert not found.steps
    assert isinstance(found.outcome, Wait)
    assert found.outcome.after == 1


def test_a_lease_that_nobody_renews_any_more_stops_nobody(fleet: Fleet) -> None:
    def lease(age: timedelta) -> tuple[object, dict[str, object]]:
        spec = {
            "holderIdentity": "other",
            "leaseDurationSeconds": 15,
            "renewTime": format_time(fleet.now - age),
        }
        return LEASE, {"metadata": {"namespace": NAMESPACE, "name": names.AUTOSCALER_LEASE, "uid": "l"}, "spec": spec}

    held, old = (plan(observed_of(fleet, lease(timedelta(seconds=age)))) for age in (59, 61))  # type: ignore[arg-type]
    assert not [action for action in held.actions() if not hasattr(action, "reason")], "only an event"
    assert [action for action in old.actions() if isinstance(action, Scale)]


def test_a_group_from_nothing_grows_by_what_its_provider_says(fleet: Fleet) -> None:
    annotations = fleet.deployments["web"]["metadata"]["annotations"]
    for key in [key for key in annotations if key.startswith(names.CAPACITY_PREFIX)]:
        del annotations[key]
    config = {"apiVersion": "x/v1", "kind": "Config"}
    fleet.deployments["web"]["spec"]["template"]["spec"] = {"providerConfig": {"value": config}}
    asked = plan(observe(view_of(fleet).shaped(config, ShapeUnknown("asked", asked=True)), fleet.options))
    assert not [a for a in asked.actions() if not isinstance(a, Create)], "nothing is said before it has answered"
    assert isinstance(asked.outcome, Wait)
    assert asked.outcome.after == 1
    shape = Shape({"cpu": "4", "memory": "8Gi"})
    known = plan(observe(view_of(fleet).shaped(config, shape), fleet.options))
    assert [a.replicas for a in known.actions() if isinstance(a, Scale)] == [1]


def test_options_name_groups_and_narrow_the_annotated_ones(fleet: Fleet) -> None:
    fleet.group("other", 0, 5)
    fleet.deployments["other"]["metadata"]["labels"] = {"pool": "a"}
    only_a = Discovery(filters=(Filter("ns", "", (("pool", "a"),)),))
    assert scaled(fleet, options=AutoscalerOptions(discovery=only_a)) == {"other": 1}
    full = Discovery(
        {Key("ns", "web"): Bounds(0, 0), Key("ns", "other"): Bounds(2, 9), Key("ns", "gone"): Bounds(0, 1)}
    )
    observed = observed_of(fleet, options=AutoscalerOptions(discovery=full))
    assert {state.group.ref.key.name: state.group.bounds for state in observed.cluster.groups}["other"] == Bounds(2, 9)
    assert observed.scope.missing == (Key("ns", "gone"),)
    assert "no group is called ns/gone" in str([a for a in plan(observed).actions() if isinstance(a, Create)])


def test_priorities_come_from_a_config_map_and_faults_in_it_are_named(fleet: Fleet) -> None:
    fleet.group("spot", 0, 5)
    options = replace(fleet.options, growth=GrowthOptions(Choosing(("priority",), seed="s")))
    for wanted in ("spot", "web"):
        text = f"10: ['.*']\n50: ['/{wanted}$']"
        priorities = config_map(names.AUTOSCALER_PRIORITIES, priorities=text)
        found = plan(observed_of(fleet, (CONFIG_MAP, priorities), options=options))
        assert [a.target.key.name for a in found.actions() if isinstance(a, Scale)] == [wanted]
    for text, fault in (("x: [a]", "priorities[x]: the priority must be"), ("{", "data.priorities: ")):
        priorities = config_map(names.AUTOSCALER_PRIORITIES, priorities=text)
        observed = observed_of(fleet, (CONFIG_MAP, priorities), options=options)
        assert fault in observed.records.misconfigured[Ref(CONFIG_MAP, Key(NAMESPACE, names.AUTOSCALER_PRIORITIES))]
        assert [a for a in plan(observed).actions() if isinstance(a, Scale)], "pods get their Nodes all the same"


def test_the_cheapest_group_grows_by_a_table_in_a_config_map(fleet: Fleet) -> None:
    fleet.group("spot", 0, 5)
    for name in ("web", "spot"):
        labels = fleet.deployments[name]["metadata"]["annotations"]
        labels[names.CAPACITY_LABELS_ANNOTATION] = f"node.kubernetes.io/instance-type=m.{name}"
    options = replace(fleet.options, growth=GrowthOptions(Choosing(("price",), seed="s")))
    for table, wanted in (
        ("nodes: {m.web: 0.5, m.spot: 0.1}", "spot"),
        ("nodes: {m.web: 0.5, m.spot: 0.9}", "web"),
        ("nodes: {m.web: 0.5, m.spot: 0.1, MachineDeployment/ns/spot: 3}", "web"),
        ("nodes: {m.web: 7}", "web"),
    ):
        prices = config_map(names.AUTOSCALER_PRICES, prices=table)
        found = plan(observed_of(fleet, (CONFIG_MAP, prices), options=options))
        assert [a.target.key.name for a in found.actions() if isinstance(a, Scale)] == [wanted], table


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (None, f"the expander price needs the ConfigMap {NAMESPACE}/{names.AUTOSCALER_PRICES}"),
        ("nodes: {m.large: cheap}", "data.prices: nodes[m.large]: 'cheap' is no price"),
        ("[1]", "data.prices: a map with the keys nodes and pods is needed, and nothing else"),
    ],
)
def test_a_table_of_prices_that_is_missing_or_faulty_is_named(fleet: Fleet, table: str | None, fault: str) -> None:
    options = replace(fleet.options, growth=GrowthOptions(Choosing(("price",), seed="s")))
    there = [] if table is None else [(CONFIG_MAP, config_map(names.AUTOSCALER_PRICES, prices=table))]
    found = plan(observed_of(fleet, *there, options=options))
    ref = Ref(CONFIG_MAP, Key(NAMESPACE, names.AUTOSCALER_PRICES))
    assert [a.why for a in found.actions() if isinstance(a, Event) and a.target == ref] == [fault]
    assert [a for a in found.actions() if isinstance(a, Scale)], "pods get their Nodes all the same"


def test_a_pod_whose_volumes_no_node_may_take_any_more_gets_a_new_one(fleet: Fleet) -> None:
    """kube-scheduler counts them by the CSINode; whoever does not, believes that the pod fits and adds nothing."""
    fleet.deployments["web"]["spec"]["replicas"] = 1
    del fleet.pods["p"]
    fleet.settle()
    (name,) = fleet.nodes
    more: list[tuple[Kind, dict[str, Any]]] = [
        (CSI_NODE, {"metadata": {"name": name}, "spec": {"drivers": [{"name": "csi", "allocatable": {"count": 1}}]}})
    ]
    for pod, node in (("old", name), ("new", "")):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": pod}}]
        fleet.pod(pod, "0.5", node, volumes=volumes)
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        claim = {"namespace": "default", "name": pod, "annotations": bound}
        more.append((PERSISTENT_VOLUME_CLAIM, {"metadata": claim, "spec": {"volumeName": pod}}))
        source = {"csi": {"driver": "csi", "volumeHandle": pod}}
        more.append((PERSISTENT_VOLUME, {"metadata": {"name": pod}, "spec": source}))
    (decided,) = [a for a in plan(observed_of(fleet, *more)).actions() if isinstance(a, Scale)]
    assert decided.replicas == 2
    assert not [a for a in plan(observed_of(fleet, *more[1:])).actions() if isinstance(a, Scale)], "it would fit"
