"""CapacityQuotas: no Node is added that one of them forbids, and each says how much of it is used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.autoscaler.plan import plan
from controllers.autoscaler.quotas import QuotaHeadroom, capacity_of, read_quotas, spelled
from controllers.kernel.actions import Patch
from controllers.kernel.refs import CAPACITY_QUOTA
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import observed_of

A, B = "MachineDeployment/ns/a", "MachineDeployment/ns/b"


def quota(name: str, selector: Any = None, **limits: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": f"cq-{name}", "resourceVersion": "1", "generation": 3}
    spec = {"limits": {"resources": limits}, **({"selector": selector} if selector is not None else {})}
    return {"metadata": meta, "spec": spec}


def fleet_with(*quotas: dict[str, Any], pods: int = 8) -> Fleet:
    """Two groups of Nodes with 4 cores; each pod fills one."""
    fleet = Fleet(AutoscalerOptions(GrowthOptions(quotas=True)))
    fleet.group("a")
    fleet.quotas = list(quotas)
    for number in range(pods):
        fleet.pod(f"p-{number}", "4")
    return fleet


@pytest.mark.parametrize(
    ("limits", "nodes"),
    [
        ({"cpu": 12}, 3),
        ({"cpu": "12"}, 3),
        ({"cpu": 15}, 3),
        ({"memory": "16Gi"}, 2),
        ({"nodes": 1}, 1),
        ({"nodes": 5, "cpu": 8}, 2),
        ({"cpu": 0}, 0),
        ({"nvidia.com/gpu": 0}, 8),
        ({"cpu": 1000}, 8),
    ],
    ids=str,
)
def test_a_group_grows_as_far_as_the_quota_lets_it(limits: dict[str, Any], nodes: int) -> None:
    fleet = fleet_with(quota("whole", **limits))
    for _ in range(3):
        fleet.round()
        fleet.settle()
    assert len(fleet.nodes) == nodes


def test_nodes_on_their_way_count() -> None:
    """They are asked for once, though none has joined at the next looks."""
    fleet = fleet_with(quota("whole", cpu=12))
    assert fleet.round().scale_up.added == {A: 3}
    assert not fleet.round().scale_up.added


def test_a_node_to_come_counts_with_its_capacity_and_not_with_what_it_leaves_to_pods() -> None:
    """Of 13 cores one Node has 5, of which pods get 4: (13 - 5) // 5 = 1 more."""
    fleet = fleet_with(quota("whole", cpu=13), pods=0)
    fleet.deployments["a"]["spec"]["replicas"] = 1
    fleet.settle()
    (node,) = fleet.nodes.values()
    node["status"]["capacity"] = {"cpu": "5"}
    fleet.come(5, "4")
    fleet.schedule()
    assert fleet.decide().scale_up.added == {A: 1}


def test_only_quotas_that_match_the_labels_of_the_nodes_to_come_count() -> None:
    fleet = fleet_with(quota("blue", {"matchLabels": {"pool": "blue"}}, nodes=1), pods=6)
    fleet.deployments["a"]["spec"]["template"]["spec"] = {"metadata": {"labels": {"pool": "blue"}}}
    fleet.group("b", most=3)
    fleet.round()
    assert (fleet.size("a"), fleet.size("b")) == (1, 3)


def test_why_a_group_does_not_grow_names_the_quota() -> None:
    decision = fleet_with(quota("budget", cpu=4), pods=2).decide()
    assert decision.scale_up.skipped == {A: "CapacityQuota budget limits cpu to 4"}


def test_a_quota_that_is_lowered_takes_no_node_away() -> None:
    fleet = fleet_with(quota("whole", cpu=12), pods=3)
    fleet.round()
    fleet.settle()
    fleet.quotas = [quota("whole", cpu=1)]
    fleet.pod("more", "4")
    for _ in range(3):
        fleet.round()
        fleet.settle()
    assert len(fleet.nodes) == 3


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (quota("q", cpu="many"), "spec.limits.resources[cpu]"),
        (quota("q", cpu="500m"), "spec.limits.resources[cpu]: must be a whole number"),
        (quota("q", cpu=-1), "spec.limits.resources[cpu]"),
        (quota("q", {"matchExpressions": [{"key": "a", "operator": "Near"}]}, cpu=1), "spec.selector"),
        (quota("q", **{f"r{n}": 1 for n in range(21)}), "spec.limits.resources: at most 20"),
        ({"metadata": quota("q")["metadata"], "spec": {"limits": {"resources": [1]}}}, "spec.limits.resources"),
    ],
    ids=["text", "milli", "negative", "selector", "many", "list"],
)
def test_one_that_can_t_be_read_limits_nothing_and_says_why(broken: dict[str, Any], named: str) -> None:
    fleet = fleet_with(pods=2)
    (patch,) = _patches(fleet, broken)
    (condition,) = patch["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Reconciled",
        "False",
        "ReconciliationFailed",
    )
    assert named in condition["message"]
    fleet.quotas = [broken]
    assert fleet.decide().scale_up.added == {A: 2}


def test_its_status_says_what_is_used_and_is_written_once() -> None:
    fleet = fleet_with(pods=0)
    fleet.deployments["a"]["spec"]["replicas"] = 2
    fleet.settle()
    body = quota("whole", cpu=100, memory="1Ti", nodes=9)
    body["status"] = {"used": {"resources": {"gone": "1"}}}
    (patch,) = _patches(fleet, body)
    assert patch["used"]["resources"] == {"cpu": "8", "memory": str(16 * 1024**3), "nodes": "2", "gone": None}
    assert patch["observedGeneration"] == 3
    used = {key: value for key, value in patch["used"]["resources"].items() if value}
    assert not _patches(fleet, {**body, "status": {**patch, "used": {"resources": used}}})


def _patches(fleet: Fleet, body: dict[str, Any]) -> list[dict[str, Any]]:
    found = plan(observed_of(fleet, (CAPACITY_QUOTA, body)))
    patches = [each for each in found.actions() if isinstance(each, Patch) and each.target.kind == CAPACITY_QUOTA]
    assert all(each.subresource == "status" for each in patches)
    return [dict(each.patch["status"]) for each in patches]


def test_capacity_that_can_t_be_read_counts_as_none() -> None:
    assert capacity_of({"status": {"capacity": {"cpu": "much"}}}) == ()
    assert capacity_of({"status": None}) == ()


@pytest.mark.parametrize(("amount", "text"), [(12_000, "12"), (500, "500m"), (0, "0")])
def test_cores_are_spelled_as_quantities(amount: int, text: str) -> None:
    assert spelled("cpu", amount) == text


@given(
    st.lists(st.tuples(st.sampled_from(["cpu", "memory", "nodes"]), st.integers(0, 40)), min_size=1, max_size=4),
    st.lists(st.integers(1, 5), max_size=6),
)
def test_taking_what_is_allowed_exceeds_no_quota(limits: list[tuple[str, int]], sizes: list[int]) -> None:
    quotas = read_quotas([quota(f"q{n}", **{name: most}) for n, (name, most) in enumerate(limits)], ())
    headroom, taken = QuotaHeadroom(quotas), {"cpu": 0, "memory": 0, "nodes": 0}
    for size in sizes:
        capacity = (("cpu", size * 1000), ("memory", size))
        count = min(number for number, _ in headroom.nodes({}, capacity))
        headroom.take({}, capacity, count=count)
        taken = {name: taken[name] + count * each for name, each in (("cpu", size), ("memory", size), ("nodes", 1))}
        assert all(taken[name] <= most for name, most in limits)
        assert min(number for number, _ in headroom.nodes({}, capacity)) == 0
