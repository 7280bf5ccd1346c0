"""Why nothing happens, of pods, groups and Nodes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api import names
from controllers.autoscaler.explaining import Answer, explain_group, explain_node, explain_pod
from controllers.autoscaler.memory import Memory, write
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import CONFIG_MAP, LEASE, MACHINE_DEPLOYMENT, ref_of
from tests.controllers.autoscaler.fleet import Fleet
from tests.controllers.autoscaler.town import NAMESPACE, config_map, observed_of


def told(said: Answer) -> str:
    return "\n".join([said.text, *(told(below) for below in said.below)])


@pytest.fixture
def fleet() -> Fleet:
    fleet = Fleet()
    fleet.group("web", 0, 3)
    return fleet


def of_pod(fleet: Fleet, name: str) -> str:
    return told(explain_pod(observed_of(fleet), fleet.pods[name]))


def of_group(fleet: Fleet, name: str) -> str:
    return told(explain_group(observed_of(fleet), ref_of(MACHINE_DEPLOYMENT, fleet.deployments[name])))


def test_a_pod_that_new_nodes_will_take(fleet: Fleet) -> None:
    fleet.pod("p")
    assert of_pod(fleet, "p").endswith("1 new Node of MachineDeployment/ns/web will take it")


def test_a_pod_for_which_every_group_says_no(fleet: Fleet) -> None:
    fleet.group("small", 0, 3, cpu="1")
    fleet.group("full", 0, 0)
    fleet.pod("huge", cpu="64")
    found = of_pod(fleet, "huge")
    assert "stays pending: no group helps" in found
    assert "MachineDeployment/ns/web: Insufficient cpu" in found
    assert "MachineDeployment/ns/small: Insufficient cpu" in found
    assert "MachineDeployment/ns/full" not in found, "a maximum of 0: no group"


def test_what_is_short_is_told_in_numbers_with_what_would_change_the_answer(fleet: Fleet) -> None:
    fleet.group("small", 0, 3, cpu="1")
    fleet.pod("huge", cpu="4500m")
    found = of_pod(fleet, "huge").splitlines()
    assert "needs 4.5 cpu, an empty Node of it leaves 4" in found
    assert "needs 4.5 cpu, an empty Node of it leaves 1" in found
    assert found[-3:] == [
        "what would change that",
        "the pod asks for at most 4 cpu: so much leaves MachineDeployment/ns/web, the best one",
        "a group whose empty Nodes leave 4.5 cpu",
    ]


def test_a_group_at_its_maximum_would_need_a_higher_one(fleet: Fleet) -> None:
    fleet.deployments["web"]["spec"]["replicas"] = 3
    fleet.settle()
    for number, node in enumerate(sorted(fleet.nodes)):
        fleet.pod(f"full-{number}", "4", node)
    fleet.pod("p")
    found = of_pod(fleet, "p")
    assert "it has its maximum of 3 Nodes" in found
    assert found.endswith("what would change that\na higher maximum of MachineDeployment/ns/web")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"spec": {"nodeName": "n-1"}}, "has a Node: n-1"),
        ({"status": {"phase": "Succeeded"}}, "is finished: Succeeded"),
        ({"status": {"conditions": []}}, "kube-scheduler has not called it Unschedulable"),
        ({"spec": {"priority": -11}}, "its priority is -11; pods below -10 get no Node"),
        ({"spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}}, "can't be read: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pod_for_which_no_node_is_added_at_all(
    fleet: Fleet, change: dict[str, dict[str, object]], expected: str
) -> None:
    pod = fleet.pod("p")
    for part, fields in change.items():
        pod[part] |= fields
    assert expected in of_pod(fleet, "p")


def test_a_pod_for_which_others_are_evicted_is_about_to_get_their_node(fleet: Fleet) -> None:
    fleet.pod("p")["status"]["nominatedNodeName"] = fleet.join(fleet.machine("web"))["metadata"]["name"]
    assert f"is about to get Node {next(iter(fleet.nodes))}" in of_pod(fleet, "p")


def test_a_pod_that_was_to_get_a_node_that_is_gone_gets_a_new_one(fleet: Fleet) -> None:
    fleet.pod("p")["status"]["nominatedNodeName"] = "gone"
    assert "1 new Node of MachineDeployment/ns/web will take it" in of_pod(fleet, "p")


def test_a_group_says_its_size_and_why_it_stays_so(fleet: Fleet) -> None:
    found = of_group(fleet, "web")
    assert "asks for 0 Nodes, between 0 and 3" in found
    assert "a new Node would offer 4 cores and 8.0 GiB" in found
    assert "does not grow: no pod waits for a Node" in found


def test_a_group_that_rests_says_until_when(fleet: Fleet) -> None:
    fleet.pod("p")
    fleet.deployments["web"]["spec"]["replicas"] = 1
    stock = {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"}
    fleet.machine("web", stock)
    found = of_group(fleet, "web")
    assert f"does not grow: until {format_time(fleet.now + timedelta(minutes=5))}: StockOut: none left" in found
    assert "is not waited for: StockOut: none left" in found


def test_a_bad_annotation_is_named(fleet: Fleet) -> None:
    fleet.deployments["web"]["metadata"]["annotations"][names.AUTOSCALER_MIN_ANNOTATION] = "few"
    assert f"is no group: metadata.annotations[{names.AUTOSCALER_MIN_ANNOTATION}]: 'few'" in of_group(fleet, "web")


def test_a_paused_group_is_left_alone(fleet: Fleet) -> None:
    fleet.deployments["web"]["metadata"]["annotations"][names.CAPI_PAUSED_ANNOTATION] = ""
    assert "is left alone: MachineDeployment ns/web has the annotation" in of_group(fleet, "web")


def test_a_node_says_since_when_nobody_needs_it_and_what_it_waits_for(fleet: Fleet) -> None:
    fleet.deployments["web"]["spec"]["replicas"] = 1
    fleet.settle()
    (name,) = fleet.nodes
    memory = config_map(names.AUTOSCALER_MEMORY, memory=write(Memory({name: fleet.now - timedelta(minutes=4)})))
    found = told(explain_node(observed_of(fleet, (CONFIG_MAP, memory)), name))
    assert f"is Machine ns/{name} of MachineDeployment/ns/web" in found
    assert f"nobody needs it since {format_time(fleet.now - timedelta(minutes=4))}" in found
    assert "stays: NotUnneededLongEnough" in found
    assert "stays: it is no Node of a group" in told(explain_node(observed_of(fleet), "other"))


def test_beside_another_autoscaler_that_is_all_there_is_to_say(fleet: Fleet) -> None:
    fleet.pod("p")
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": format_time(fleet.now)}
    lease = {"metadata": {"namespace": NAMESPACE, "name": names.AUTOSCALER_LEASE, "uid": "l"}, "spec": spec}
    found = told(explain_pod(observed_of(fleet, (LEASE, lease)), fleet.pods["p"]))
    assert "nothing is decided: the Cluster Autoscaler is at work: other holds the Lease" in found
