"""Pods that are not made yet get Nodes, as long as their owner makes pods, and never twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import provisioning_names
from controllers.autoscaler.expected_pods import FRESH, OwnerObjects, expected_pods, lacks_pods, wanted_by
from controllers.autoscaler.gathering import arrivals_of
from controllers.autoscaler.memory import pod_keys, write
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import GATHERING, plan
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Event
from controllers.kernel.conditions import format_time
from controllers.kernel.plan import Wait
from controllers.kernel.refs import JOB, LIMIT_RANGE, REPLICA_SET, RESOURCE_QUOTA, STATEFUL_SET, Kind
from controllers.scheduling.reading import Reader
from controllers.scheduling.shapes import PodInfo
from tests.controllers.autoscaler.fleet import GANGS, START, Fleet, Obj
from tests.controllers.autoscaler.town import observed_of

PROACTIVE = AutoscalerOptions(GrowthOptions(proactive=True, batch_idle=timedelta(0)))
WEB = "MachineDeployment/ns/web"
CONTAINERS = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]


def owner(kind: Kind = REPLICA_SET, *, age: float = 1, status: Obj | None = None, **spec: Any) -> Obj:
    """Of 10 pods with a core each, and made a second ago, unless told otherwise; its uid is that of Fleet's pods."""
    pod = {"containers": CONTAINERS, **spec.pop("pod", {})}
    size = {"parallelism": 10, "completions": 10} if kind == JOB else {"replicas": 10}
    created = format_time(START - timedelta(seconds=age))
    meta = {"namespace": "default", "name": "web-1", "uid": "rs", "creationTimestamp": created}
    template = {"metadata": {"labels": {"app": "web"}, **spec.pop("metadata", {})}, "spec": pod}
    return {"metadata": meta, "spec": {**size, "template": template, **spec}, "status": status or {}}


def parallel(**spec: Any) -> Obj:
    return owner(STATEFUL_SET, podManagementPolicy="Parallel", **spec)


def fleet_of(options: AutoscalerOptions = PROACTIVE, pods: int = 0, **pod: Any) -> Fleet:
    """A group of Nodes with 4 cores, and so many pods of the owner, made just now."""
    fleet = Fleet(options=options)
    fleet.group("web", most=100)
    for number in range(pods):
        made = fleet.pod(f"p-{number}", **{"schedulerName": "default-scheduler", **pod})
        made["metadata"]["creationTimestamp"] = format_time(START)
        made["status"]["conditions"] = []
    return fleet


def expected(
    body: Obj, fleet: Fleet | None = None, *, kind: Kind = REPLICA_SET, age: float = 0, **more: Any
) -> tuple[PodInfo, ...]:
    """``age``: seconds since the pods came."""
    fleet = fleet or fleet_of()
    reader = Reader()
    return expected_pods(
        OwnerObjects(owners={kind: [body]}, **more),
        reader.pods(tuple(fleet.pods.values())),
        reader=reader,
        now=fleet.now + timedelta(seconds=age),
        options=fleet.options,
    )


def added(fleet: Fleet, *bodies: Obj, kind: Kind = REPLICA_SET) -> int:
    """Nodes that are added; the fleet remembers them."""
    decision = fleet_decision(fleet, bodies, kind)
    return decision.scale_up.added.get(WEB, 0)


def fleet_decision(fleet: Fleet, bodies: Iterable[Obj], kind: Kind = REPLICA_SET) -> Any:
    fleet.owners = OwnerObjects(owners={kind: list(bodies)})
    return fleet.decide()


@pytest.mark.parametrize("there", [0, 1, 9, 10, 12])
def test_as_many_as_are_missing(there: int) -> None:
    assert len(expected(owner(), fleet_of(pods=there))) == max(0, 10 - there)


def test_they_get_nodes_before_they_are_there() -> None:
    """10 pods of a core each are 3 Nodes of 4 cores."""
    assert added(fleet_of(), owner()) == 3
    assert added(fleet_of(pods=4), owner()) == 3
    assert added(fleet_of(AutoscalerOptions()), owner()) == 0


def test_nodes_are_not_added_again_once_the_pods_are_there() -> None:
    fleet, body = fleet_of(), owner()
    fleet.owners = OwnerObjects(owners={REPLICA_SET: [body]})
    assert fleet.round().scale_up.added == {WEB: 3}
    for number in range(10):
        fleet.pod(f"p-{number}")["metadata"]["creationTimestamp"] = format_time(fleet.now)
        assert not fleet.decide().scale_up.added, f"with {number + 1} pods"
    fleet.settle()
    assert not fleet.decide().scale_up.added
    assert len(fleet.nodes) == 3


