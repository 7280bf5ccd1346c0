"""Drains of any pods, in which rounds die after any action: nobody goes who may stay, none goes out of turn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.drain import context
from controllers.drain.assess import Assessment, Drained, Draining, NotDrained, assess
from controllers.drain.stages import Deadlines
from controllers.kernel.actions import Action, Delete, Evict, Patch
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import NODE, POD, Key, Obj
from tests.builders import NOW, FakeView, machine, node
from tests.controllers.machine.arena import merged
from tests.controllers.machine.pods import PodBuilder, budget, daemon_set, drain_rule, pod
from tests.examples import usually

STAYS = "stays"
"""Label that the test puts on pods that must never be touched."""
APPS = ("a", "b")


@st.composite
def pods(draw: st.DrawFn, number: int) -> PodBuilder:
    found = pod(f"p-{number}").on("n").ready().labelled(app=draw(st.sampled_from(APPS)))
    found.priority(draw(st.sampled_from([-1, 0, 0, 10, 2_000_000_000])))
    kind = draw(st.sampled_from(["plain"] * 6 + ["bare", "orphan", "agent", "mirror", "done", "skip", "going"]))
    match kind:
        case "bare":
            found.bare()
        case "orphan" | "agent":
            found.of_daemon_set()
        case "mirror":
            found.mirror()
        case "done":
            found.phase("Succeeded")
        case "skip":
            found.labelled({"cluster.x-k8s.io/drain": "skip"})
        case "going":
            found.deleting(1)
    return found.labelled({STAYS: str(kind in {"agent", "mirror", "done", "skip"})})


@dataclass
class Town:
    """One Node, its pods, a budget for each app; kubelets take some rounds to stop a pod."""

    view: FakeView
    least: dict[str, int]
    now: datetime = NOW
    asked: list[str] = field(default_factory=list)

    def assess(self, deadlines: Deadlines) -> Assessment:
        body = self.node()
        drain_context = context.observe(machine("m-1").build(), body, self.view)
        return assess(Draining("uid-m-1", body, self.now, drain_context, NOW, deadlines))

    def node(self) -> Obj:
        found = self.view.get(NODE, Key("", "n"))
        assert found is not None
        return found

    def perform(self, action: Action) -> None:
        if isinstance(action, Patch):
            self.view.put(merged(self.node(), action.patch))
            return
        assert isinstance(action, Evict | Delete)
        found = self.view.get(POD, action.target.key)
        assert found is not None
        assert found["metadata"]["labels"][STAYS] == "False", f"{action.why}, though it may stay"
        if isinstance(action, Evict):
            assert self.allowed(found["metadata"]["labels"]["app"]) > 0, f"{action.why}: the budget allows none"
        self.asked.append(action.target.key.name)
        if isinstance(action, Delete) and action.grace_seconds == 0:
            self.view.drop(POD, action.target.key.name)
        else:
            self.view.put(merged(found, {"metadata": {"deletionTimestamp": format_time(self.now), "finalizers": []}}))
        self.count()

    def allowed(self, app: str) -> int:
        healthy = sum(
            p["metadata"]["labels"]["app"] == app and not p["metadata"].get("deletionTimestamp")
            for p in self.view.all(POD)
        )
        return max(0, healthy - self.least[app])

    def count(self) -> None:
        for app in APPS:
            self.view.put(budget(f"keep-{app}").over(app).allowing(self.allowed(app)))

    def kubelet(self, stops: bool) -> None:
        """Ends what was asked to end; whatever controls pods makes new ones elsewhere, which count for the budgets."""
        self.now += timedelta(seconds=5)
        for found in list(self.view.all(POD)):
            if stops and found["metadata"].get("deletionTimestamp"):
                self.view.drop(POD, found["metadata"]["name"])
        self.count()


def tier_of(found: Obj, orders: dict[str, int]) -> tuple[int, bool, bool, int]:
    """Told anew, from the docs: order, critical, orphan, priority."""
    priority = found["spec"].get("priority", 0)
    owners = found["metadata"].get("ownerReferences") or ()
    orphan = any(owner["kind"] == "DaemonSet" for owner in owners)
    return (orders.get(found["metadata"]["labels"]["app"], 0), priority >= 2_000_000_000, orphan, priority)


@st.composite
def towns(draw: st.DrawFn) -> tuple[Town, dict[str, int]]:
    built = [draw(pods(number)) for number in range(draw(st.integers(0, 8)))]
    view = FakeView(node("n").ready(), *built)
    for found in built:
        if found.metadata["labels"][STAYS] == "True":
            view.put(daemon_set(found.metadata["name"]))
    orders: dict[str, int] = {}
    if draw(st.booleans()):
        app = draw(st.sampled_from(APPS))
        orders[app] = draw(st.integers(-3, 3))
        view.put(drain_rule("r").drain("Drain", orders[app]).pods(selector={"matchLabels": {"app": app}}))
    town = Town(view, {app: draw(st.integers(0, 2)) for app in APPS})
    town.count()
    return town, orders


def going(action: Action) -> str:
    return action.target.key.name if isinstance(action, Evict | Delete) else ""


def check_turns(town: Town, orders: dict[str, int], step: NotDrained) -> None:
    """All that go now are of one tier, and none of a lower one is left."""
    by_name: dict[str, Any] = {found["metadata"]["name"]: found for found in town.view.all(POD)}
    tiers = {tier_of(by_name[going(action)], orders) for action in step.actions if going(action)}
    assert len(tiers) <= 1
    for tier in tiers:
        left = [found for found in by_name.values() if found["metadata"]["labels"][STAYS] == "False"]
        assert min(tier_of(found, orders) for found in left) == tier


@usually(20)
@given(found=towns(), luck=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12), stages=st.booleans())
def test_nobody_goes_who_may_stay_none_out_of_turn_and_in_the_end_the_node_is_empty(
    found: tuple[Town, dict[str, int]], luck: list[tuple[int, bool]], stages: bool
) -> None:
    town, orders = found
    deadlines = Deadlines(delete=timedelta(seconds=30)) if stages else Deadlines()
    for most, stops in luck:
        step = town.assess(deadlines)
        if isinstance(step, NotDrained):
            check_turns(town, orders, step)
            for action in step.actions[:most]:
                town.perform(action)
        town.kubelet(stops)
    town.least = dict.fromkeys(APPS, 0)  # whoever held the budgets gives way
    town.count()
    for _ in range(40):
        step = town.assess(deadlines)
        if isinstance(step, Drained):
            break
        check_turns(town, orders, step)
        for action in step.actions:
            town.perform(action)
        town.kubelet(True)
    assert isinstance(step, Drained)
    left = [p["metadata"]["labels"][STAYS] for p in town.view.all(POD)]
    assert "False" not in left
    assert max(Counter(town.asked).values(), default=0) <= 1, "a pod was asked to go twice"
