"""Whatever happens, and wherever the process dies: never two hosts, never a leaked one, and in the end all is well."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.kernel.actions import CreateHost, Delete
from controllers.kernel.refs import NODE, POD, Key
from controllers.kernel.view import (
    ConfigProblem,
    HostAbsent,
    HostPresent,
    HostRead,
    HostReads,
    HostUnknown,
)
from controllers.machine.machine_node import claimed_by_another
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import Host, HostState
from providers.simulated.config import Cloud
from tests.builders import FakeView, machine, node
from tests.controllers.machine.arena import Arena
from tests.controllers.machine.pods import daemon_set, pod
from tests.examples import usually

LUCK = {"error_rate": 0.1, "lost_answer_rate": 0.1}
PERSONALITIES = st.sampled_from(["InPlace", "Replace", "DrainThenInPlace"])


class Watched(Arena):
    """Checks what must hold after every single action."""

    def perform(self, action: Any) -> None:
        if isinstance(action, CreateHost):
            assert self.world.host(action.machine.uid) is None, "a second host was asked for"
        if isinstance(action, Delete) and action.target.kind is NODE:
            found = self.view.get(NODE, action.target.key)
            mine = self.machine(Key("default", "m-1"))
            assert found is None or not claimed_by_another(found, mine), "another Machine's Node was deleted"
        super().perform(action)
        uids = [host.machine_uid for host in self.world.hosts()]
        assert len(uids) == len(set(uids))


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Rounds that die after so many actions, edits, outages and time, in any order."""
    step = st.one_of(
        st.tuples(st.just("round"), st.integers(0, 4)),
        st.tuples(st.just("time"), st.sampled_from([1, 10, 700])),
        st.tuples(st.just("upgrade"), st.integers(1, 3)),
        st.tuples(st.just("label"), st.integers(1, 3)),
        st.tuples(st.just("outage"), st.sampled_from([1, 60])),
        st.tuples(st.just("forget"), st.just(0)),
    )
    return draw(st.lists(step, min_size=5, max_size=40))


def live(arena: Arena, key: Key, story: list[tuple[str, int]]) -> None:
    for what, number in story:
        match what:
            case "round":
                arena.round(key, most=number)
            case "time":
                arena.forward(number / 10)
            case "upgrade":
                arena.edit(key, {"spec": {"versions": {"kubelet": f"1.34.{number}"}}})
            case "label":
                arena.edit(key, {"spec": {"metadata": {"labels": {"tier": str(number)}}}})
            case "outage":
                arena.world.outage(arena.now.fromtimestamp(arena.now.timestamp() + number, arena.now.tzinfo))
            case "forget":
                arena.answers.clear()
                arena.attempts.clear()


LIVES = usually(15)


@LIVES
@given(story=stories(), updates=PERSONALITIES, seed=st.integers(0, 99))
def test_it_converges_from_wherever_it_was_left(story: list[tuple[str, int]], updates: str, seed: int) -> None:
    arena = Watched(Cloud(name="arena", seed=seed, **LUCK))
    arena.view.put(pod("web").on("m-1"))
    key = arena.apply(machine("m-1").provider_config(updates=updates, bootSeconds=0.5))
    live(arena, key, story)
    arena.world.adjust(Cloud(name="arena", error_rate=0, lost_answer_rate=0))
    arena.run(key, 4000)
    body = arena.machine(key)
    (host,) = arena.world.hosts()
    assert arena.condition(key, "Ready")["status"] == "True"
    assert body["spec"]["providerID"] == host.provider_id
    assert host.kubelet_version == body["spec"]["versions"]["kubelet"]
    assert [n["spec"]["providerID"] for n in arena.nodes()] == [host.provider_id]
    assert "replacement" not in body["status"]
    assert not arena.nodes()[0]["spec"].get("unschedulable")


@LIVES
@given(story=stories(), updates=PERSONALITIES, seed=st.integers(0, 99))
def test_a_deletion_at_any_moment_leaves_nothing(story: list[tuple[str, int]], updates: str, seed: int) -> None:
    arena = Watched(Cloud(name="arena", seed=seed, **LUCK))
    agent = pod("agent").on("m-1").of_daemon_set()
    arena.view.put(pod("web").on("m-1"), pod("late").on("m-1").priority(9), agent, daemon_set("agent"))
    key = arena.apply(machine("m-1").provider_config(updates=updates, bootSeconds=0.5))
    live(arena, key, story)
    arena.delete(key)
    arena.run(key, 4000)
    assert not arena.exists(key)
    assert arena.world.hosts() == ()
    assert arena.nodes() == []
    assert "agent" in {p["metadata"]["name"] for p in arena.view.all(POD)}


def host_reads() -> st.SearchStrategy[HostRead]:
    present = st.builds(
        lambda state, ids, spec_hash: HostPresent(
            Host("h-1", "uid-m-1", "m-1", ids, state, spec_hash, failure="broken")
        ),
        st.sampled_from(HostState),
        st.sampled_from(["", "sim://1", "sim://2"]),
        st.sampled_from(["other", "same"]),
    )
    return st.one_of(present, st.just(HostAbsent()), st.just(HostUnknown("silence")))


@usually(80)
@given(
    host=host_reads(),
    provider_id=st.sampled_from(["", "sim://1"]),
    replaced=st.sampled_from(["", "sim://1", "sim://2"]),
    deleting=st.booleans(),
    problem=st.booleans(),
    node_of=st.sampled_from(["nobody", "m-1", "m-2", "unclaimed"]),
)
def test_any_world_at_all_makes_a_plan_that_is_safe(
    host: HostRead, provider_id: str, replaced: str, deleting: bool, problem: bool, node_of: str
) -> None:
    builder = machine("m-1")
    if provider_id:
        builder.provider_id(provider_id)
    if replaced:
        builder.status["replacement"] = {"providerID": replaced, "reason": "so", "startedAt": "2026-06-01T11:00:00Z"}
    if deleting:
        builder.deleting(5, names.MACHINE_FINALIZER)
    view = FakeView(builder)
    if node_of != "nobody":
        other = node("n-1").provider_id("sim://1")
        view.put(other if node_of == "unclaimed" else other.of(machine(node_of).provider_id("sim://1")))
    problems = (ConfigProblem("providerConfig.value.x", "is wrong"),) if problem else ()
    observed = RECONCILER.observe(Key("default", "m-1"), view, HostReads(host, problems))
    assert observed is not None
    actions = list(RECONCILER.plan(observed).actions())
    creates = [action for action in actions if isinstance(action, CreateHost)]
    if creates:
        assert isinstance(host, HostAbsent)
        assert not provider_id
        assert not deleting
        assert not problem
    if node_of == "m-2":
        assert not any(isinstance(action, Delete) for action in actions)
    if isinstance(host, HostUnknown):
        assert not any(type(action).__name__ in {"CreateHost", "UpdateHost", "DeleteHost"} for action in actions)