@pytest.mark.parametrize("kind", [REPLICA_SET, JOB, STATEFUL_SET], ids=str)
def test_each_kind_of_owner(kind: Kind) -> None:
    assert added(fleet_of(), owner(kind, podManagementPolicy="Parallel"), kind=kind) == 3


def failing() -> Obj:
    return {"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]}


def ended(condition: str) -> Obj:
    return {"conditions": [{"type": condition, "status": "True"}]}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(REPLICA_SET, owner(age=FRESH.total_seconds()), id="made long ago"),
        pytest.param(REPLICA_SET, owner(status={"replicas": 10}), id="all are made, and on their way to us"),
        pytest.param(REPLICA_SET, owner(status=failing()), id="the API server refuses them"),
        pytest.param(REPLICA_SET, owner(pod={"schedulingGates": [{"name": "wait"}]}), id="gated"),
        pytest.param(REPLICA_SET, owner(pod={"nodeName": "n"}), id="bound by their template"),
        pytest.param(REPLICA_SET, owner(pod={"schedulerName": "another"}), id="a scheduler that may not be there"),
        pytest.param(REPLICA_SET, owner(pod={"priorityClassName": "low"}), id="of a priority that is not known"),
        pytest.param(REPLICA_SET, owner(pod={"containers": []}), id="no containers"),
        pytest.param(REPLICA_SET, owner(pod={"containers": [{"resources": 3}]}), id="unreadable"),
        pytest.param(REPLICA_SET, owner(pod={"volumes": [{"name": "own", "ephemeral": {}}]}), id="own volumes"),
        pytest.param(STATEFUL_SET, owner(STATEFUL_SET), id="one after the other"),
        pytest.param(STATEFUL_SET, parallel(volumeClaimTemplates=[{}]), id="own claims"),
        pytest.param(JOB, owner(JOB, suspend=True), id="suspended"),
        pytest.param(JOB, owner(JOB, status=ended("Complete")), id="complete"),
        pytest.param(JOB, owner(JOB, status=ended("FailureTarget")), id="about to fail"),
        pytest.param(JOB, owner(JOB, completions=None, status={"succeeded": 1}), id="a queue that is empty"),
    ],
)
def test_none_are_expected(kind: Kind, body: Obj) -> None:
    assert expected(body, kind=kind) == ()


def test_none_are_expected_of_an_owner_that_is_deleted() -> None:
    body = owner()
    body["metadata"]["deletionTimestamp"] = format_time(START)
    assert expected(body) == ()


@pytest.mark.parametrize(
    ("status", "wanted"),
    [({}, 10), ({"succeeded": 7}, 5), ({"succeeded": 9}, 3), ({"succeeded": 12}, 0)],
)
def test_what_a_job_wants(status: Obj, wanted: int) -> None:
    parallel = 10 if not status else 5
    assert wanted_by(JOB, owner(JOB, parallelism=parallel, completions=12, status=status)) == wanted


def test_they_are_like_the_newest_pod() -> None:
    """Its requests may be others than those of the template: whoever admits pods may change them."""
    fleet = fleet_of(pods=2)
    newest = fleet.pod("p-newest", "2")
    newest["metadata"]["creationTimestamp"] = format_time(START + timedelta(seconds=5))
    found = expected(owner(), fleet)
    assert len(found) == 7
    assert {dict(pod.kind.demand.requests)["cpu"] for pod in found} == {2000}
    assert {(pod.uid, pod.node) for pod in found} == {("", "")}
    assert len({pod.name for pod in found}) == 7


def test_a_pod_of_a_template_is_known_again_once_it_is_there() -> None:
    """Both are of one kind, so that they are decided on together."""
    fleet, reader = fleet_of(), Reader()
    first = expected(owner(), fleet)[0]
    made = fleet.pod("p-0", tolerations=TOLERATIONS, priority=0)
    made["metadata"]["labels"] = {"app": "web"}
    assert reader.pod(made).kind.demand == first.kind.demand
    assert reader.pod(made).owner is not None
    assert pod_keys()(reader.pod(made)) == pod_keys()(first)
    assert reader.pod(made).kind.labels == first.kind.labels


TOLERATIONS = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for name in ("not-ready", "unreachable")
]


def test_an_owner_that_makes_pods_for_long() -> None:
    fleet = fleet_of(pods=4)
    assert len(expected(owner(age=3600), fleet)) == 6
    assert len(expected(owner(age=3600), fleet, age=FRESH.total_seconds() - 1)) == 6
    assert expected(owner(age=3600), fleet, age=FRESH.total_seconds()) == ()


