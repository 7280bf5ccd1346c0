"""So many hosts come up at once as a Cluster, a MachineClass or a flag allows; the others wait for their turn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.kernel.actions import CreateHost
from controllers.kernel.joining import NO_LIMITS, Limits
from controllers.kernel.plan import Plan, Wait
from controllers.kernel.refs import CLUSTER, MACHINE, Key
from controllers.kernel.view import HostAbsent, HostReads
from controllers.machine.creation_limits import (
    JOINS_AT_FIRST,
    LATE,
    NOT_COMING,
    SOON,
    InFlightLimit,
    must_queue,
    next_queued,
    stays_queued,
)
from controllers.machine.reconciler import MachineReconciler
from providers.base.errors import ErrorClass
from tests.builders import FakeView, cluster, machine, machine_class
from tests.builders.objects import Builder, MachineBuilder
from tests.controllers.machine.arena import Arena

ABSENT = HostReads(HostAbsent())
TEN_MINUTES = timedelta(minutes=10)


def home(**spec: Any) -> Builder:
    builder = cluster("c")
    builder.spec.update(spec)
    return builder


def born(name: str, age: float = 60) -> MachineBuilder:
    """Without a host; ``age`` seconds old."""
    return machine(name).in_cluster("c").created(age)


def booting(name: str, since: float = 60) -> MachineBuilder:
    """Its host runs for ``since`` seconds, and no Node has joined yet."""
    return born(name).provider_id(f"p:{name}").condition("InfrastructureReady", "True", "Provisioned", since=since)


def with_status(builder: MachineBuilder, **status: Any) -> MachineBuilder:
    builder.status.update(status)
    return builder


def arrived(name: str, since: float = 60) -> MachineBuilder:
    return booting(name, since).ready()


def reconciler_for(name: str, *objects: Builder, limits: Limits = NO_LIMITS) -> Plan:
    reconciler, view = MachineReconciler(limits=limits), FakeView(*objects)
    observed = reconciler.observe(Key("default", name), view, ABSENT)
    assert observed is not None
    return reconciler.plan(observed)


def makes_it(plan: Plan) -> bool:
    return any(isinstance(action, CreateHost) for action in plan.actions())


def two(*deletion_guards: Builder) -> tuple[Builder, ...]:
    return (home(maxHostsInFlight=2), born("m", 60), *deletion_guards)


LINE: dict[str, tuple[tuple[Builder, ...], bool]] = {
    "nobody else": (two(), True),
    "one host comes up": (two(booting("a")), True),
    "two hosts come up": (two(booting("a"), booting("b")), False),
    "two older ones wait as well": (two(born("a", 61), born("b", 62)), False),
    "two younger ones wait": (two(born("a", 1), born("b", 2)), True),
    "of equal age the name decides": (two(born("a", 60), born("z", 60), booting("c")), False),
    "one has joined": (two(booting("a"), arrived("b")), True),
    "one is going": (two(booting("a"), booting("b").deleting()), True),
    "one failed": (two(booting("a"), booting("b").failed()), True),
    "one is paused": (two(booting("a"), born("b", 99).annotated("nodewright.dev/paused")), True),
    "one that its provider refuses stands back": (two(booting("a"), born("b", 99).short("QuotaExceeded")), True),
    "one that waits for its class stands back": (two(booting("a"), born("b", 99).pending("ClassHostsInFlight")), True),
    "one whose bootstrap data can't be made stands back": (
        two(booting("a"), born("b", 99).pending("InvalidBootstrapSpec")),
        True,
    ),
    "a worker that waits for the control plane stands back": (
        two(born("a", 98).pending("WaitingForControlPlane"), born("b", 99).pending("WaitingForControlPlane")),
        True,
    ),
    "one whose provider does not answer stands back": (
        two(booting("a"), born("b", 99).pending("ProviderUnreachable")),
        True,
    ),
    "so it does with a providerID that somebody wrote": (
        two(booting("a"), born("b", 99).provider_id("made-up").pending("ProviderUnreachable")),
        True,
    ),
    "one whose host was seen before its provider fell silent does not": (
        two(booting("a"), with_status(booting("b").pending("ProviderUnreachable"), hostScope="simulated/default")),
        False,
    ),
    "one that nobody can read stands back": (
        two(booting("a"), with_status(born("b", 99), conditions="none")),
        True,
    ),
    "one whose bootstrap data is being made does not": (
        two(booting("a"), born("b", 99).pending("WaitingForBootstrapData")),
        False,
    ),
    "one that is told to wait in this line does not": (
        two(booting("a"), born("b", 99).pending("HostsInFlight")),
        False,
    ),
    "a host that will not join any more holds up nobody": (
        two(booting("a"), booting("b", NOT_COMING.total_seconds())),
        True,
    ),
    "those of another Cluster have a line of their own": (
        two(booting("a"), machine("b").in_cluster("other").provider_id("p:b")),
        True,
    ),
    "no limit": ((home(), born("m"), *(booting(str(n)) for n in range(50))), True),
    "a limit of none": ((home(maxHostsInFlight=0), born("m")), False),
}


@pytest.mark.parametrize(("objects", "want"), LINE.values(), ids=LINE.keys())
def test_whose_turn_it_is(objects: tuple[Builder, ...], want: bool) -> None:
    assert makes_it(reconciler_for("m", *objects)) is want


def test_the_flag_counts_where_the_cluster_says_nothing() -> None:
    busy, flag = (booting("a"), booting("b")), Limits(hosts_in_flight=2)
    assert not makes_it(reconciler_for("m", born("m"), home(), *busy, limits=flag))
    assert makes_it(reconciler_for("m", born("m"), home(maxHostsInFlight=3), *busy, limits=flag))
    implicit = [machine(name).provider_id(f"p:{name}") for name in "ab"]
    assert not makes_it(reconciler_for("m", machine("m"), *implicit, limits=flag)), (
        "Machines without a Cluster are one too"
    )


def of(namespace: str, name: str, *, up: bool = False, age: float = 60) -> MachineBuilder:
    """Without a Cluster."""
    body = machine(name, namespace).uid(f"{namespace}-{name}").created(age)
    return body.provider_id(f"p:{namespace}-{name}") if up else body


def makes_beside(allowed: int, *others: Builder) -> bool:
    """Machines without a Cluster are one cluster together, and those who make them don't trust each other."""
    return makes_it(reconciler_for("m", of("default", "m"), *others, limits=Limits(hosts_in_flight=allowed)))


