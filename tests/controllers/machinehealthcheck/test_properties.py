"""What must hold whatever the Machines look like: the two rooms together, by chance, with a clock of their own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from controllers.kernel.actions import Delete, Patch
from controllers.kernel.conditions import find, format_time, parse_time
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE, MACHINE_HEALTH_CHECK, MACHINE_SET, NODE, Key, key_of
from controllers.kernel.remediation import remediation_data_of
from controllers.machinehealthcheck.reconciler import RECONCILER
from tests.builders import World, machine_set, node
from tests.builders.loop import plan_for, settle
from tests.controllers.machinehealthcheck.checks import check, selected_for_deletion
from tests.examples import usually

SIZE = 6
STARTUP = timedelta(minutes=10)
CHECK = Key("default", "check")

strategies = st.fixed_dictionaries(
    {},
    optional={
        "maxInFlight": st.integers(0, 3) | st.just("40%"),
        "maxRetry": st.integers(0, 2),
        "retryPeriod": st.sampled_from(["0s", "5m", "20m"]),
        "correlatedFailures": st.sampled_from(["Freeze", "Remediate"]),
    },
)
specs = st.fixed_dictionaries({}, optional={"maxUnhealthy": st.integers(0, 6) | st.sampled_from(["40%", "100%"])})
steps = st.lists(
    st.tuples(
        st.sampled_from(["break", "break", "heal", "vanish", "time", "check", "check", "set", "set", "join", "gone"]),
        st.integers(0, 9),
    ),
    min_size=10,
    max_size=40,
)


def a_world(spec: dict[str, Any], strategy: dict[str, Any]) -> World:
    world = World(machine_set("pool").replicas(SIZE), check().having(**spec).strategy(**strategy))
    settle(world)
    join(world)
    return world


def join(world: World) -> None:
    """Hosts come up and register; the Machine controller's part is the builders' ``make_ready``."""
    world.make_ready()
    for machine in world.all(MACHINE):
        name = f"node-{machine['metadata']['name']}"
        if (machine.get("status") or {}).get("nodeRef") and world.find(NODE, name) is None:
            world.put(node(name).of(dict(machine)).condition("Ready", "True", since=0))
            say(world, name, "True")


def say(world: World, name: str, status: str) -> None:
    said = {"type": "Ready", "status": status, "reason": "Kubelet", "lastTransitionTime": format_time(world.now)}
    if world.find(NODE, name) is not None:
        world.change(NODE, name, lambda body: body.setdefault("status", {}).update(conditions=[said]))


def look(world: World) -> Plan:
    observed = RECONCILER.observe(CHECK, world.view(), None)
    assert observed is not None
    return RECONCILER.plan(observed)


def alive(world: World) -> list[Any]:
    machines = [m for m in world.all(MACHINE) if not m["metadata"].get("deletionTimestamp")]
    return sorted(machines, key=lambda m: str(m["metadata"]["name"]))


def marked(world: World) -> set[str]:
    """Machines whose owner is asked, or that are going for it, and replacements that are not well."""
    return {
        m["metadata"]["name"]
        for m in world.all(MACHINE)
        if find((m.get("status") or {}).get("conditions"), "OwnerRemediated")
    }


def place(world: World, name: str) -> str:
    """The first Machine of its place that is still there: the budget counts those, not the Machines made for one."""
    found = world.find(MACHINE, name)
    before = remediation_data_of(found).machine if found is not None else ""
    return place(world, before) if before and world.find(MACHINE, before) is not None else name


def is_sick(world: World, machine: Any) -> bool:
    """Its Node says so, or it never joined in the time that a check allows without being told otherwise."""
    found = world.find(NODE, f"node-{machine['metadata']['name']}")
    if found is not None:
        return bool(found["status"]["conditions"][0]["status"] != "True")
    born = parse_time(machine["metadata"]["creationTimestamp"])
    assert born is not None
    return world.now - born >= STARTUP


def happen(world: World, what: str, number: int) -> None:
    machines = alive(world)
    name = machines[number % len(machines)]["metadata"]["name"] if machines else ""
    match what:
        case "break":
            say(world, f"node-{name}", "Unknown")
        case "heal":
            say(world, f"node-{name}", "True")
        case "time":
            world.advance(100 * number)
        case "check":
            world.run(look(world), limit=number if number < 4 else None)
        case "set":
            for delete in deletes_of_a_round(world):
                assert delete in marked(world), "only who was condemned goes, since nobody scales here"
        case "join":
            join(world)
        case "gone":
            world.finish_deletions()


def deletes_of_a_round(world: World) -> list[str]:
    plan = plan_for(world.view(), MACHINE_SET, "pool")
    world.run(plan)
    return [action.target.key.name for action in plan.actions() if isinstance(action, Delete)]


LATE_FORERUNNER = [("break", 1), ("time", 4), ("check", 9), ("set", 0), ("set", 0), ("time", 9)]
"""The replacement never joins, and its turn to be replaced comes while the first one is still going."""


@given(specs, strategies, steps)
@example({}, {"maxInFlight": 1, "retryPeriod": "0s"}, LATE_FORERUNNER)
@usually(8)
def test_no_more_are_asked_for_than_allowed_and_each_is_sick(
    spec: dict[str, Any], strategy: dict[str, Any], schedule: list[tuple[str, int]]
) -> None:
    world = a_world(spec, strategy)
    for what, number in schedule:
        happen(world, what, number)
        plan = look(world)
        asked = selected_for_deletion(plan)
        sick = {m["metadata"]["name"] for m in alive(world) if is_sick(world, m)}
        assert set(asked) <= sick, "nobody is replaced who looks well"
        limit = strategy.get("maxInFlight")
        if isinstance(limit, int):
            going = {m["metadata"]["name"] for m in world.all(MACHINE) if m["metadata"].get("deletionTimestamp")}
            places = {place(world, name) for name in set(asked) | (marked(world) & going)}
            assert len(places) <= max(limit, len(marked(world)))
        if isinstance(spec.get("maxUnhealthy"), int) and len(sick) > spec["maxUnhealthy"]:
            assert asked == []
        if strategy.get("correlatedFailures") != "Remediate" and 2 * len(sick) > len(alive(world)) >= 4:
            assert asked == []


@given(specs, strategies, steps)
@usually(6)
def test_a_second_look_writes_nothing(
    spec: dict[str, Any], strategy: dict[str, Any], schedule: list[tuple[str, int]]
) -> None:
    """Plan and apply settle, and any prefix of a plan leads there too (the schedule cuts plans short)."""
    world = a_world(spec, strategy)
    for what, number in schedule:
        happen(world, what, number)
    for _ in range(3):
        world.run(look(world))
    world.advance(3)
    world.run(look(world))
    assert [action for action in look(world).actions() if isinstance(action, Patch)] == []


@given(st.integers(0, SIZE - 1))
@usually(5)
def test_one_sick_machine_is_replaced_by_one_new_one(which: int) -> None:
    world = a_world({}, {})
    before = alive(world)
    sick = before[which]["metadata"]["name"]
    say(world, f"node-{sick}", "Unknown")
    world.advance(301)
    world.run(look(world))
    settle(world)
    join(world)
    names_now = {m["metadata"]["name"] for m in alive(world)}
    assert len(names_now) == SIZE
    assert names_now == {m["metadata"]["name"] for m in before} - {sick} | (
        names_now - {key_of(m).name for m in before}
    )
    assert sick not in names_now
    world.run(look(world))
    world.advance(3)
    world.run(look(world))
    status = world.get(MACHINE_HEALTH_CHECK, "check")["status"]
    assert (status["expectedMachines"], status["currentHealthy"]) == (SIZE, SIZE)


def test_a_template_that_never_joins_is_replaced_ever_more_slowly() -> None:
    """eks-anywhere#4709: the same Machine deleted and made again every ten minutes, for ever."""
    world = World(machine_set("pool").replicas(1), check().strategy(maxRetry=3))
    for _ in range(400):
        world.run(plan_for(world.view(), MACHINE_SET, "pool"))
        world.run(look(world))
        world.finish_deletions()
        world.advance(60)
    made = sum(1 for write in world.writes if type(write).__name__ == "Create")
    assert made == 1 + 1 + 3, "the first, its replacement, and three retries"