@pytest.mark.parametrize(
    ("pod", "options"),
    [
        pytest.param({"schedulingGates": [{"name": "wait"}]}, PROACTIVE, id="gated"),
        pytest.param({"priority": -11}, PROACTIVE, id="expendable"),
        pytest.param({"schedulerName": "another"}, PROACTIVE, id="of a scheduler that has not looked at it"),
        pytest.param(
            {"schedulingGroup": {"podGroupName": "g"}},
            replace(PROACTIVE, growth=replace(PROACTIVE.growth, gangs=(GANGS,))),
            id="of a gang",
        ),
    ],
)
def test_pods_like_one_that_looks_for_no_node_by_itself(pod: Obj, options: AutoscalerOptions) -> None:
    assert expected(owner(), fleet_of(options, pods=1, **pod)) == ()


def test_pods_that_take_room_of_a_request() -> None:
    fleet = fleet_of(replace(PROACTIVE, provisioning_requests=True), pods=1)
    fleet.pods["p-0"]["metadata"]["annotations"] = {provisioning_names.CONSUME_REQUEST_ANNOTATION: "r"}
    assert expected(owner(), fleet) == ()


def test_a_pod_of_another_namespace_says_nothing() -> None:
    """Its author could write what others' pods are like, or that none are missing."""
    fleet = fleet_of(pods=9, cpu="3")
    for pod in fleet.pods.values():
        pod["metadata"]["namespace"] = "hostile"
    found = expected(owner(), fleet)
    assert len(found) == 10
    assert {dict(pod.kind.demand.requests)["cpu"] for pod in found} == {1000}


def test_an_unreadable_pod_is_there_all_the_same() -> None:
    fleet = fleet_of(pods=1)
    fleet.pods["p-0"]["spec"]["containers"] = [{"resources": {"requests": {"cpu": "much"}}}]
    assert len(expected(owner(), fleet)) == 9


def quota(hard: Obj, used: Obj) -> Obj:
    return {"metadata": {"namespace": "default", "name": "q"}, "spec": {}, "status": {"hard": hard, "used": used}}


@pytest.mark.parametrize(
    ("hard", "used", "number"),
    [({"pods": "6"}, {"pods": "2"}, 4), ({"requests.cpu": "3"}, {}, 3), ({"pods": "2"}, {"pods": "5"}, 0)],
)
def test_quotas_leave_room_for_fewer(hard: Obj, used: Obj, number: int) -> None:
    assert len(expected(owner(), resource_quotas=[quota(hard, used)])) == number


def test_two_owners_share_what_a_quota_leaves() -> None:
    second = owner(replicas=3)
    second["metadata"] = {**second["metadata"], "name": "web-2", "uid": "other"}
    reader = Reader()
    found = expected_pods(
        OwnerObjects(owners={REPLICA_SET: [owner(), second]}, resource_quotas=[quota({"pods": "5"}, {})]),
        (),
        reader=reader,
        now=START,
        options=PROACTIVE,
    )
    assert [pod.owner.name for pod in found if pod.owner] == ["web-2"] * 3 + ["web-1"] * 2


def test_one_owner_of_very_many_leaves_the_others_theirs() -> None:
    """The fewest first, and no more in all than the limit says."""
    options = replace(PROACTIVE, growth=replace(PROACTIVE.growth, most_expected=12))
    bodies = [owner(replicas=1_000_000), owner(replicas=10)]
    bodies[1]["metadata"] = {**bodies[1]["metadata"], "uid": "other"}
    objects = OwnerObjects(owners={REPLICA_SET: bodies})
    found = expected_pods(objects, (), reader=Reader(), now=START, options=options)
    assert [sum(pod.owner.uid == uid for pod in found if pod.owner) for uid in ("rs", "other")] == [2, 10]


def test_defaults_of_limit_ranges_count_where_no_pod_is_there() -> None:
    body = owner(pod={"containers": [{"name": "main"}]})
    limits = {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]}}
    found = expected(body, limit_ranges=[{"metadata": {"namespace": "default", "name": "l"}, **limits}])
    assert {dict(pod.kind.demand.requests)["cpu"] for pod in found} == {2000}


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 60), st.integers(0, 60), st.integers(0, 40))
def test_never_more_than_the_owner_lacks(wanted: int, there: int, age: int, pods_age: int, most: int) -> None:
    options = replace(PROACTIVE, growth=replace(PROACTIVE.growth, most_expected=most))
    fleet = fleet_of(options, pods=there)
    found = expected(owner(replicas=wanted, age=age), fleet, age=pods_age)
    assert len(found) <= min(most, max(0, wanted - there))
    if age + pods_age >= FRESH.total_seconds() and (not there or pods_age >= FRESH.total_seconds()):
        assert not found


