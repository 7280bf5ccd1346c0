"""With --scheduler-scoring-strategy=LeastAllocated pods find room wherever kube-scheduler puts them. Where Nodes don't
help against that, none is added for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from controllers.autoscaler.decision import Decision
from controllers.autoscaler.explaining import explain_group
from controllers.autoscaler.observe import Observed
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.kernel.actions import Event, Scale
from controllers.kernel.refs import MACHINE_DEPLOYMENT, ref_of
from hack.bench.mixed import ZONES, decided, types
from hack.race.workloads import Workload, wide
from tests.controllers.autoscaler.fleet import GANGS, Fleet

AMPLE = AutoscalerOptions(GrowthOptions(least_allocated=True))
WEB = "MachineDeployment/ns/web"


def fleet_of(large: int, small: int, *, most: int = 10, options: AutoscalerOptions = AMPLE) -> Fleet:
    """Pods of 8 cores, and pods that take the others of a Node of 8: 2 of 4 cores, or 4 of 2."""
    fleet = Fleet(options)
    fleet.group("web", most=most, cpu="8")
    for number in range(large):
        fleet.pod(f"large-{number}", "8")
    for number in range(small):
        fleet.pod(f"small-{number}", str(8 // small))
    return fleet


def test_a_node_more_for_a_pod_that_would_lose_its_room() -> None:
    fleet = fleet_of(1, 2)
    decision = fleet.decide()
    assert decision.scale_up.added == {WEB: 3}
    assert decision.scale_up.ample.added == {WEB: 1}
    assert not decision.scale_up.left
    assert fleet_of(1, 2, options=AutoscalerOptions()).decide().scale_up.added == {WEB: 2}


def test_it_says_so() -> None:
    actions = [each for step in fleet_of(1, 2).decide().steps for each in step]
    why = "1 of them since kube-scheduler prefers the least allocated Nodes"
    (resize,) = [each for each in actions if isinstance(each, Scale)]
    assert resize.why == f"3 Nodes more for pods that find no place, {why}"
    (event,) = [each for each in actions if isinstance(each, Event) and each.reason == "ScaledUpGroup"]
    assert event.why == f"{WEB} goes from 0 to 3 (maximum 10), {why}"
    fleet = fleet_of(1, 2)
    answer = explain_group(Observed(cluster=fleet.observed()), ref_of(MACHINE_DEPLOYMENT, fleet.deployments["web"]))
    assert [why] in [[each.text for each in part.below] for part in answer.below]


def test_each_pod_is_helped_once() -> None:
    helped = [pod.name for each in fleet_of(1, 2).decide().scale_up.helped for pod in each.pods]
    assert sorted(helped) == ["large-0", "small-0", "small-1"]


def test_nodes_over_which_small_pods_go_on_spreading_help_nobody() -> None:
    """With three or four Nodes the four small ones take room on each: it would take five."""
    decision = fleet_of(1, 4).decide()
    assert decision.scale_up.added == {WEB: 2}
    assert not decision.scale_up.ample.added


def test_what_a_limit_is_against_is_left_as_it_is() -> None:
    decision = fleet_of(1, 2, most=2).decide()
    assert decision.scale_up.added == {WEB: 2}
    assert not decision.scale_up.left


def test_pods_without_hope_change_nothing() -> None:
    fleet = fleet_of(1, 2)
    fleet.pod("huge", "64")
    decision = fleet.decide()
    assert decision.scale_up.added == {WEB: 3}
    assert [pod.name for left in decision.scale_up.left for pod in left.pods] == ["huge"]


def test_the_next_look_adds_none() -> None:
    fleet = fleet_of(1, 2)
    fleet.round()
    assert not fleet.decide().scale_up.added


def test_gangs_that_wait_beside_them_count_once() -> None:
    """Single pods are asked for in several parts then: by priority, with the gangs in between."""
    fleet = fleet_of(1, 2, options=AutoscalerOptions(GrowthOptions(least_allocated=True, gangs=(GANGS,))))
    fleet.gang("train", 2, "8", priority=7)
    fleet.pod("late", "8", priority=-5)
    decision = fleet.decide()
    assert decision.scale_up.added == {WEB: 6}
    assert decision.scale_up.ample.added == {WEB: 1}


def test_groups_that_get_few_nodes_are_asked_first() -> None:
    """Or the first Nodes would all be of one large group, in one zone."""
    fleet = Fleet()
    fleet.group("a", cpu="2")
    fleet.group("b", cpu="16")
    for number in range(3):
        fleet.pod(f"small-{number}", "2")
    fleet.pod("large", "16")
    written = [each for step in fleet.decide().steps for each in step if isinstance(each, Scale)]
    assert [(each.target.key.name, each.replicas) for each in written] == [("b", 1), ("a", 3)]


@dataclass(slots=True)
class _Node:
    """``cpu`` in thousandths, ``memory`` in MiB: what is free, and what it offers."""

    zone: str
    offered: tuple[int, int]
    cpu: int
    memory: int
    names: set[str] = field(default_factory=set)

    def takes(self, pod: Workload) -> bool:
        alone = pod.apart and pod.name in self.names
        return not alone and self.cpu >= _cpu(pod.cpu) and self.memory >= _mib(pod.memory)

    def left_with(self, pod: Workload) -> float:
        """Shares of CPU and memory, as the strategy LeastAllocated scores them."""
        cpu, memory = self.offered
        return (self.cpu - _cpu(pod.cpu)) / cpu + (self.memory - _mib(pod.memory)) / memory


def _new_nodes(decision: Decision) -> Iterator[_Node]:
    for group, count in decision.scale_up.added.items():
        name, _, zone = group.rpartition("/")[2].partition(".")
        cores, gib, _ = types()[name]
        for _ in range(count):
            yield _Node(zone, (cores * 1000, gib * 1024), cores * 1000 - 100, gib * 1024 - 10)


def _lost(decision: Decision, workloads: list[Workload], seed: int) -> int:
    """kube-scheduler by hand, a pod at a time in random order: how many of them find no Node. Of rules for pods only
    zones and Nodes of one's own count.
    """
    nodes, lost = list(_new_nodes(decision)), 0
    pods = [each for each in workloads for _ in range(each.replicas)]
    Random(seed).shuffle(pods)
    there = {each.name: dict.fromkeys(ZONES, 0) for each in workloads}
    for pod in pods:
        counts = there[pod.name]
        least = min(counts.values())
        fits = [node for node in nodes if counts[node.zone] == least and node.takes(pod)]
        if not fits:
            lost += 1
            continue
        best = max(fits, key=lambda node: node.left_with(pod))
        best.cpu -= _cpu(pod.cpu)
        best.memory -= _mib(pod.memory)
        best.names.add(pod.name)
        counts[best.zone] += 1
    return lost


def _cpu(text: str) -> int:
    return int(text.removesuffix("m"))


def _mib(text: str) -> int:
    return int(text[:-2]) * (1024 if text.endswith("Gi") else 1)


@pytest.fixture(scope="module")
def mixed() -> Mapping[bool, Decision]:
    return {ample: decided(wide(), least_allocated=ample) for ample in (False, True)}


@pytest.mark.parametrize("seed", range(4))
def test_no_pod_of_thirty_deployments_waits_for_another_growth(mixed: Mapping[bool, Decision], seed: int) -> None:
    """In any order. Without it a few dozen of the 1000 do."""
    workloads = list(wide())
    assert _lost(mixed[True], workloads, seed) == 0
    assert _lost(mixed[False], workloads, seed) > 10
