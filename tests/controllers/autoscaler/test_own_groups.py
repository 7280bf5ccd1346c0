"""Groups that the autoscaler makes of MachineClasses that are offered for it, and takes away again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.autoprovision import class_of
from api.validate import validate
from controllers.autoscaler.candidates import Variant, body_of
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, ShrinkOptions
from controllers.autoscaler.plan import decide, plan
from controllers.autoscaler.prices import PriceTable
from controllers.kernel.actions import Create, Delete, Event
from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key
from controllers.scaling.node_group import Discovery, Filter
from tests.controllers.autoscaler.fleet import ZONE, Fleet
from tests.controllers.autoscaler.town import observed_of
from tests.controllers.provisioningrequest.office import Office
from tests.examples import usually

TEAM = "example.com/team"
QUICK = ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0), delay_after_failure=timedelta(0))


def fleet_of(pods: int = 0, *, cpu: str = "1", most: int = 5, **growth: Any) -> Fleet:
    fleet = Fleet(AutoscalerOptions(GrowthOptions(own_groups=most, **growth), QUICK))
    for index in range(pods):
        fleet.pod(f"p-{index}", cpu)
    return fleet


def created(fleet: Fleet) -> list[dict[str, Any]]:
    actions = [action for step in fleet.decide().steps for action in step]
    made = [a for a in actions if isinstance(a, Create) and a.kind == MACHINE_DEPLOYMENT]
    return [dict(action.body) for action in made]


def test_a_group_is_made_with_its_first_nodes_for_pods_that_no_group_takes() -> None:
    """10 pods of one core, four cores a Node: three Nodes in the write that makes the group."""
    fleet = fleet_of(10)
    fleet.offer("large")
    (body,) = created(fleet)
    assert body["spec"]["replicas"] == 3
    assert body["spec"]["template"]["spec"]["providerConfig"] == {"valueFrom": {"machineClass": {"name": "large"}}}
    assert class_of(body["metadata"]["name"], body["metadata"]["annotations"]) == "large"
    assert validate(body) == []


def test_the_same_pods_make_the_same_group_so_that_a_death_between_two_writes_makes_none_twice() -> None:
    fleet = fleet_of(10)
    fleet.offer("large")
    first = created(fleet)
    fleet.round(steps=0)
    assert created(fleet) == first
    fleet.round()
    assert not created(fleet)
    fleet.settle()
    fleet.round()
    assert len(fleet.deployments) == 1
    assert all(pod["spec"]["nodeName"] for pod in fleet.pods.values())


def test_it_makes_none_unless_it_is_told_to() -> None:
    fleet = fleet_of(3, most=0)
    fleet.offer("large")
    assert not created(fleet)


def test_a_group_that_is_there_goes_before_one_that_is_as_good() -> None:
    fleet = fleet_of(3)
    fleet.group("web")
    fleet.offer("large")
    assert not created(fleet)
    assert fleet.decide().scale_up.added == {"MachineDeployment/ns/web": 1}


def test_a_candidate_that_wastes_less_goes_before_a_group_that_is_there() -> None:
    fleet = fleet_of(2)
    fleet.group("web", cpu="64", memory="512Gi")
    fleet.offer("small", cpu="2", memory="2Gi")
    (body,) = created(fleet)
    assert body["metadata"]["name"].startswith("small-")


def test_the_cheaper_class_is_taken_where_prices_decide() -> None:
    fleet = fleet_of(4)
    dear, cheap = fleet.offer("dear"), fleet.offer("cheap")
    prices = {f"MachineDeployment/ns/{body_of(each)['metadata']['name']}": price
              for each, price in ((dear, 2.0), (cheap, 1.0))}  # fmt: skip
    choosing = Choosing(("price",), prices=PriceTable(nodes=prices))
    fleet.options = AutoscalerOptions(GrowthOptions(own_groups=5, choosing=choosing))
    (body,) = created(fleet)
    assert body["metadata"]["name"].startswith("cheap-")


def test_labels_and_taints_that_pods_ask_for_come_with_the_group() -> None:
    fleet = fleet_of()
    fleet.offer("large", f"{{taints: [{TEAM}], template: {{spec: {{versions: {{kubelet: 1.36.3}}}}}}}}")
    toleration = {"key": TEAM, "operator": "Equal", "value": "red", "effect": "NoSchedule"}
    fleet.pod("p", nodeSelector={TEAM: "red"}, tolerations=[toleration])
    (body,) = created(fleet)
    spec = body["spec"]["template"]["spec"]
    assert spec["metadata"]["labels"] == {TEAM: "red"}
    assert spec["taints"] == [{"key": TEAM, "value": "red", "effect": "NoSchedule"}]
    assert spec["versions"] == {"kubelet": "1.36.3"}
    assert validate(body) == []


def test_a_pod_gets_no_label_that_the_offer_does_not_open() -> None:
    fleet = fleet_of()
    fleet.offer("large", "{labels: [example.com/other]}")
    fleet.pod("p", nodeSelector={TEAM: "red"})
    assert not created(fleet)
    assert fleet.decide().scale_up.left


def test_pods_that_ask_for_a_zone_get_a_group_in_it_and_others_one_that_says_no_zone() -> None:
    fleet = fleet_of()
    fleet.offer("large", domains=("a", "b"))
    fleet.pod("p")
    (body,) = created(fleet)
    assert "failureDomain" not in body["spec"]["template"]["spec"]
    fleet.pods.clear()
    fleet.pod("q", nodeSelector={ZONE: "b"})
    (body,) = created(fleet)
    assert body["spec"]["template"]["spec"]["failureDomain"] == "b"


def test_a_gpu_class_is_made_for_pods_that_ask_for_gpus() -> None:
    fleet = fleet_of()
    fleet.offer("plain")
    fleet.offer("gpu", **{"nvidia.com/gpu": "2"})
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    for index in range(3):
        fleet.pod(f"p-{index}", containers=[{"name": "main", "resources": resources}])
    (body,) = created(fleet)
    assert body["metadata"]["name"].startswith("gpu-")
    assert body["spec"]["replicas"] == 2


def test_all_groups_of_a_class_together_keep_to_what_it_offers() -> None:
    fleet = fleet_of()
    fleet.offer("large", f"{{maxNodes: 3, labels: [{TEAM}]}}")
    for index in range(4):
        fleet.pod(f"red-{index}", "4", nodeSelector={TEAM: "red"})
        fleet.pod(f"blue-{index}", "4", nodeSelector={TEAM: "blue"})
    for _ in range(4):
        fleet.round()
        fleet.settle()
        assert sum(fleet.size(name) for name in fleet.deployments) <= 3
    assert sum(fleet.size(name) for name in fleet.deployments) == 3
    why = {reason for left in fleet.decide().scale_up.left for reason in left.why.values()}
    assert any("as many as it offers" in reason for reason in why)


def test_no_more_groups_are_made_than_it_may() -> None:
    fleet = fleet_of(most=1)
    fleet.offer("large", f"{{labels: [{TEAM}]}}")
    for team in ("red", "blue"):
        fleet.pod(team, "4", nodeSelector={TEAM: team})
    fleet.round()
    assert len(fleet.deployments) == 1
    why = {reason for left in fleet.decide().scale_up.left for reason in left.why.values()}
    assert any("no more may be made" in reason for reason in why)


def test_a_group_of_its_own_is_deleted_once_it_is_empty_and_those_of_people_stay() -> None:
    fleet = fleet_of(3)
    fleet.offer("large")
    fleet.round()
    fleet.settle()
    fleet.group("web")
    fleet.pods.clear()
    for _ in range(4):
        fleet.round()
        fleet.settle()
    assert set(fleet.deployments) == {"web"}


@pytest.mark.parametrize("keeps", ["minimum", "annotation", "copy"])
def test_what_a_person_keeps_or_copied_is_not_deleted(keeps: str) -> None:
    fleet = fleet_of(3)
    fleet.offer("large")
    fleet.round()
    (name,) = fleet.deployments
    body = fleet.deployments[name]
    annotations = body["metadata"]["annotations"]
    if keeps == "minimum":
        annotations[names.AUTOSCALER_MIN_ANNOTATION] = "1"
        body["spec"]["replicas"] = 0
    elif keeps == "annotation":
        del annotations[names.AUTOPROVISIONED_ANNOTATION]
        body["spec"]["replicas"] = 0
    else:
        fleet.deployments.pop(name)
        fleet.group("mine")["metadata"]["annotations"][names.AUTOPROVISIONED_ANNOTATION] = annotations[
            names.AUTOPROVISIONED_ANNOTATION
        ]
    fleet.pods.clear()
    assert not [a for step in fleet.decide().steps for a in step if isinstance(a, Delete)]


def test_a_deletion_is_guarded_by_the_version_that_was_looked_at() -> None:
    fleet = fleet_of(1)
    fleet.offer("large")
    fleet.round()
    (name,) = fleet.deployments
    fleet.deployments[name]["spec"]["replicas"] = 0
    fleet.pods.clear()
    (gone,) = [a for step in fleet.decide().steps for a in step if isinstance(a, Delete)]
    assert (gone.target.key, gone.target.uid, gone.resource_version) == (Key("ns", name), f"md-{name}", "7")


def test_a_class_without_stock_rests_though_its_group_goes_and_another_is_taken() -> None:
    fleet = fleet_of(3)
    fleet.offer("large", cpu="3")
    fleet.offer("other")
    fleet.round()
    (first,) = fleet.deployments
    short = {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"}
    fleet.machine(first, short)
    fleet.round()
    assert len(fleet.deployments) == 2
    fleet.settle()
    fleet.round()
    fleet.settle()
    assert first not in {
        m["metadata"]["ownerReferences"][0]["uid"].removeprefix("ms-") for m in fleet.machines.values()
    }
    assert all(pod["spec"]["nodeName"] for pod in fleet.pods.values())


def test_it_says_of_which_class_it_made_a_group() -> None:
    fleet = fleet_of(1)
    fleet.offer("large")
    told = [a for step in fleet.decide().steps for a in step if isinstance(a, Event) and a.reason == "CreatedNodeGroup"]
    assert [str(each.target) for each in told] == ["MachineClass ns/large"]


def test_another_template_of_the_offer_makes_another_group() -> None:
    fleet = fleet_of()
    old = fleet.offer("large", "{template: {spec: {versions: {kubelet: 1.35.1}}}}")
    new = fleet.offer("large", "{template: {spec: {versions: {kubelet: 1.36.3}}}}")
    assert body_of(old)["metadata"]["name"] != body_of(new)["metadata"]["name"]
    long = fleet.offer("a-name-of-a-class-that-is-as-long-as-names-may-be-and-then-some.more")
    assert validate({**body_of(long, Variant()), "spec": {"replicas": 0, **body_of(long)["spec"]}}) == []


def test_classes_are_read_from_the_api_with_what_their_provider_says() -> None:
    fleet = fleet_of(10)
    offered = fleet.offer("large", f"{{maxNodes: 7, labels: [{TEAM}]}}")
    cluster = observed_of(fleet).cluster
    assert dict(cluster.own.class_limits) == {Key("ns", "large"): 7}
    (candidate,) = cluster.own.candidates
    assert candidate.making is not None
    assert candidate.making.body == body_of(offered)
    assert candidate.template is not None
    assert candidate.template.amount("cpu") == 4000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{maxNodes: 0}", "maxNodes: '0' is not"),
        ("[1", "no YAML"),
        ("{labels: [node-role.kubernetes.io/control-plane]}", "labels[0]"),
        ("{nodes: 3}", "nodes: no such field"),
        ("{template: {spec: {providerConfig: {}}}}", "template.spec.providerConfig: is given by"),
        ("{template: {spec: {taints: [{key: a, effect: Often}]}}}", "template.spec.taints[0].effect"),
        ("{template: {metadata: {labels: [a]}}}", "template.metadata.labels"),
    ],
)
def test_an_offer_that_can_not_be_read_is_named_and_disturbs_nothing_else(text: str, why: str) -> None:
    fleet = fleet_of(1)
    fleet.offer("large")
    fleet.offer("broken")
    fleet.texts["broken"] = text
    observed = observed_of(fleet)
    assert [each.making.machine_class.name for each in observed.cluster.own.candidates if each.making] == ["large"]
    ((ref, said),) = observed.records.misconfigured.items()
    assert str(ref) == "MachineClass ns/broken"
    assert why.replace("'0'", "0") in said.replace("'0'", "0")
    events = [a for step in plan(observed).steps for a in step if isinstance(a, Event) and a.target == ref]
    assert [event.reason for event in events] == ["InvalidConfiguration"]


def test_a_class_whose_provider_is_yet_to_answer_is_waited_for() -> None:
    fleet = fleet_of(1)
    fleet.offer("large")
    fleet.offered = [replace(each, shape=None) for each in fleet.offered]
    observed = observed_of(fleet)
    (candidate,) = observed.cluster.own.candidates
    assert candidate.template is None
    assert not decide(observed.cluster).scale_up.added


def test_a_filter_of_groups_narrows_the_classes_too() -> None:
    fleet = fleet_of(1)
    fleet.offer("large")
    elsewhere = Discovery(filters=(Filter(namespace="other"),))
    assert not observed_of(fleet, options=replace(fleet.options, discovery=elsewhere)).cluster.own.candidates
    here = Discovery(filters=(Filter(namespace="ns"),))
    assert observed_of(fleet, options=replace(fleet.options, discovery=here)).cluster.own.candidates


def test_a_provisioning_request_gets_a_group_of_its_own_and_it_goes_with_the_booking() -> None:
    growth = GrowthOptions(own_groups=3)
    office = Office(Fleet(AutoscalerOptions(growth, QUICK, provisioning_requests=True)))
    office.fleet.offer("large")
    office.template("big")
    office.request("job", ("big", 3))
    office.live()
    (name,) = office.fleet.deployments
    assert office.fleet.size(name) == 3
    assert office.said("job") == ("True", "CapacityIsProvisioned")
    office.requests.clear()
    for _ in range(5):
        office.autoscale()
        office.fleet.settle()
    assert not office.fleet.deployments


come = st.tuples(st.just("come"), st.integers(1, 4), st.sampled_from(["red", "blue", ""]))
leave = st.tuples(st.just("leave"), st.integers(1, 4), st.just(""))
dies = st.tuples(st.just("dies"), st.integers(0, 2), st.just(""))


@usually(8)
@given(st.lists(st.one_of(come, leave, dies), max_size=10), st.integers(1, 3), st.integers(1, 6))
def test_own_groups_never_outgrow_their_limits_nor_outlive_their_pods(
    story: list[tuple[str, int, str]], most_groups: int, most_nodes: int
) -> None:
    fleet = fleet_of(most=most_groups)
    fleet.offer("large", f"{{maxNodes: {most_nodes}, labels: [{TEAM}]}}")
    fleet.group("web", most=1)
    for number, (what, count, team) in enumerate(story):
        if what == "come":
            for index in range(count):
                fleet.pod(f"p-{number}-{index}", "2", **({"nodeSelector": {TEAM: team}} if team else {}))
        elif what == "leave":
            fleet.leave(count)
        fleet.round(steps=count if what == "dies" else 9)
        own = [name for name in fleet.deployments if name != "web"]
        assert len(own) <= most_groups
        assert sum(fleet.size(name) for name in own) <= most_nodes
        assert "web" in fleet.deployments
        fleet.settle()
    fleet.pods.clear()
    for _ in range(25):
        fleet.round()
        fleet.settle()
    assert set(fleet.deployments) == {"web"}