def test_pods_that_nobody_has_looked_at_are_decided_on() -> None:
    assert added(fleet_of(pods=10), owner(status={"replicas": 10})) == 3
    assert added(fleet_of(pods=10, schedulerName="another"), owner(status={"replicas": 10})) == 0


def test_events_are_for_pods_that_are_there() -> None:
    fleet = fleet_of(pods=2)
    events = [
        action
        for step in fleet_decision(fleet, [owner()]).steps
        for action in step
        if isinstance(action, Event) and action.reason == "TriggeredScaleUp"
    ]
    assert {event.target.key.name for event in events} == {"p-0", "p-1"}


def test_a_node_that_expected_pods_fit_on_stays() -> None:
    fleet = fleet_of()
    for _ in range(3):
        fleet.join(fleet.machine("web"))
    fleet.deployments["web"]["spec"]["replicas"] = 3
    assert not fleet_decision(fleet, [owner()]).scale_down.unneeded
    assert len(fleet_decision(fleet, []).scale_down.unneeded) == 3


def seen(fleet: Fleet, *bodies: Obj, **growth: Any) -> Any:
    changed = {"batch_idle": timedelta(seconds=1), **growth}
    options = replace(PROACTIVE, growth=replace(PROACTIVE.growth, **changed))
    return observed_of(fleet, *((REPLICA_SET, body) for body in bodies), options=options)


def test_pods_of_an_owner_are_not_waited_for_one_by_one() -> None:
    """Three seconds after the owner its last pods come: they were known all the time."""
    fleet = fleet_of(pods=8)
    fleet.now = START + timedelta(seconds=2)
    for number in range(8):
        fleet.pods[f"p-{number}"]["metadata"]["creationTimestamp"] = format_time(START + timedelta(seconds=number % 3))
    body = owner(age=0)
    assert seen(fleet, body).arrivals == (START,)
    assert isinstance(plan(seen(fleet, body)).outcome, Wait)
    assert GATHERING not in plan(seen(fleet, body)).notes
    assert len(seen(fleet, owner(age=0, replicas=0)).arrivals) == 3


def test_an_owner_that_has_just_come_is_waited_for() -> None:
    """Others may come with it."""
    fleet = fleet_of()
    assert GATHERING in plan(seen(fleet, owner(age=0))).notes
    fleet.now += timedelta(seconds=2)
    assert GATHERING not in plan(seen(fleet, owner(age=0))).notes


def test_pods_that_an_old_owner_makes_now_come_with_the_first_of_them() -> None:
    times = [format_time(START + timedelta(seconds=number)) for number in range(5)]
    pods = [{"metadata": {"creationTimestamp": time, **_owned()}} for time in times]
    old = format_time(START - timedelta(days=1))
    assert arrivals_of(pods, owners={"rs": old}, all_count=True) == (START,)
    assert len(arrivals_of(pods, all_count=True)) == 5


def _owned() -> Obj:
    return {"ownerReferences": [{"kind": "ReplicaSet", "uid": "rs", "controller": True}]}


def test_what_wakes_it() -> None:
    reconciler = AutoscalerReconciler(PROACTIVE)
    assert {REPLICA_SET, JOB, STATEFUL_SET, RESOURCE_QUOTA, LIMIT_RANGE} <= set(reconciler.reads)
    wake = next(each for each in reconciler.wakes if each.kind == REPLICA_SET)
    view: Any = None
    assert list(wake.keys(owner(), view)) == [reconciler.key]
    assert not list(wake.keys(owner(status={"replicas": 10}), view))
    assert wake.ignores is not None
    assert wake.ignores(owner(), owner())
    assert wake.ignores(owner(), owner(replicas=5))
    assert not wake.ignores(owner(), owner(replicas=11))
    assert not [each for each in AutoscalerReconciler().wakes if each.kind == REPLICA_SET]


def test_what_an_owner_has_said() -> None:
    assert lacks_pods(REPLICA_SET, owner(status={"replicas": 9}))
    assert not lacks_pods(REPLICA_SET, owner(status={"replicas": 10}))
    assert lacks_pods(JOB, owner(JOB, status={"active": 3}))
    assert not lacks_pods(JOB, owner(JOB, status={"active": 10}))


def test_the_memory_says_what_nodes_of_expected_pods_are_for() -> None:
    fleet = fleet_of()
    planned = fleet_decision(fleet, [owner()]).memory.planned
    assert sum(each.count * sum(each.pods.values()) for each in planned) == 10
    fleet.text = write(fleet.decide().memory)
    fleet.deployments["web"]["spec"]["replicas"] = 3
    assert not fleet.decide().scale_up.added
