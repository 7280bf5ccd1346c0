"""Groups of a provider outside: what it is asked for what it tells."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.autoscaler.cluster_state import WorkloadObjects
from controllers.autoscaler.external import (
    Calls,
    ExternalGroup,
    Instance,
    InstanceState,
    Looked,
    calls_of,
    cluster_of,
    remembered,
)
from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions, ShrinkOptions
from controllers.autoscaler.plan import decide
from controllers.kernel.conditions import format_time
from providers.base.contract import Shape
from tests.controllers.autoscaler.fleet import READY, START, Fleet

FOUR = Shape({"cpu": "4", "memory": "8Gi", "pods": "110"})
NOW = START + timedelta(hours=1)
OPTIONS = AutoscalerOptions(GrowthOptions(), ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0)))
CREATING, RUNNING, DELETING = InstanceState.CREATING, InstanceState.RUNNING, InstanceState.DELETING


def group(*instances: Instance, target: int | None = None, **more: Any) -> ExternalGroup:
    size = sum(each.state is not DELETING for each in instances) if target is None else target
    return ExternalGroup(
        **{"id": "g", "min_size": 0, "max_size": 10, "target": size, "template": FOUR, "instances": instances, **more}
    )


def node(provider_id: str, *taints: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": f"node-{provider_id}", "creationTimestamp": format_time(START)},
        "spec": {"providerID": provider_id, "taints": list(taints)},
        "status": {"allocatable": dict(FOUR.capacity), "conditions": [READY]},
    }


def pods(count: int, cpu: str = "3", on: str = "") -> list[dict[str, Any]]:
    fleet = Fleet()
    for index in range(count):
        fleet.pod(f"p-{on}-{index}", cpu, node=on)
    return list(fleet.pods.values())


def asked(
    *groups: ExternalGroup,
    nodes: list[dict[str, Any]] | None = None,
    waiting: list[dict[str, Any]] | None = None,
    **more: Any,
) -> Calls:
    workload = WorkloadObjects(nodes=nodes or [], pods=waiting or [])
    looked = Looked(**{"now": NOW, "groups": groups, "workload": workload, "options": OPTIONS, **more})
    return calls_of(looked, decide(cluster_of(looked)))


LEAVING = {"key": names.TO_BE_DELETED_TAINT, "value": "1", "effect": "NoSchedule"}


def test_pods_that_wait_ask_for_instances_up_to_the_maximum() -> None:
    assert asked(group(), waiting=pods(3)).increase == {"g": 3}
    assert asked(group(max_size=2), waiting=pods(3)).increase == {"g": 2}


def test_what_was_asked_for_is_on_its_way_whether_its_instances_are_told_or_not() -> None:
    assert not asked(group(target=3), waiting=pods(3)).increase
    assert not asked(group(Instance("a", CREATING), target=3), waiting=pods(3)).increase


def test_a_group_whose_template_is_unknown_stays_as_it_is() -> None:
    unknown = group(template=None, problem="it does not tell")
    assert asked(unknown, waiting=pods(1)) == Calls()
    workload = WorkloadObjects(pods=pods(1))
    (state,) = cluster_of(Looked(now=NOW, groups=[unknown], workload=workload)).groups
    assert (state.id, state.problem) == ("g", "it does not tell")


def test_without_a_template_a_node_of_the_group_tells() -> None:
    one = group(Instance("a", RUNNING), template=None)
    assert asked(one, nodes=[node("a")], waiting=[*pods(1, on="node-a"), *pods(1)]).increase == {"g": 1}


def test_another_group_is_asked_where_the_provider_has_no_room() -> None:
    full = group(Instance("a", CREATING, "STOCKOUT: none", True), target=1)
    spare = group(id="spare")
    calls = asked(full, spare, waiting=pods(1))
    assert (calls.increase, calls.delete, calls.broken) == ({"spare": 1}, {"g": (("a", ""),)}, {"a"})


def test_an_instance_that_does_not_join_in_its_time_is_given_back() -> None:
    late = {"a": NOW - timedelta(minutes=15)}
    assert asked(group(Instance("a", RUNNING)), seen=late).delete == {"g": (("a", ""),)}
    assert not asked(group(Instance("a", RUNNING)), seen={"a": NOW - timedelta(minutes=14)}).delete


def test_instances_that_were_never_begun_are_not_asked_for_any_longer() -> None:
    since = {"g": NOW - timedelta(minutes=15)}
    assert asked(group(target=3, min_size=1), short_since=since).decrease == {"g": 2}
    assert not asked(group(target=3), short_since={"g": NOW}).decrease


def test_a_node_is_emptied_first_and_given_back_once_it_is_empty() -> None:
    one = group(Instance("a", RUNNING))
    assert asked(one, nodes=[node("a")]).drain.keys() == {"node-a"}
    busy = asked(one, nodes=[node("a", LEAVING)], waiting=pods(1, on="node-a"))
    assert not busy.delete
    empty = asked(one, nodes=[node("a", LEAVING)])
    assert (empty.delete, empty.drain) == ({"g": (("a", "node-a"),)}, {})


def test_a_node_that_is_being_emptied_counts_no_longer() -> None:
    """Its pod will wait; at the maximum of one nothing can be asked for until the instance is gone."""
    leaving = [node("a", LEAVING)]
    waiting = pods(1, on="node-a")
    assert asked(group(Instance("a", RUNNING)), nodes=leaving, waiting=waiting).increase == {"g": 1}
    assert not asked(group(Instance("a", RUNNING), max_size=1), nodes=leaving, waiting=waiting).increase


def test_an_instance_that_is_going_is_not_given_back_twice() -> None:
    assert asked(group(Instance("a", DELETING)), nodes=[node("a", LEAVING)]) == Calls()


def test_the_minimum_stays() -> None:
    both = group(Instance("a", RUNNING), Instance("b", RUNNING), min_size=1)
    assert len(asked(both, nodes=[node("a"), node("b")]).drain) == 1


def test_what_is_gone_is_forgotten() -> None:
    seen, short = remembered([group(target=1)], NOW, seen={"a": START}, short={"g": START, "other": START})
    assert (seen, short) == ({}, {"g": START})


@given(
    targets=st.integers(0, 12),
    states=st.lists(st.sampled_from(list(InstanceState)), max_size=8),
    tainted=st.sets(st.integers(0, 7)),
    joined=st.sets(st.integers(0, 7)),
    waiting=st.integers(0, 12),
    bounds=st.tuples(st.integers(0, 5), st.integers(0, 8)),
)
def test_no_call_leaves_the_bounds_of_the_group(
    targets: int,
    states: list[InstanceState],
    tainted: set[int],
    joined: set[int],
    waiting: int,
    bounds: tuple[int, int],
) -> None:
    least, most = min(bounds), max(bounds)
    instances = [Instance(str(index), state) for index, state in enumerate(states)]
    nodes = [node(str(index), *([LEAVING] if index in tainted else [])) for index in sorted(joined)]
    one = group(*instances, target=targets, min_size=least, max_size=most)
    calls = asked(one, nodes=nodes, waiting=pods(waiting), short_since={"g": START})
    assert targets + calls.increase.get("g", 0) <= max(most, targets)
    assert targets - calls.decrease.get("g", 0) >= min(least, targets)
    given = [instance for instance, _ in calls.delete.get("g", ())]
    assert len(given) == len(set(given))
    assert not {each.id for each in instances if each.state is DELETING} & set(given)