def test_older_ones_of_another_namespace_take_turns_with_it() -> None:
    crowd = [of("hostile", f"h{n}", age=999) for n in range(500)]
    assert makes_beside(2, *crowd)
    assert makes_beside(2, of("hostile", "up", up=True), *crowd)
    assert makes_beside(3, *(of("hostile", f"up{n}", up=True) for n in range(2)), *crowd)


def test_its_second_machine_waits_for_the_first_ones_of_others() -> None:
    first = of("default", "first", up=True)
    assert not makes_beside(2, first, of("other", "o"))
    assert makes_beside(3, first, of("other", "o"))
    assert makes_beside(2, first, of("other", "up", up=True).deleting())


def test_hosts_of_one_namespace_that_never_come_up_leave_a_tenth_to_others() -> None:
    stuck = [of("hostile", f"up{n}", up=True) for n in range(18)]
    assert makes_beside(20, *stuck)
    busy = [of("default", f"up{n}", up=True) for n in range(18)]
    assert not makes_beside(20, *busy)


def test_all_see_the_same_line() -> None:
    """Whoever goes first, no more come up than may."""
    bodies = [of(namespace, f"m{n}", age=n) for namespace in ("a", "b", "default") for n in range(4)]
    view, made = FakeView(*bodies), []
    for body in bodies:
        built = body.build()["metadata"]
        reconciler = MachineReconciler(limits=Limits(hosts_in_flight=5))
        observed = reconciler.observe(Key(built["namespace"], built["name"]), view, ABSENT)
        assert observed is not None
        made += [built["namespace"]] * makes_it(reconciler.plan(observed))
    assert sorted(made) == ["a", "a", "b", "b", "default"]


def classed(builder: MachineBuilder, name: str = "small") -> MachineBuilder:
    builder.spec["providerConfig"] = {"valueFrom": {"machineClass": {"name": name}}}
    return builder


def test_a_class_has_a_line_of_its_own() -> None:
    small = machine_class("small")
    small.body["maxHostsInFlight"] = 1
    busy = classed(booting("a"))
    waiting = reconciler_for("m", classed(born("m")), small, home(), busy)
    assert not makes_it(waiting)
    assert "MachineClass default/small lets 1 hosts come up at once" in str(waiting.outcome)
    assert makes_it(reconciler_for("m", classed(born("m"), "big"), machine_class("big"), small, home(), busy))


