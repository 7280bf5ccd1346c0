"""The status has the Cluster Autoscaler's shape and is written when it says something new; the figures are right."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import yaml

from api import names
from controllers.autoscaler import status
from controllers.autoscaler.metrics import METRICS, read_decisions, read_options
from controllers.autoscaler.plan import plan
from controllers.kernel.actions import Create, Event, Patch
from controllers.kernel.refs import CONFIG_MAP
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import config_map, observed_of


def data(fleet: Fleet, before: dict[str, str] | None = None) -> dict[str, str]:
    """What is written to the status ConfigMap that holds ``before``; {} if nothing is."""
    known = ((CONFIG_MAP, config_map(names.AUTOSCALER_STATUS, **before)),) if before else ()
    for action in plan(observed_of(fleet, *known)).actions():
        if isinstance(action, Create) and action.body["metadata"]["name"] == names.AUTOSCALER_STATUS:
            return dict(action.body["data"])
        if isinstance(action, Patch) and action.target.key.name == names.AUTOSCALER_STATUS:
            return dict(action.patch["data"])
    return {}


def written(fleet: Fleet, before: str = "") -> str:
    return data(fleet, {"status": before} if before else None)["status"]


def samples(fleet: Fleet) -> dict[tuple[str, ...], float]:
    found = plan(observed_of(fleet)).samples
    return {(each.metric.name.removeprefix("cluster_autoscaler_"), *each.labels): each.value for each in found}


def busy() -> Fleet:
    fleet = Fleet()
    fleet.group("web", 1, 5)["spec"]["replicas"] = 2
    fleet.settle()
    fleet.group("full", 0, 3)["spec"]["replicas"] = 1
    fleet.machine("full", {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"})
    return fleet


def test_the_status_is_told_in_the_cluster_autoscaler_s_shape() -> None:
    told: dict[str, Any] = yaml.safe_load(written(busy()))
    assert told["autoscalerStatus"] == "Running"
    whole = told["clusterWide"]
    assert whole["health"]["status"] == "Healthy"
    counts = whole["health"]["nodeCounts"]
    assert counts["registered"] == {
        "total": 2,
        "ready": 2,
        "notStarted": 0,
        "beingDeleted": 0,
        "unready": {"total": 0, "resourceUnready": 0},
    }
    assert counts["longUnregistered"] == 1
    assert whole["scaleDown"]["status"] == "CandidatesPresent"
    full, web = told["nodeGroups"]
    assert [full["name"], web["name"]] == ["MachineDeployment/ns/full", "MachineDeployment/ns/web"]
    assert full["scaleUp"]["status"] == "Backoff"
    assert full["scaleUp"]["backoffInfo"] == {"errorCode": "StockOut", "errorMessage": "StockOut: none left"}
    assert (web["health"]["cloudProviderTarget"], web["health"]["minSize"], web["health"]["maxSize"]) == (2, 1, 5)
    assert {"lastProbeTime", "lastTransitionTime"} <= web["scaleDown"].keys()


def test_it_is_written_again_only_when_it_says_something_new() -> None:
    fleet = busy()
    before = data(fleet)
    fleet.now += timedelta(seconds=10)
    assert data(fleet, before) == {}, "only times would differ"
    fleet.settle()
    fleet.now += timedelta(hours=1)
    after = data(fleet, before)
    first, later = (yaml.safe_load(each["status"])["nodeGroups"][1]["health"] for each in (before, after))
    assert later["lastProbeTime"] > first["lastProbeTime"]
    assert later["lastTransitionTime"] == first["lastTransitionTime"], "it is as healthy as it was"


def test_options_and_decisions_are_told_beside_the_status() -> None:
    fleet = busy()
    told = data(fleet)
    assert read_options(told["options"]) == fleet.options
    assert "StockOut" in read_decisions(told["decisions"])[-1].text
    changed = {**told, "options": "{}"}
    again = data(fleet, changed)
    assert again["options"] == told["options"]
    assert again["status"] == told["status"], "its times are those of its last change"
    assert again["decisions"] == told["decisions"]


def test_a_new_decision_stands_after_those_before_it() -> None:
    fleet = busy()
    before = data(fleet)
    fleet.now += timedelta(minutes=1)
    for name in "pqr":
        fleet.pod(name, cpu="4")
    made = read_decisions(data(fleet, before)["decisions"])
    assert "MachineDeployment/ns/web: 1 Node more" in made[-1].text
    assert [each.at for each in made] == sorted(each.at for each in made)


def test_a_status_that_somebody_else_wrote_is_replaced() -> None:
    for text in ("{", "[1]", "clusterWide: 3\nnodeGroups: [1, {name: web}]"):
        assert yaml.safe_load(written(busy(), text))["autoscalerStatus"] == "Running"


def test_texts_are_compared_but_for_their_times() -> None:
    fleet = busy()
    text = written(fleet)
    assert status.says_the_same(text, text.replace("2026-06-01", "2027-06-01"))
    assert not status.says_the_same(text, text.replace("Healthy", "Unhealthy"))


def test_figures_have_upstream_s_names_and_say_what_is() -> None:
    fleet = busy()
    found = samples(fleet)
    assert found["cluster_safe_to_autoscale",] == 1
    assert found["nodes_count", "ready"] == 2
    assert found["node_groups_count", "autoscaled"] == 2
    assert found["cluster_cpu_current_cores",] == 8
    assert found["node_group_target_count", "MachineDeployment/ns/web"] == 2
    assert found["node_group_backoff_status", "MachineDeployment/ns/full"] == 1
    assert found["failed_scale_ups_total", "StockOut"] == 1
    assert found["unremovable_nodes_count", "NotUnneededLongEnough"] == 2
    fleet.pod("p", cpu="4")
    fleet.pod("q", cpu="4")
    fleet.pod("r", cpu="4")
    assert samples(fleet)["scaled_up_nodes_total",] == 1
    assert all(each.name.startswith("cluster_autoscaler_") and each.meaning.endswith(".") for each in METRICS)


def test_a_group_in_trouble_is_told_once() -> None:
    fleet = busy()
    actions = list(plan(observed_of(fleet)).actions())
    (patch,) = [a for a in actions if isinstance(a, Patch) and a.subresource == "status"]
    assert "FailedToScaleUpGroup" in {a.reason for a in actions if isinstance(a, Event)}
    fleet.deployments["full"]["status"] = patch.patch["status"]
    again = list(plan(observed_of(fleet)).actions())
    assert not [a for a in again if isinstance(a, Patch) and a.subresource == "status"]
    assert "FailedToScaleUpGroup" not in {a.reason for a in again if isinstance(a, Event)}
