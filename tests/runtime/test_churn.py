"""Memory follows what exists: after many objects were made and deleted, nothing of them is left."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from api.remembered import remembered
from controllers.kernel import machine_facts
from controllers.kernel.refs import MACHINE, NODE, POD, key_of
from controllers.machine import host_spec
from hack.churned import churning, until_none_is_left
from nodewright.apiserver.store.change_log import KEPT_CHANGES, Change, ChangeLog
from nodewright.runtime.cache import slimming
from nodewright.runtime.fleet.lifetimes import Lifetimes
from tests.builders.clock import NOW
from tests.builders.objects import machine, node
from tests.runtime.test_any_json import Scene, reads, reconcilers, wake_all
from tests.runtime.virtual_time import now, virtual_time

PAD = 12 * 1024
"""Bytes of each Machine beside what it needs."""


def made_and_deleted(scene: Scene, number: int) -> None:
    """One Machine and its Node come, are seen by every controller, and go."""
    body = machine(f"churn-{number}").ready().build()
    body["metadata"]["annotations"] = {"pad": f"{number}" + "x" * PAD}
    body["metadata"]["resourceVersion"] = str(100 + 4 * number)
    scene.cache.watched(MACHINE, "ADDED", copy.deepcopy(body))
    scene.cache.watched(NODE, "ADDED", node(f"churn-{number}").of(body).ready().build())
    changed = copy.deepcopy(body)
    changed["metadata"]["resourceVersion"] = str(101 + 4 * number)
    changed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    before = scene.cache.stores[MACHINE].get(key_of(body))
    scene.cache.watched(MACHINE, "MODIFIED", changed)
    after = scene.cache.stores[MACHINE].get(key_of(body))
    for reconciler in RECONCILERS:
        wake_all(reconciler, scene, before, after, MACHINE)
        if reconciler.kind == MACHINE:
            for hosts in reads(reconciler, key_of(body)):
                reconciler.plan(reconciler.observe(key_of(body), scene.view, hosts))
    scene.cache.watched(NODE, "DELETED", node(f"churn-{number}").of(body).build())
    scene.cache.watched(MACHINE, "DELETED", copy.deepcopy(changed))


RECONCILERS = reconcilers()


def grown_by(count: int, base: int) -> float:
    """Traced bytes after ``count`` Machines more, as a part of those before, which are ``base`` at least."""
    scene = Scene()
    lifetimes = Lifetimes(scene.cache, lambda: NOW)
    for number in range(50):
        made_and_deleted(scene, number)
    tracemalloc.start()
    try:
        there = bytearray(base)  # what is traced before is small: 10 % of it would be nothing
        for number in range(50, 60):
            made_and_deleted(scene, number)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(60, 60 + count):
            made_and_deleted(scene, number)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(there) == base
    assert not lifetimes._phases.keys() & {f"uid-churn-{number}" for number in range(60 + count)}
    return after / before


def test_machines_that_are_gone_leave_nothing_in_memory() -> None:
    assert grown_by(300, 2_000_000) < 1.1, "300 of 12 KiB each are 3.6 MB, and 2 MB were there"


@pytest.mark.slow
def test_ten_thousand_machines_that_are_gone_leave_nothing_in_memory() -> None:
    """A store remembers 20,000 UIDs of deleted objects, so that a late answer brings none back: 160 bytes each."""
    assert grown_by(10_000, 40_000_000) < 1.1, "10,000 of 12 KiB each are 120 MB, and 40 MB were there"


def test_what_functions_remember_of_an_object_goes_with_it() -> None:
    scene, body = Scene(), machine("m-churn").build()
    uid = body["metadata"]["uid"]
    scene.cache.watched(MACHINE, "ADDED", body)
    found = scene.cache.stores[MACHINE].get(key_of(body))
    assert found is not None
    machine_facts.read(found)
    host_spec.desired_host(found, scene.view)
    assert machine_facts._memory.of(uid) is not None
    assert host_spec._memory.of(uid) is not None
    scene.cache.watched(MACHINE, "DELETED", copy.deepcopy(body))
    assert machine_facts._memory.of(uid) is None
    assert host_spec._memory.of(uid) is None


def _change(revision: int, size: int) -> Change:
    obj: dict[str, Any] = {"metadata": {"name": "o", "resourceVersion": str(revision)}, "pad": "x" * size}
    return Change(revision, "default", "o", obj, None, False)


def test_the_change_log_is_bounded_in_bytes() -> None:
    log = ChangeLog(0, 10_000)
    for revision in range(1, 1201):
        log.append(_change(revision, 1_000_000))
        assert log.bytes <= 17 * 2**20
        assert log.holds(log.end - 1)
    assert log.floor > 1000
    assert [change.revision for change in log.since(log.position_after(1199))] == [1200]


def test_the_change_log_forgets_what_is_old_but_for_the_last_changes() -> None:
    """10 changes a second for ten minutes: those of the last 75 to 90 seconds are known, 750 to 900 of them."""
    seconds = 0.0
    log = ChangeLog(0, 10_000, clock=lambda: seconds)
    for revision in range(1, 6001):
        seconds = revision / 10
        log.append(_change(revision, 10))
        known = log.end - log.position_after(log.floor)
        assert known >= min(revision, 750)
        assert known <= 901
    seconds += 3600
    log.append(_change(6001, 10))
    assert log.end - log.position_after(log.floor) == KEPT_CHANGES


def test_a_change_that_was_undone_counts_no_more() -> None:
    log = ChangeLog(0, 100)
    for revision in range(1, 4):
        log.append(_change(revision, 1000))
    before = log.bytes
    change = _change(4, 5000)
    log.append(change)
    log.undo(change)
    assert log.bytes == before
    log.forget(3)
    assert log.bytes == 0


def test_a_single_change_beyond_the_bound_is_known_all_the_same() -> None:
    log = ChangeLog(0, 100, most_bytes=1000)
    for revision in range(1, 5):
        log.append(_change(revision, 5000))
        assert [change.revision for change in log.since(log.position_after(revision - 1))] == [revision]


def test_parts_of_pods_are_shared_within_a_bound_of_bytes() -> None:
    for number in range(3000):
        pod = {"metadata": {"name": f"p{number}", "annotations": {"a": f"{number}" + "x" * 50_000}}, "spec": {}}
        slimming.slim(POD, pod)
    assert slimming._known._bytes <= 32 * 2**20
    long = {"metadata": {"name": "p", "annotations": {"a": "x" * 50_000}}, "spec": {}}
    before = slimming._known._bytes
    slimming.slim(POD, long)
    assert slimming._known._bytes == before


def test_long_texts_of_others_are_not_remembered() -> None:
    calls: list[str] = []

    @remembered(10, longest=5)
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    assert [length("short"), length("short"), length("longer"), length("longer")] == [5, 5, 6, 6]
    assert calls == ["short", "longer", "longer"]


@virtual_time
async def test_waves_may_take_as_long_as_they_get_on() -> None:
    """However slow the machine is: it is given up once nothing has changed for a while."""
    left, asked = 1000, 0

    async def some() -> int:
        nonlocal left, asked
        asked += 1
        left -= asked % 100 == 0  # one in 100 s
        return left

    with pytest.raises(AssertionError, match="the wave: no progress for 60 s, 1000 left"):
        await until_none_is_left(some, "the wave", stalled=60.0, poll=1.0)
    asked = 0
    await until_none_is_left(some, "the wave", stalled=120.0, poll=1.0)
    assert now() > 90_000


@pytest.mark.slow
async def test_no_process_keeps_anything_of_ten_thousand_machines_that_are_gone(tmp_path: Path) -> None:
    async with churning(tmp_path) as found:
        for _ in range(4):
            await found.wave(2500)
        assert found.made == 10_000
        for name, (first, *later) in found.rss.items():
            assert max(later) < first * 1.1, f"{name}: MiB after each wave: {found.rss}"
