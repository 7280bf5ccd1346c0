"""The story of a Node that the autoscaler removes, and how many files a reader needs for it."""

from __future__ import annotations

from datetime import timedelta

from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Create, Patch, Scale
from controllers.kernel.plan import Plan
from controllers.kernel.refs import CONFIG_MAP, Kind
from tests.controllers.autoscaler.fleet import Fleet, Obj
from tests.controllers.autoscaler.town import view_of
from tests.stories import Walk

MOST_FILES = 54
"""Of these 30 are the scheduling library and the kernel; one tells people of options and decisions."""


def removed(fleet: Fleet) -> list[Plan]:
    """Two Nodes with little to do, until one of them goes: its pods fit on the other."""
    reconciler, kept = AutoscalerReconciler(), {}
    plans: list[Plan] = []
    for _ in range(3):
        more: list[tuple[Kind, Obj]] = [(CONFIG_MAP, body) for body in kept.values()]
        observed = reconciler.observe(reconciler.key, view_of(fleet, *more), None)
        assert observed is not None
        plans.append(reconciler.plan(observed))
        for action in plans[-1].actions():
            if isinstance(action, Create):
                name = action.body["metadata"]["name"]
                kept[name] = {**action.body, "metadata": {**action.body["metadata"], "uid": name}}
            elif isinstance(action, Patch) and action.target.kind == CONFIG_MAP:
                kept[action.target.key.name]["data"] |= action.patch["data"]
        fleet.now += timedelta(minutes=6)
    return plans


def little_used() -> Fleet:
    fleet = Fleet()
    fleet.group("web", 0, 5)
    fleet.deployments["web"]["spec"]["replicas"] = 2
    fleet.settle()
    for number, node in enumerate(sorted(fleet.nodes)):
        fleet.pod(f"p-{number}", "500m", node)
    fleet.now += timedelta(hours=1)
    return fleet


def test_a_node_is_removed_by_a_mark_and_a_size() -> None:
    *waiting, last = removed(little_used())
    assert not [action for plan in waiting for action in plan.actions() if isinstance(action, Scale)]
    written = [action for action in last.actions() if isinstance(action, Scale | Patch)]
    sizes = [action.replicas for action in written if isinstance(action, Scale)]
    assert sizes == [1]


def test_the_story_is_told_in_few_files() -> None:
    fleet = little_used()
    walk = Walk()(lambda: removed(fleet))
    told = "\n".join(sorted(walk.files))
    assert len(walk.files) <= MOST_FILES, f"{len(walk.files)} files, {len(walk.functions)} functions\n{told}"
