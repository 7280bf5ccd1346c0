"""With --scheduler-scoring-strategy=LeastAllocated pods find room wherever kube-scheduler puts them. Where Nodes don't
help against that, none is added for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from controllers.autoscaler.decision import Decision
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions
from controllers.kernel.actions import Scale
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
    (resize,) = [each for step in fleet_of(1, 2).decide().steps for each in step if isinstance(each, Scale)]
    assert resize.why == (
        "3 Nodes more for pods that find no place, 1 of them since kube-scheduler prefers the least allocated Nodes"
    )


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


def _played(decision: Decision, workloads: list[Workload], seed: int) -> int:
    """kube-scheduler by hand, a pod at a time in random order: how many of them find no Node.

    Only room, zones and Nodes of one's own count.
    """
    offered, random = types(), Random(seed)
    free: list[list[float]] = []
    for group, count in decision.scale_up.added.items():
        name, _, zone = group.rpartition("/")[2].partition(".")
        cores, gib, _ = offered[name]
        for _ in range(count):
            free.append([cores * 1000 - 100, gib * 1024 - 10, cores, gib, ZONES.index(zone), 16 * cores])
    pods = [each for each in workloads for _ in range(each.replicas)]
    random.shuffle(pods)
    zones = {int(row[4]) for row in free}
    there: dict[str, dict[int, int]] = {each.name: dict.fromkeys(zones, 0) for each in workloads}
    taken: dict[str, set[int]] = {each.name: set() for each in workloads}
    lost = 0
    for pod in pods:
        cpu, memory = _cpu(pod.cpu), _mib(pod.memory)
        counts = there[pod.name]
        open_ = {zone for zone, count in counts.items() if count + 1 - min(counts.values()) <= 1}
        fits = [
            number
            for number, row in enumerate(free)
            if row[0] >= cpu and row[1] >= memory and row[5] >= 1 and row[4] in open_
            if not (pod.apart and number in taken[pod.name])
        ]
        if not fits:
            lost += 1
            continue
        best = max(
            fits, key=lambda n: (free[n][0] - cpu) / free[n][2] + (free[n][1] - memory) / free[n][3] * 1000 / 1024
        )
        free[best][0] -= cpu
        free[best][1] -= memory
        free[best][5] -= 1
        counts[int(free[best][4])] += 1
        taken[pod.name].add(best)
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
    assert _played(mixed[True], workloads, seed) == 0
    assert _played(mixed[False], workloads, seed) > 10
