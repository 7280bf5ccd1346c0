"""What must hold for one MachineSet whatever happens in whatever order, with views that lag and a process that dies."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.actions import Action, Create, Delete
from controllers.kernel.names import read_ordinals
from controllers.kernel.refs import MACHINE, MACHINE_SET, Obj
from tests.builders import World, machine_set
from tests.builders.loop import reconcile_once, settle
from tests.builders.schedule import Process
from tests.examples import usually

NAME = "pool"

scale = st.tuples(st.just("scale"), st.integers(0, 6))
reconciles = st.tuples(st.just("round"), st.integers(0, 8) | st.none())
lag = st.tuples(st.sampled_from(["see machines", "see sets"]), st.sampled_from([1, 2, 4, 20]))
happens = st.tuples(
    st.sampled_from(["ready", "break", "user deletes", "host gone", "user relabels", "user marks", "restart", "time"]),
    st.integers(0, 7),
)
schedules = st.lists(
    st.one_of(reconciles, reconciles, reconciles, lag, lag, lag, scale, happens), min_size=25, max_size=60
)


class WatchedWorld(World):
    """Checks every write against the truth at that moment."""

    def apply(self, action: Action) -> None:
        before = len(self.alive())
        super().apply(action)
        staying = len(self.staying())
        wanted = self.get(MACHINE_SET, NAME)["spec"]["replicas"]
        if isinstance(action, Create):
            assert staying <= wanted, f"{action.body['metadata']['name']} makes {staying} Machines of {wanted}"
        if isinstance(action, Delete) and len(self.alive()) < before:
            assert staying >= wanted, f"deleting {action.target} leaves {staying} Machines of {wanted}"

    def alive(self) -> list[Obj]:
        return [machine for machine in self.all(MACHINE) if not machine["metadata"].get("deletionTimestamp")]

    def staying(self) -> list[Obj]:
        """Alive, owned, and not already chosen to go."""
        leaving = ((self.get(MACHINE_SET, NAME).get("status") or {}).get("ordinals") or {}).get("leaving") or ()
        return [
            machine
            for machine in self.alive()
            if machine["metadata"].get("ownerReferences") and machine["metadata"]["name"] not in leaving
        ]


def happen(world: WatchedWorld, process: Process, what: str, amount: Any) -> None:
    machines = sorted(world.all(MACHINE), key=lambda m: m["metadata"]["name"])
    chosen = machines[amount % len(machines)] if machines and amount is not None else None
    name = chosen["metadata"]["name"] if chosen else ""
    if what.startswith("user"):
        # Nobody can allow for what a person did a moment ago; what follows from it is another matter.
        process.catch_up(MACHINE, world.length(MACHINE))
    match what:
        case "round":
            process.round(MACHINE_SET, NAME, amount)
        case "see machines":
            process.catch_up(MACHINE, amount)
        case "see sets":
            process.catch_up(MACHINE_SET, amount)
        case "scale":
            world.change(MACHINE_SET, NAME, lambda body: body["spec"].update(replicas=amount))
        case "ready":
            world.make_ready(machines[: amount + 1])
        case "break" if chosen and (chosen.get("status") or {}).get("nodeRef"):
            world.break_down(name)
        case "user deletes" if chosen:
            world.change(MACHINE, name, lambda body: body["metadata"].update(deletionTimestamp="2026-06-01T12:00:00Z"))
            process.catch_up(MACHINE, 1)
        case "host gone":
            world.finish_deletions()
        case "user relabels" if chosen:
            world.change(MACHINE, name, lambda body: body["metadata"].update(labels={"pool": "aside"}))
            process.catch_up(MACHINE, 1)
        case "user marks" if chosen:
            mark = {"cluster.k8s.io/delete-machine": "yes"}
            world.change(MACHINE, name, lambda body: body["metadata"].setdefault("annotations", {}).update(mark))
        case "restart":
            process.restart()
        case "time":
            world.advance(amount)


@given(schedules)
@usually(20)
def test_never_too_many_by_creating_and_never_too_few_by_deleting(schedule: list[tuple[str, Any]]) -> None:
    """Stale views, crashes after any action and meddling people included (MC#390, MCM#1091, CAPI#13649)."""
    world = WatchedWorld(machine_set(NAME).replicas(3))
    process = Process(world)
    for what, amount in schedule:
        happen(world, process, what, amount)


@given(schedules)
@usually(10)
def test_it_settles_on_what_is_asked_for_and_then_writes_nothing(schedule: list[tuple[str, Any]]) -> None:
    world = WatchedWorld(machine_set(NAME).replicas(3))
    process = Process(world)
    for what, amount in schedule:
        happen(world, process, what, amount)
    settle(world)
    body = world.get(MACHINE_SET, NAME)
    owned = [m for m in world.all(MACHINE) if m["metadata"].get("ownerReferences")]
    assert len(owned) == body["spec"]["replicas"] == body["status"]["replicas"]
    assert reconcile_once(world) == 0


@given(schedules)
@usually(10)
def test_the_next_ordinal_is_above_all_that_were_ever_given_and_never_goes_back(
    schedule: list[tuple[str, Any]],
) -> None:
    world = WatchedWorld(machine_set(NAME).replicas(3))
    process = Process(world)
    highest = 0
    for what, amount in schedule:
        happen(world, process, what, amount)
        ordinals = read_ordinals(world.get(MACHINE_SET, NAME).get("status") or {})
        highest = max(highest, *(int(m["metadata"]["name"].rsplit("-")[-1]) + 1 for m in world.all(MACHINE)), 0)
        assert ordinals.next >= highest
        highest = max(highest, ordinals.next)
