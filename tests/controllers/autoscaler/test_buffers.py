"""CapacityBuffers: chunks are placed after all pods, keep their Nodes, and are reported."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import capacity_names
from controllers.autoscaler.buffer_growth import added
from controllers.autoscaler.buffers import Buffer, BufferObjects, read_buffers
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.scale_up import MOST_EXPLAINED
from controllers.kernel.actions import Event, Patch
from controllers.kernel.refs import CAPACITY_BUFFER, DEPLOYMENT, POD_TEMPLATE
from controllers.scheduling.reading import Reader
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import observed_of

A, B = "MachineDeployment/ns/a", "MachineDeployment/ns/b"


def buffer(name: str = "spare", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    """Chunks of PodTemplate ``chunk``, unless the spec says otherwise."""
    meta = {"namespace": namespace, "name": name, "uid": f"cb-{name}", "resourceVersion": "1", "generation": 2}
    shape = {} if "scalableRef" in spec else {"podTemplateRef": {"name": "chunk"}}
    return {"metadata": meta, "spec": {**shape, **spec}}


def template(cpu: str = "1", name: str = "chunk", namespace: str = "default") -> dict[str, Any]:
    meta = {"namespace": namespace, "name": name, "uid": f"pt-{name}", "generation": 5}
    return {"metadata": meta, "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(cpu)}}


def deployment(replicas: int, cpu: str = "1") -> dict[str, Any]:
    meta = {"namespace": "default", "name": "web", "uid": "d-web"}
    return {"metadata": meta, "spec": {"replicas": replicas, "template": {"spec": pod_spec(cpu)}}}


def pod_spec(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}


def resource_quota(hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    meta = {"namespace": "default", "name": "team"}
    return {"metadata": meta, "spec": {"hard": hard, **spec}, "status": {"hard": hard, "used": used}}


def read(*buffers: dict[str, Any], **objects: Any) -> tuple[Buffer, ...]:
    given = {"pod_templates": [template()], "workloads": {DEPLOYMENT: [deployment(12)]}, **objects}
    return read_buffers(BufferObjects(buffers=buffers, **given), Reader())


def fleet_with(*buffers: dict[str, Any], cpu: str = "1", **growth: Any) -> Fleet:
    """A group of Nodes with 4 cores."""
    fleet = Fleet(AutoscalerOptions(GrowthOptions(buffers=True, **growth)))
    fleet.group("a")
    fleet.buffers = BufferObjects(buffers=buffers, pod_templates=[template(cpu)])
    return fleet


WEB = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"replicas": 7}, 7),
        ({"replicas": 0}, 0),
        ({"replicas": 7, "limits": {"cpu": "5"}}, 5),
        ({"limits": {"cpu": 3, "memory": "10Gi"}}, 3),
        ({"limits": {"memory": "2.5Gi"}}, 2),
        ({**WEB, "percentage": 20}, 3),
        ({**WEB, "percentage": 20, "replicas": 5}, 5),
        ({**WEB, "percentage": 50, "replicas": 5}, 6),
        ({**WEB, "percentage": 0}, 0),
        ({**WEB, "percentage": 200, "limits": {"cpu": "4"}}, 4),
        ({"replicas": 7, "provisioningStrategy": capacity_names.ACTIVE_CAPACITY}, 7),
        ({"replicas": 10**6}, capacity_names.MAX_CHUNKS),
    ],
    ids=str,
)
def test_how_many_chunks(spec: dict[str, Any], count: int) -> None:
    (found,) = read(buffer(**spec))
    assert (found.count, found.reason) == (count, "Resolved")


@pytest.mark.parametrize(
    ("spec", "reason", "named"),
    [
        ({"podTemplateRef": {"name": "no"}, "replicas": 1}, "PodTemplateNotFound", "no PodTemplate default/no"),
        ({"scalableRef": {"kind": "Deployment", "name": "no"}, "replicas": 1}, "ScalableRefNotFound", "default/no"),
        ({"scalableRef": {"kind": "Job", "name": "web"}, "replicas": 1}, "ResolutionFailed", "spec.scalableRef.kind"),
        (
            {"scalableRef": {"apiGroup": "x.io", "kind": "Deployment", "name": "web"}, "replicas": 1},
            "ResolutionFailed",
            "spec.scalableRef.kind",
        ),
        ({"replicas": 1, "provisioningStrategy": "cold"}, "ResolutionFailed", "spec.provisioningStrategy"),
        ({"percentage": 20}, "ResolutionFailed", "spec.percentage"),
        ({"limits": {"example.com/x": "1"}}, "ResolutionFailed", "none of replicas"),
        ({"limits": {"cpu": "much"}}, "ResolutionFailed", "spec.limits[cpu]"),
        ({"limits": {f"example.com/{n}": "1" for n in range(21)}}, "ResolutionFailed", "spec.limits: has more than 20"),
        ({**WEB, "podTemplateRef": {"name": "chunk"}, "replicas": 1}, "ResolutionFailed", "exactly one"),
    ],
    ids=str,
)
def test_what_can_t_be_read_is_named(spec: dict[str, Any], reason: str, named: str) -> None:
    (found,) = read(buffer(**spec))
    assert (found.chunk, found.count, found.reason) == (None, 0, reason)
    assert named in found.why


def test_a_template_of_another_namespace_is_not_found() -> None:
    (found,) = read(buffer(replicas=1), pod_templates=[template(namespace="other")])
    assert found.reason == "PodTemplateNotFound"


def test_a_template_without_containers_is_named() -> None:
    (found,) = read(buffer(replicas=1), pod_templates=[{**template(), "template": {"spec": {}}}])
    assert (found.reason, found.count) == ("ResolutionFailed", 0)


def test_what_resource_quotas_leave_is_shared_by_the_buffers_of_the_namespace() -> None:
    """10 cores, 4 used: 6 chunks of one core; the first buffer takes 5 of them."""
    quotas = [resource_quota({"requests.cpu": "10", "pods": "100"}, {"requests.cpu": "4"})]
    first, second = read(buffer("a", replicas=5), buffer("b", replicas=5), resource_quotas=quotas)
    assert (first.count, first.limited) == (5, "")
    assert second.count == 1
    assert second.limited == "ResourceQuota team leaves cpu for 1 chunk"


@pytest.mark.parametrize(
    ("hard", "count"),
    [
        ({"cpu": "2"}, 2),
        ({"requests.cpu": "2500m", "cpu": "9"}, 2),
        ({"pods": "3"}, 3),
        ({"requests.memory": "1.9Gi"}, 1),
        ({"cpu": "0"}, 0),
        ({"count/pods": "4"}, 4),
        ({"limits.cpu": "1", "requests.example.com/gpu": "0"}, 5),
    ],
    ids=str,
)
def test_a_resource_quota_bounds_what_a_chunk_requests(hard: dict[str, str], count: int) -> None:
    (found,) = read(buffer(replicas=5), resource_quotas=[resource_quota(hard, {})])
    assert found.count == count
    assert bool(found.limited) == (count < 5)


def test_more_used_than_a_quota_allows_leaves_nothing() -> None:
    (found,) = read(buffer(replicas=5), resource_quotas=[resource_quota({"cpu": "2"}, {"cpu": "3"})])
    assert found.count == 0


def priority(operator: str, *values: str) -> dict[str, Any]:
    scope = {"scopeName": "PriorityClass", "operator": operator, **({"values": list(values)} if values else {})}
    return {"scopeSelector": {"matchExpressions": [scope]}}


OTHERS = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["other"]}]}}


@pytest.mark.parametrize(
    ("scopes", "spec", "bounds"),
    [
        ({"scopes": ["BestEffort"]}, {}, False),
        ({"scopes": ["NotBestEffort"]}, {}, True),
        ({"scopes": ["BestEffort"]}, {"containers": [{"name": "main"}]}, True),
        ({"scopes": ["Terminating"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, True),
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, {}, True),
        ({"scopes": ["NotTerminating", "BestEffort"]}, {}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {"affinity": OTHERS}, True),
        (priority("In", "high"), {}, False),
        (priority("In", "high"), {"priorityClassName": "high"}, True),
        (priority("NotIn", "high"), {}, True),
        (priority("Exists"), {}, False),
        (priority("DoesNotExist"), {}, True),
        ({"scopes": ["VolumeAttributesClass"]}, {}, False),
    ],
    ids=str,
)
def test_a_resource_quota_with_scopes_bounds_the_pods_that_they_mean(
    scopes: dict[str, Any], spec: dict[str, Any], bounds: bool
) -> None:
    quotas = [resource_quota({"pods": "1"}, {}, **scopes)]
    of_pods = {**template(), "template": {"spec": {**pod_spec("1"), **spec}}}
    (found,) = read(buffer(replicas=5), resource_quotas=quotas, pod_templates=[of_pods])
    assert found.count == (1 if bounds else 5)


def limit_range(name: str, kind: str = "Container", **item: Any) -> dict[str, Any]:
    meta = {"namespace": "default", "name": name}
    return {"metadata": meta, "spec": {"limits": [{"type": kind, **item}]}}


@pytest.mark.parametrize(
    ("ranges", "count", "limited"),
    [
        ([limit_range("a", default={"cpu": "2"})], 3, "ResourceQuota team leaves limits.cpu for 3 chunks"),
        ([limit_range("a", default={"cpu": "2"}), limit_range("b", default={"cpu": "6"})], 3, "limits.cpu for 3"),
        ([limit_range("a", defaultRequest={"example.com/fpga": "2"})], 2, "leaves example.com/fpga for 2 chunks"),
        ([limit_range("a", kind="Pod", default={"cpu": "2"})], 5, ""),
        ([], 5, ""),
        ([{**limit_range("a"), "spec": {"limits": 7}}], 5, ""),
    ],
    ids=["a limit", "the first of two", "a request", "of pods", "none", "no list"],
)
def test_what_limit_ranges_give_to_chunks_counts(ranges: list[dict[str, Any]], count: int, limited: str) -> None:
    quotas = [resource_quota({"limits.cpu": "6", "requests.example.com/fpga": "4"}, {})]
    (found,) = read(buffer(replicas=5), resource_quotas=quotas, limit_ranges=ranges)
    assert (found.count, limited in found.limited) == (count, True)


def test_a_limit_of_its_own_is_what_a_chunk_requests() -> None:
    container = {"name": "main", "resources": {"limits": {"cpu": "1"}}}
    of_pods = {**template(), "template": {"spec": {"containers": [container]}}}
    given = [limit_range("a", default={"cpu": "4"}, defaultRequest={"cpu": "3"})]
    (found,) = read(buffer(replicas=5), pod_templates=[of_pods], limit_ranges=given)
    assert found.chunk is not None
    assert dict(found.chunk.kind.demand.requests)["cpu"] == 1000


def test_limits_of_a_resource_quota_bound_the_limits_of_chunks() -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}}
    of_pods = {**template(), "template": {"spec": {"containers": [container]}}}
    quotas = [resource_quota({"limits.cpu": "7", "limits.memory": "100Gi"}, {"limits.cpu": "1"})]
    (found,) = read(buffer(replicas=5), resource_quotas=quotas, pod_templates=[of_pods])
    assert (found.count, found.limited) == (3, "ResourceQuota team leaves limits.cpu for 3 chunks")


def test_nodes_come_for_a_buffer_and_nothing_more_afterwards() -> None:
    fleet = fleet_with(buffer(replicas=10))
    assert fleet.round().scale_up.added == {A: 3}
    for _ in range(5):
        fleet.settle()
        decision = fleet.round(after=timedelta(minutes=20))
        assert not decision.changes[A]
    (outcome,) = decision.buffers
    assert (outcome.placed, outcome.short, len(outcome.nodes)) == (10, 0, 3)


def test_pods_take_the_room_and_the_buffer_is_filled_up_again() -> None:
    fleet = fleet_with(buffer(replicas=4))
    fleet.round()
    fleet.settle()
    fleet.come(4, "1")
    fleet.schedule()
    assert fleet.round().scale_up.added == {A: 1}
    fleet.settle()
    assert fleet.size("a") == 2


def test_pods_are_served_first() -> None:
    """The group may have one Node more: it is the pods'."""
    fleet = fleet_with(buffer(replicas=4), max_nodes=1)
    fleet.come(4, "1")
    decision = fleet.decide()
    assert decision.scale_up.added == {A: 1}
    assert sum(len(each.pods) for each in decision.scale_up.helped) == 4
    assert decision.buffers[0].short == 4


