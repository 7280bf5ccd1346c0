"""What one group wants for itself: by annotations, in both families."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api import names
from api.autoscaling import node_group_options
from api.conditions import Reason
from controllers.autoscaler.options import AutoscalerOptions, ShrinkOptions
from controllers.autoscaler.status import problems_of
from tests.controllers.autoscaler.fleet import READY, Fleet
from tests.controllers.autoscaler.town import observed_of

OURS, CAPIS = names.AUTOSCALING_OPTIONS_PREFIX, names.CAPI_AUTOSCALING_OPTIONS_PREFIX
LONG = timedelta(minutes=11)


def desired(fleet: Fleet, group: str, option: str, value: str, family: str = CAPIS) -> None:
    fleet.deployments[group]["metadata"]["annotations"][f"{family}{option}"] = value


def fleet_of(*groups: str, **shrink: Any) -> Fleet:
    """Groups of one Node each, with four cores."""
    fleet = Fleet(AutoscalerOptions(shrink=ShrinkOptions(**shrink)))
    for name in groups:
        fleet.group(name)["spec"]["replicas"] = 1
        fleet.join(fleet.machine(name))
    return fleet


def unneeded(fleet: Fleet) -> set[str]:
    return {name.partition("-")[0] for name in fleet.decide().scale_down.unneeded}


def gone(fleet: Fleet, after: timedelta) -> set[str]:
    fleet.round()
    fleet.round(after=after)
    return {victim.group.rpartition("/")[2] for victim in fleet.decide().scale_down.victims}


@pytest.mark.parametrize("family", [OURS, CAPIS])
def test_a_group_has_a_threshold_of_its_own(family: str) -> None:
    fleet = fleet_of("own", "usual")
    for node in ("own-1", "usual-2"):
        fleet.pod(f"p-{node}", "1500m", node=node)
    desired(fleet, "own", "scaledownutilizationthreshold", "0.2", family)
    fleet.group("spare")["spec"]["replicas"] = 1
    fleet.join(fleet.machine("spare"))
    fleet.pod("keeps", "3", node="spare-3")
    decision = fleet.decide()
    assert "own-1" not in decision.scale_down.unneeded
    assert decision.scale_down.staying["own-1"].why == "38% of it is asked for, more than 20%"
    assert "usual-2" in decision.scale_down.unneeded


def test_ours_counts_before_the_other_family() -> None:
    found, faults = node_group_options({f"{CAPIS}scaledownunneededtime": "1m", f"{OURS}scaledownunneededtime": "2m"})
    assert (found.unneeded_time, faults) == (timedelta(minutes=2), ())


def test_a_group_has_an_unneeded_time_of_its_own() -> None:
    fleet = fleet_of("quick", "usual", "slow")
    desired(fleet, "quick", "scaledownunneededtime", "1m")
    desired(fleet, "slow", "scaledownunneededtime", "1h")
    assert gone(fleet, timedelta(minutes=2)) == {"quick"}
    fleet = fleet_of("quick", "usual", "slow")
    desired(fleet, "slow", "scaledownunneededtime", "1h")
    assert gone(fleet, LONG) == {"quick", "usual"}


def test_a_group_waits_for_its_machines_as_long_as_it_says() -> None:
    fleet = Fleet()
    for name in ("slow", "usual"):
        fleet.group(name)["spec"]["replicas"] = 1
        fleet.machine(name)
    desired(fleet, "slow", "maxnodeprovisiontime", "1h")
    fleet.now += timedelta(minutes=20)
    assert {victim.group for victim in fleet.decide().scale_down.victims} == {"MachineDeployment/ns/usual"}
    fleet.now += timedelta(minutes=41)
    assert {victim.group for victim in fleet.decide().scale_down.victims} == {
        "MachineDeployment/ns/slow",
        "MachineDeployment/ns/usual",
    }


def test_a_node_that_is_not_ready_yet_is_unready_by_its_group_s_time() -> None:
    fleet = fleet_of("slow")
    fleet.nodes["slow-1"]["status"]["conditions"] = [{**READY, "status": "False"}]
    fleet.now += timedelta(minutes=20)
    assert fleet.observed().health.unready == 1
    desired(fleet, "slow", "maxnodeprovisiontime", "1h")
    assert fleet.observed().health.unready == 0


def test_pods_of_daemon_sets_count_unless_the_group_says_otherwise() -> None:
    fleet = fleet_of("web", "other")
    agent = fleet.pod("agent", "3", node="web-1")
    agent["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    assert unneeded(fleet) == {"other"}
    desired(fleet, "web", "ignoredaemonsetsutilization", "true")
    assert unneeded(fleet) == {"web", "other"}
    fleet.pod("app", "900m", node="web-1")
    assert fleet.decide().scale_down.staying["web-1"].why == "90% of it is asked for, more than 50%"


def test_of_nodes_with_gpus_only_those_count() -> None:
    fleet = fleet_of("gpu", "other")
    fleet.nodes["gpu-1"]["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    fleet.pod("busy", "3", node="gpu-1")
    fleet.pod("room", "100m", node="other-2")
    assert "gpu-1" not in fleet.decide().scale_down.staying or "asked for" not in (
        fleet.decide().scale_down.staying["gpu-1"].why
    )
    requests = {"cpu": "1", "nvidia.com/gpu": "1"}
    fleet.pod("train", node="gpu-1", containers=[{"name": "c", "resources": {"requests": requests}}])
    desired(fleet, "gpu", "scaledowngpuutilizationthreshold", "0.1")
    assert fleet.decide().scale_down.staying["gpu-1"].why == "25% of its nvidia.com/gpu is asked for, more than 10%"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("scaledownutilizationthreshold", "half", "'half' is not a share between 0 and 1"),
        ("scaledowngpuutilizationthreshold", "2", "'2' is not a share between 0 and 1"),
        ("scaledownunneededtime", "soon", "'soon' is not a duration like 90s, 10m or 1h30m"),
        ("maxnodeprovisiontime", "-1m", "'-1m' is not a duration like 90s, 10m or 1h30m"),
        ("ignoredaemonsetsutilization", "yes", "'yes' is not true or false"),
        ("zeroormaxnodescaling", "maybe", "'maybe' is not true or false"),
    ],
)
def test_a_faulty_option_is_named_and_the_other_groups_go_on(option: str, value: str, said: str) -> None:
    fleet = fleet_of("bad", "good")
    desired(fleet, "bad", option, value, OURS)
    observed = observed_of(fleet)
    ref = next(ref for ref in observed.records.refs.values() if ref.key.name == "bad")
    problems = problems_of(observed, fleet.decide())
    assert problems == {ref: (Reason.INVALID_CONFIGURATION, f"metadata.annotations[{OURS}{option}]: {said}")}
    assert gone(fleet, LONG) == {"good"}


def test_an_option_that_nobody_knows_hurts_nobody() -> None:
    fleet = fleet_of("web")
    desired(fleet, "web", "somethingnew", "whatever")
    assert not fleet.observed().bad
