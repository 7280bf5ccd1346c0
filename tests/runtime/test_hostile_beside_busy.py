"""A hostile namespace beside a busy one, the controllers in a process of their own: nothing of the busy one changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from controllers.kernel.refs import MACHINE, NODE, Ref, key_of
from hack.hostile import busy
from hack.hostile.beside import Scene, scene
from tests.realplane import REAL, WHOLE, require

GROWTH_MIB = 256
"""What the process may take beyond its memory after the first pair of cycles, where the pod's limit is 1024."""
MEETING = ("provider id", "pause, change, delete", "same name", "text", "structured", "bombs", "servers", "flood")
"""Attacks that are known by what the controllers answer to have reached them."""


async def _whole_set(found: Scene) -> None:
    """Every attack once, while nobody of the busy namespace asks for anything: nothing there is to change."""
    await busy.until(lambda: not found.busy.faults(), "the Nodes have their labels and taints")
    before = found.busy.as_it_is()
    for name in found.hostile.attacks():
        await found.hostile.one(name)
    assert found.busy.as_it_is() == before
    missed = [name for name in MEETING if not found.hostile.took_effect[name]]
    assert not missed, f"these attacks have not reached the controllers: {missed}"


def _holds(found: Scene, holder: str) -> None:
    assert found.busy.faults() == []
    assert not [key for key in found.measured.rounds if key[1] == "error"], "a reconcile has raised"
    assert f"_{found.run.pid}_" in f"_{holder}_", "the Lease is of another process"


async def _a_change_would_have_been_seen(found: Scene) -> None:
    """A label of somebody else on a Node of the busy namespace, and a Machine that its owner did not delete."""
    target = Ref(NODE, key_of(found.busy.nodes()[0]))
    await found.client.merge_patch(target, {"metadata": {"labels": {"evil.example.com/x": ""}}})
    await found.client.delete(Ref(MACHINE, key_of(found.busy.machines()[0])))
    await busy.until(lambda: len(found.busy.faults()) >= 2, "the label and the deletion are seen")


@pytest.mark.slow
async def test_what_a_hostile_namespace_does_changes_nothing_of_a_busy_one(tmp_path: Path) -> None:
    async with scene(tmp_path, flood=30) as found:
        before = await found.holder()
        await _whole_set(found)
        found.begin()
        await found.busy.cycle()
        await found.stop()
        await found.scrape()
        assert await found.holder() == before
        _holds(found, before)
        await _a_change_would_have_been_seen(found)


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, pytest.param(True, marks=REAL)], ids=["embedded", "real"])
async def test_ten_minutes_of_it_change_nothing_and_memory_is_bounded(tmp_path: Path, real: bool) -> None:
    if real:
        require(WHOLE)
    async with scene(tmp_path, real=real, flood=100) as found:
        holder, end = await found.holder(), time.monotonic() + 600
        await _whole_set(found)
        while time.monotonic() < end:
            await found.pair()
            assert found.busy.faults() == []
        await found.scrape()
        assert await found.holder() == holder
        _holds(found, holder)
        assert max(found.measured.rss_mib) < found.measured.rss_mib[0] + GROWTH_MIB
        assert found.hostile.machines > 1000
        assert len(found.busy.made) > busy.PER_CYCLE
