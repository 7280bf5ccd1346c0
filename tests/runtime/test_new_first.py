"""Objects that nobody has looked at yet do not wait while an API server is slow to take what is written of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from controllers.kernel.actions import CreateHost, Patch
from controllers.kernel.plan import Plan, steps
from controllers.kernel.refs import MACHINE_SET, Key, Ref
from controllers.kernel.view import HostAbsent, HostReads
from providers.base.contract import HostIdentity, HostRequest
from tests.builders.objects import machine_set
from tests.runtime import cloud_scene
from tests.runtime.shell_stage import story

OLD, WORKERS = 20, 8


def _decider() -> Callable[[Key, HostReads | None], Plan]:
    """What is old writes once; what is new asks for a host where hosts are read."""
    written: set[Key] = set()

    def decide(key: Key, hosts: HostReads | None) -> Plan:
        if not key.name.startswith("old"):
            return _with_host(key, hosts)
        if key in written:
            return Plan()
        written.add(key)
        return Plan(steps([Patch(Ref(MACHINE_SET, key, f"uid-{key.name}"), {}, "why")]))

    return decide


def _with_host(key: Key, hosts: HostReads | None) -> Plan:
    if hosts is not None and hosts.host == HostAbsent() and not hosts.in_flight:
        identity = HostIdentity(f"uid-{key.name}", "default", key.name)
        request = HostRequest(identity, cloud_scene.CONFIG, "h1")
        return Plan(steps([CreateHost(Ref(MACHINE_SET, key, identity.machine_uid), request, "why")]))
    return Plan()


async def _with_slow_writes(stage: Any, *, hosts: bool) -> tuple[Any, asyncio.Event]:
    """A stage on which twenty objects write and get no answer until the event is set."""
    s = stage(_decider(), hosts=hosts, workers=WORKERS)
    answered = s.hold_writes()
    s.cache.listed(MACHINE_SET, [machine_set(f"old-{number}").build() for number in range(OLD)], "95")
    await asyncio.sleep(10)
    assert 0 < s.reconciles < OLD, "some are under way, the others wait for them"
    return s, answered


@story
async def test_a_new_object_is_looked_at_while_the_writes_of_others_wait(stage: Any) -> None:
    s, answered = await _with_slow_writes(stage, hosts=False)
    s.show(MACHINE_SET, machine_set("new").version("100"), "ADDED")
    await asyncio.sleep(0.1)
    assert s.reconciler.reconciles[-1][0].name == "new"
    answered.set()
    await s.quiet()
    assert {key.name for key, _ in s.reconciler.reconciles} == {"new", *(f"old-{number}" for number in range(OLD))}


@story
async def test_its_host_is_made_meanwhile_though_it_had_to_wait_for_a_list(stage: Any) -> None:
    s, answered = await _with_slow_writes(stage, hosts=True)
    lists = s.hosts.cloud.lists()
    s.show(MACHINE_SET, machine_set("new").version("100"), "ADDED")
    await asyncio.sleep(5)
    assert s.hosts.cloud.lists() > lists, "it is not known before that it has none"
    assert "create uid-new" in s.hosts.cloud.calls
    answered.set()
    await s.quiet()


@story
async def test_what_has_been_looked_at_waits_as_before(stage: Any) -> None:
    """Or else a stream of changes of what is known would take the workers that are kept."""
    s, answered = await _with_slow_writes(stage, hosts=False)
    s.show(MACHINE_SET, machine_set("new").version("100"), "ADDED")
    await asyncio.sleep(0.1)
    before = s.reconciles
    s.show(MACHINE_SET, machine_set("new").version("101"))
    await asyncio.sleep(5)
    assert s.reconciles == before
    answered.set()
    await s.quiet()
    assert s.reconciles > before
