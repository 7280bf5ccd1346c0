"""A second look before Nodes have joined asks for no more of them: it knows what each was added for."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler import memory
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.expanders import Choosing
from controllers.autoscaler.memory import Memory, PlannedNodes, by_group, on_their_way, read, remembered, write
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from hack.bench.mixed import looked_at_again
from hack.race.workloads import HOSTNAME, Workload, wide
from tests.controllers.autoscaler.fleet import ZONE, Fleet
from tests.examples import usually

SIZES = ("1", "2", "4", "8")


def fleet(**growth: Any) -> Fleet:
    """Groups of four sizes; Nodes of all sizes cost the same for what they offer."""
    found = Fleet(AutoscalerOptions(GrowthOptions(**growth)))
    for cores in SIZES:
        found.group(f"of-{cores}", most=100, cpu=cores)
    return found


def added(decision: Decision) -> int:
    return sum(decision.scale_up.added.values())


requests = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from(["0.3", "0.5", "0.7", "1", "1.6", "3", "5"])), max_size=5
)


@usually(60)
@given(requests.filter(bool), st.sampled_from(["least-waste", "most-pods", "random"]), st.booleans())
def test_a_second_look_adds_nothing(pods: list[tuple[int, str]], expander: str, balance: bool) -> None:
    here = fleet(choosing=Choosing((expander,)), balance=balance)
    for count, cpu in pods:
        here.come(count, cpu)
    first = here.round(after=timedelta(minutes=1))
    assert added(first)
    assert not added(here.round())
    assert here.decide().memory.planned == first.memory.planned


workloads = st.lists(
    st.builds(
        lambda replicas, cpu, memory, spread, apart: (replicas, f"{cpu}m", f"{memory}Mi", spread, apart),
        st.integers(1, 40),
        st.sampled_from([50, 100, 250, 500, 900, 1500, 3000, 6000]),
        st.sampled_from([64, 256, 1024, 3000, 8000, 20_000]),
        st.sampled_from([(), (HOSTNAME,)]),
        st.booleans(),
    ),
    min_size=8,
    max_size=25,
)


@usually(15)
@given(workloads, st.sampled_from(["price", "least-waste"]))
def test_a_second_look_at_pods_of_two_resources_adds_nothing(
    shapes: list[tuple[int, str, str, tuple[str, ...], bool]], expander: str
) -> None:
    """Groups of 15 types in four zones. Packed anew, some of the pods seem to have no room in most of these."""
    made = [
        Workload(f"w-{number}", replicas, cpu, memory_, spread, apart=apart)
        for number, (replicas, cpu, memory_, spread, apart) in enumerate(shapes)
    ]
    assert not added(looked_at_again(made, [expander]))


def test_a_thousand_different_pods_get_no_more_nodes_at_the_second_look() -> None:
    """Before, 34 Nodes were added to 166."""
    assert not added(looked_at_again(wide()))


def test_without_the_memory_more_seem_to_be_missing() -> None:
    """What the memory is for: packed anew, in another order, some pods have no room."""
    assert added(looked_at_again(wide(), forgetful=True))


@usually(30)
@given(requests.filter(bool), st.integers(0, 5))
def test_what_comes_meanwhile_is_all_that_more_nodes_are_for(pods: list[tuple[int, str]], more: int) -> None:
    """Pods of 8 cores come: they fit no Node that is for others, too."""
    here = fleet(choosing=Choosing(("least-waste",)))
    for count, cpu in pods:
        here.come(count, cpu)
    here.round()
    for number in range(more):
        here.pod(f"new-{number}", "8")
    assert added(here.decide()) == more


def test_the_first_node_has_joined_and_has_its_pods() -> None:
    here = Fleet()
    here.group("of-8", cpu="8")
    for number in range(4):
        here.pod(f"large-{number}", "5")
        here.pod(f"small-{number}", "3")
    assert added(here.round()) == 4
    node = here.join(here.machine("of-8"))["metadata"]["name"]
    for name in ("large-0", "small-0"):
        here.pods[name]["spec"]["nodeName"] = node
    decision = here.decide()
    assert not added(decision)
    assert decision.memory.planned


def test_what_was_never_asked_for_is_forgotten() -> None:
    """The process died between the memory and the sizes."""
    here = fleet()
    here.come(9, "3")
    first = here.round(steps=0)
    assert first.memory.planned
    again = here.decide()
    assert added(again) == added(first)
    assert again.memory.planned == first.memory.planned


def test_nothing_is_remembered_of_nodes_that_are_there() -> None:
    here = fleet()
    here.come(9, "3")
    assert here.round().memory.planned
    here.settle()
    assert not here.decide().memory.planned


def test_a_group_that_never_comes_to_rest_is_not_remembered_for_ever() -> None:
    """Pods keep coming, and there is always a Node on its way."""
    here = Fleet()
    here.group("web", most=100)
    here.come(1, "3")
    here.round()
    for _ in range(20):
        here.come(1, "3")
        assert added(here.round()) == 1
        planned = read(here.text).planned
        assert sum(each.count for each in planned) == 2, planned
        node = here.join(here.machine("web"))["metadata"]["name"]
        next(pod for pod in here.pods.values() if not pod["spec"].get("nodeName"))["spec"]["nodeName"] = node


def test_a_plan_for_other_pods_is_a_hint_alone() -> None:
    """The pods for which the Node was are gone, and one has come that it can't take."""
    here = fleet()
    here.come(1, "3")
    here.round()
    here.pods.clear()
    here.pod("large", "8")
    assert here.decide().scale_up.added == {"MachineDeployment/ns/of-8": 1}