class TestBootstrapTokens:
    """No more come up than have shown that they can join while a token lives."""

    LIVES = "10m"

    def plan(self, unjoined: int, joined: int, since: float = 60) -> Plan:
        there = [booting(f"a{n}") for n in range(unjoined)] + [arrived(f"j{n}", since) for n in range(joined)]
        return reconciler_for("m", born("m"), home(bootstrapTokenLifetime=self.LIVES), *there)

    def test_a_few_may_before_any_has_joined(self) -> None:
        assert makes_it(self.plan(JOINS_AT_FIRST - 1, 0))
        assert not makes_it(self.plan(JOINS_AT_FIRST, 0))

    def test_twice_as_many_as_joined_in_that_time(self) -> None:
        assert makes_it(self.plan(29, 15))
        assert not makes_it(self.plan(30, 15))

    def test_what_joined_before_shows_nothing(self) -> None:
        assert not makes_it(self.plan(JOINS_AT_FIRST, 40, since=601))

    def test_a_host_whose_token_is_dead_holds_up_nobody(self) -> None:
        late = [booting(f"a{n}", 600) for n in range(JOINS_AT_FIRST)]
        assert makes_it(reconciler_for("m", born("m"), home(bootstrapTokenLifetime=self.LIVES), *late))

    def test_the_flag_counts_where_the_cluster_says_nothing(self) -> None:
        there = [booting(f"a{n}") for n in range(JOINS_AT_FIRST)]
        assert not makes_it(reconciler_for("m", born("m"), home(), *there, limits=Limits(token_lifetime=TEN_MINUTES)))


def test_a_machine_near_the_head_looks_again_sooner() -> None:
    near, far = (must_queue([InFlightLimit("rule", 10, ahead)]) for ahead in (10, 20))
    assert near is not None
    assert far is not None
    assert (near.requeue_after, far.requeue_after) == (SOON, LATE)
    assert must_queue([InFlightLimit("rule", 10, 9)]) is None
    assert must_queue([]) is None


def test_the_next_in_line_is_woken_when_one_is_out_of_the_way() -> None:
    waiting = [born(name, age).pending("HostsInFlight") for name, age in (("young", 5), ("old", 50))]
    view = FakeView(home(maxHostsInFlight=1), *waiting)
    before, after = booting("a").build(), arrived("a").build()
    assert not stays_queued(before, after)
    assert list(next_queued(after, view)) == [Key("default", "old")]
    assert stays_queued(after, arrived("a").annotated("note").build()), "who has arrived lets nobody else move up"
    assert list(next_queued(after, FakeView(home(), *waiting))) == [], "nobody looks where there is no limit"


def many(limits: Limits, count: int = 4, **config: Any) -> tuple[Arena, list[Key]]:
    arena = Arena(limits=limits)
    names = (machine(f"m-{n}").provider_config(bootSeconds=40, joinSeconds=5, **config) for n in range(count))
    return arena, [arena.apply(builder) for builder in names]


def test_one_after_the_other_and_the_wait_costs_one_write() -> None:
    arena, keys = many(Limits(hosts_in_flight=1))
    most = 0
    for _ in range(400):
        for key in keys:
            arena.round(key)
        arena.forward(1)
        most = max(most, sum(host.state == "Pending" for host in arena.world.hosts()))
    assert most == 1
    assert {arena.condition(key, "Ready")["status"] for key in keys} == {"True"}
    assert sum(arena.writes.values()) <= 4 * len(keys), dict(arena.writes)


def test_while_it_waits_nothing_is_written() -> None:
    arena, keys = many(Limits(hosts_in_flight=0), count=1)
    arena.run(keys[0], 60)
    said = arena.condition(keys[0], "Ready")
    assert (said["reason"], said["status"]) == ("HostsInFlight", "False")
    assert "(--cluster-hosts-in-flight)" in said["message"]
    before = arena.writes.total()
    plans = arena.run(keys[0], 3600)
    assert arena.writes.total() == before
    assert all(isinstance(plan.outcome, Wait) for plan in plans)


def test_a_refusal_is_told_rather_than_the_wait_for_the_next_try() -> None:
    arena, (key,) = many(NO_LIMITS, count=1, cloud={"quota": {"hosts": 0}})
    arena.run(key, 20)
    assert arena.condition(key, "Ready")["reason"] == ErrorClass.QUOTA_EXCEEDED
    arena.reconciler = MachineReconciler(limits=Limits(hosts_in_flight=0))
    plans = arena.run(key, 300)
    assert arena.condition(key, "Ready")["reason"] == ErrorClass.QUOTA_EXCEEDED
    assert not any(makes_it(plan) for plan in plans)
    assert len(plans) < 100, "it does not look again all the time"


def test_the_room_is_woken_by_machines_of_its_cluster() -> None:
    assert any(wake.kind == MACHINE and wake.keys is next_queued for wake in MachineReconciler().wakes)
    assert any(wake.kind == CLUSTER for wake in MachineReconciler().wakes)
