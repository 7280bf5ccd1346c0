"""Machines divided between processes: each is served once, and all together do what one would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from api import names
from api.selectors import parse
from controllers.kernel.refs import MACHINE, Ref, key_of
from nodewright.cli.election import reconcilers_named
from nodewright.runtime.manager import Manager
from tests.runtime.town import Town

BLUE = f"{names.SHARD_LABEL}=blue"


@asynccontextmanager
async def process(town: Town, controllers: str, selector: str = "") -> AsyncIterator[Manager]:
    before = town.options
    town.options = replace(before, reconcilers=reconcilers_named(controllers), machines=parse(selector))
    async with town.controllers() as manager:
        town.options = before
        yield manager


async def test_each_shard_makes_hosts_for_its_own_machines_only(town: Town) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(process(town, "*,-machine"))
        blue = await stack.enter_async_context(process(town, "machine", BLUE))
        await town.machine_set("ms", 4)
        await town.until(lambda: len(town.objects(MACHINE)) == 4)
        for machine in town.objects(MACHINE)[:2]:
            labels = {"labels": {names.SHARD_LABEL: "blue"}}
            await town.client.merge_patch(Ref(MACHINE, key_of(machine)), {"metadata": labels})
        await town.until(lambda: town.ready() == 2)
        await town.until(lambda: all(c.queue.idle for c in blue.controllers))
        assert town.hosts() == 2, "nobody serves the others yet"
        await stack.enter_async_context(process(town, "machine"))
        await town.until(lambda: town.ready() == 4)
        assert town.hosts() == 4
        await town.scale("ms", 0)
        await town.until(lambda: not town.objects(MACHINE) and not town.hosts())


async def test_a_machine_that_changes_its_shard_changes_hands(town: Town) -> None:
    async with process(town, "*"), process(town, "machine", BLUE):
        await town.machine_set("ms", 1)
        await town.until(lambda: town.ready() == 1)
        (machine,) = town.objects(MACHINE)
        labels = {"labels": {names.SHARD_LABEL: "blue"}}
        await town.client.merge_patch(Ref(MACHINE, key_of(machine)), {"metadata": labels})
        await town.client.delete(Ref(MACHINE, key_of(machine)))
        await town.until(lambda: all(m["metadata"]["uid"] != machine["metadata"]["uid"] for m in town.objects(MACHINE)))
        await town.until(lambda: town.ready() == 1 and town.hosts() == 1)