def test_a_pod_that_may_no_longer_run_there_gets_another_node() -> None:
    """One pod in a zone, and two Nodes were planned. One zone has no stock, the other one has its pod."""
    here = Fleet()
    for zone in "abc":
        here.group(zone)["spec"]["template"]["spec"]["failureDomain"] = zone
        annotations = here.deployments[zone]["metadata"]["annotations"]
        annotations[names.CAPACITY_LABELS_ANNOTATION] = f"{ZONE}={zone}"
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "apart"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(2):
        pod = here.pod(f"p-{number}", "3", affinity=affinity)
        pod["metadata"]["labels"] = {"app": "apart"}
    first = here.round()
    assert added(first) == 2
    used, empty = sorted(first.scale_up.added)
    assert not added(here.decide())
    other = next(zone for zone in "abc" if f"MachineDeployment/ns/{zone}" not in first.scale_up.added)
    short = {"type": "Ready", "status": "False", "reason": "StockOut", "message": "none left"}
    here.machine(empty.rpartition("/")[2], short)
    there = here.join(here.machine(used.rpartition("/")[2]))["metadata"]["name"]
    here.deployments[used.rpartition("/")[2]]["spec"]["replicas"] = 2
    here.pods["p-0"]["spec"]["nodeName"] = there
    assert here.decide().scale_up.added == {f"MachineDeployment/ns/{other}": 1}


def test_of_nodes_that_were_planned_the_last_ones_are_on_their_way() -> None:
    planned = by_group([PlannedNodes("a", 3, {"x": 1}), PlannedNodes("b", 1, {"y": 1}), PlannedNodes("a", 2, {"z": 1})])
    assert on_their_way(planned["a"], "a", 4) == [PlannedNodes("a", 2, {"x": 1}), PlannedNodes("a", 2, {"z": 1})]
    assert on_their_way(planned["a"], "a", 1) == [PlannedNodes("a", 1, {"z": 1})]
    assert on_their_way(planned["b"], "b", 3) == [PlannedNodes("b", 1, {"y": 1}), PlannedNodes("b", 2, {})]
    assert on_their_way(planned["b"], "b", 0) == []


def test_too_many_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_PLANNED", 5)
    each = PlannedNodes("a", 1, {"x": 1})
    assert remembered([each], {"a": 1}, [each, each]) == (each, each)
    assert remembered([each], {}, [each]) == (each,)


def test_long_uids_of_owners_make_no_long_memory() -> None:
    """A user writes owner references, and a ConfigMap takes a mebibyte."""
    here = fleet()
    for number in range(20):
        owner = {"kind": "ReplicaSet", "name": "x", "uid": f"{number}" * 100_000, "controller": True}
        here.pod(f"p-{number}", "1")["metadata"]["ownerReferences"] = [owner]
    here.round()
    assert len(here.text) < 2000


def test_pods_of_another_namespace_have_other_keys() -> None:
    """Else whoever names another one's ReplicaSet as an owner would be given the Nodes of its pods."""
    here = fleet()
    here.pod("theirs", "3")
    here.pod("ours", "3")["metadata"]["namespace"] = "other"
    here.round()
    assert len({name for each in read(here.text).planned for name in each.pods}) == 2


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        "text",
        {"groups": ["a"], "keys": ["k"]},
        {"groups": ["a"], "keys": ["k"], "nodes": [[1, 1, []]]},
        {"groups": ["a"], "keys": ["k"], "nodes": [[0, 1, [[1, 1]]]]},
        {"groups": ["a"], "keys": ["k"], "nodes": [[0, "many", []]]},
        {"groups": ["a"], "keys": ["k"], "nodes": [[0, 1]]},
        {"groups": ["a"], "keys": ["k"], "nodes": [[0, -1, []]]},
        {"groups": ["a"], "keys": ["k"], "nodes": [[0, 1, [[0, 0]]]]},
        {"groups": 1, "keys": ["k"], "nodes": []},
    ],
)
def test_what_can_not_be_read_is_forgotten(found: Any) -> None:
    assert read(json.dumps({"planned": found})) == Memory()


def test_numbers_beyond_all_measure_are_a_hint_for_as_many_as_there_are() -> None:
    """The ConfigMap is somebody's to edit."""
    here = fleet()
    here.come(9, "3")
    first = here.round()
    planned = tuple(PlannedNodes(each.group, 10**30, dict.fromkeys(each.pods, 10**30)) for each in first.memory.planned)
    here.text = write(Memory(planned=planned))
    assert not added(here.decide())


def test_the_memory_is_kept_as_text() -> None:
    planned = (PlannedNodes("a", 2, {"x": 3, "y": 1}), PlannedNodes("b", 1, {}))
    found = Memory(planned=planned)
    assert read(write(found)) == found
    assert "planned" not in json.loads(write(Memory()))