def test_a_node_that_holds_chunks_stays_and_goes_with_the_buffer() -> None:
    fleet = fleet_with(buffer(replicas=4))
    fleet.round()
    fleet.settle()
    for _ in range(6):
        decision = fleet.round(after=timedelta(minutes=15))
    (why,) = decision.scale_down.staying.values()
    assert "CapacityBuffer default/spare holds room on it" in str(why)
    fleet.buffers = BufferObjects()
    for _ in range(6):
        fleet.round(after=timedelta(minutes=15))
        fleet.settle()
    assert not fleet.nodes


def test_chunks_are_put_where_pods_are_so_that_an_empty_node_may_go() -> None:
    fleet = fleet_with(buffer(replicas=2))
    fleet.deployments["a"]["spec"]["replicas"] = 2
    fleet.settle()
    busy = sorted(fleet.nodes)[-1]
    pod = fleet.pod("p", "2", busy)
    pod["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    for _ in range(6):
        fleet.round(after=timedelta(minutes=15))
        fleet.settle()
    assert set(fleet.nodes) == {busy}


def test_chunks_are_no_pods_to_people() -> None:
    """No event is about a pod that is not there, and the status counts none."""
    fleet = fleet_with(buffer(replicas=100))
    decision = fleet.decide()
    assert not decision.scale_up.helped
    assert not decision.scale_up.left
    events = [each for step in decision.steps for each in step if isinstance(each, Event)]
    assert {each.target.kind.name for each in events} == {"MachineDeployment"}


def test_the_status_says_what_there_is_and_is_written_once() -> None:
    fleet = fleet_with(max_nodes=2)
    body = buffer(replicas=10)
    (patch,) = _patches(fleet, body)
    assert (patch["replicas"], patch["podTemplateRef"], patch["podTemplateGeneration"]) == (10, {"name": "chunk"}, 5)
    conditions = {each["type"]: each for each in patch["conditions"]}
    assert conditions["ReadyForProvisioning"]["status"] == "True"
    provisioning = conditions["Provisioning"]
    assert (provisioning["status"], provisioning["reason"]) == ("False", "RequiresNewCapacity")
    assert provisioning["message"] == (
        f"0 of 10 chunks fit; adding 2 Nodes of {A}; 2 fit nowhere: {A}: the cluster may have 2 Nodes"
    )
    assert not _patches(fleet, {**body, "status": patch})


def test_buffers_without_number_are_explained_for_the_first_ones_alone() -> None:
    fleet = fleet_with(*(buffer(f"b{number:02}", replicas=1) for number in range(25)), max_nodes=1)
    fleet.come(4, "1")
    outcomes = fleet.decide().buffers
    assert [bool(each.why) for each in outcomes] == [True] * MOST_EXPLAINED + [False] * (25 - MOST_EXPLAINED)
    assert all(each.short == 1 for each in outcomes)


def test_a_buffer_that_is_not_ready_says_why() -> None:
    (patch,) = _patches(fleet_with(), buffer(replicas=1, podTemplateRef={"name": "no"}))
    conditions = {each["type"]: (each["status"], each["reason"]) for each in patch["conditions"]}
    assert conditions == {
        "ReadyForProvisioning": ("False", "PodTemplateNotFound"),
        "Provisioning": ("False", "NotReadyForProvisioning"),
        "LimitedByQuotas": ("False", "WithinQuotas"),
    }


def test_an_event_tells_what_is_new_and_what_is_known_is_not_told_again() -> None:
    fleet, body = fleet_with(), buffer(replicas=10)
    assert _events_of(fleet, body) == [("Normal", "RequiresNewCapacity")]
    (patch,) = _patches(fleet, body)
    assert _events_of(fleet, {**body, "status": patch}) == []
    assert _events_of(fleet, buffer(replicas=500)) == [("Warning", "RequiresNewCapacity")]
    assert _events_of(fleet, buffer(replicas=1, podTemplateRef={"name": "no"})) == [("Warning", "PodTemplateNotFound")]


def test_a_metric_counts_the_chunks_of_all_buffers() -> None:
    """Ten Nodes of 4 cores are all that may come."""
    found = plan(observed_of(fleet_with(), (CAPACITY_BUFFER, buffer(replicas=50)), (POD_TEMPLATE, template())))
    counts = {each.labels: each.value for each in found.samples if "capacity_buffer" in each.metric.name}
    assert counts == {("fit",): 0, ("added",): 40, ("short",): 10}


def _events_of(fleet: Fleet, body: dict[str, Any]) -> list[tuple[str, str]]:
    found = plan(observed_of(fleet, (CAPACITY_BUFFER, body), (POD_TEMPLATE, template())))
    events = [each for each in found.actions() if isinstance(each, Event)]
    return [(each.type, each.reason) for each in events if each.target.kind == CAPACITY_BUFFER]


def _patches(fleet: Fleet, body: dict[str, Any]) -> list[dict[str, Any]]:
    found = plan(observed_of(fleet, (CAPACITY_BUFFER, body), (POD_TEMPLATE, template())))
    patches = [each for each in found.actions() if isinstance(each, Patch) and each.target.kind == CAPACITY_BUFFER]
    assert all(each.subresource == "status" for each in patches)
    return [dict(each.patch["status"]) for each in patches]


def _helped(decision: Decision) -> list[tuple[str, list[str]]]:
    return [(each.group, [pod.name for pod in each.pods]) for each in decision.scale_up.helped]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["500m", "1", "3"])), min_size=1, max_size=3),
    st.lists(st.sampled_from(["1", "2", "4"]), max_size=12),
    st.integers(0, 6),
)
def test_buffers_take_nothing_from_pods(wanted: list[tuple[int, str]], pods: list[str], most: int) -> None:
    """Each group grows for pods as it would without buffers, and no maximum is exceeded."""
    plain, buffered = fleet_with(), fleet_with()
    for fleet in (plain, buffered):
        fleet.deployments.clear()
        fleet.sets.clear()
        fleet.group("a", most=most)
        fleet.group("b", most=2, cpu="8")
        for number, cpu in enumerate(pods):
            fleet.pod(f"p-{number}", cpu)
    buffered.buffers = BufferObjects(
        buffers=[
            buffer(f"b{n}", podTemplateRef={"name": cpu}, replicas=count) for n, (count, cpu) in enumerate(wanted)
        ],
        pod_templates=[template(cpu, cpu) for cpu in ("500m", "1", "3")],
    )
    without, with_them = plain.decide(), buffered.decide()
    own = added(with_them.buffers)
    for group in (A, B):
        assert with_them.scale_up.added.get(group, 0) - own.get(group, 0) == without.scale_up.added.get(group, 0)
    assert with_them.scale_up.added.get(A, 0) <= most
    assert with_them.scale_up.added.get(B, 0) <= 2
    assert _helped(with_them) == _helped(without)
    for outcome, (count, _) in zip(with_them.buffers, wanted, strict=True):
        assert outcome.placed + outcome.short <= count
