"""Many calls that remove Nodes of one group at once: few writes, and to each caller its own answer."""

from __future__ import annotations

import asyncio

import pytest

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT
from nodewright.apiserver.app.faults import Match
from nodewright.apiserver.values import ApiError
from tests.gateways.externalgrpc.caller import (
    GROUP,
    Serving,
    bounds,
    group,
    live,
    node,
    provider_id,
    replicas,
    serving,
)
from tests.runtime.town import Town

SIXTY = 60
DONE = ("OK", "")


async def ready(town: Town, served: Serving, count: int, smallest: int = 0) -> list[str]:
    """The names of that many Machines which the gateway knows of."""
    await group(town, count, bounds(smallest, count))
    await town.until(lambda: town.ready() == count)
    await town.until(lambda: len(served.gateway.fleet.facts(GROUP).live) == count)  # type: ignore[union-attr]
    await town.until(lambda: served.gateway.fleet.facts(GROUP).applied)  # type: ignore[union-attr]
    return live(town)


def sizes_written(town: Town) -> int:
    """How often the spec of the group was written."""
    (body,) = town.objects(MACHINE_DEPLOYMENT)
    return int(body["metadata"]["generation"])


async def gone(served: Serving, town: Town, name: str) -> tuple[str, str]:
    return await served.caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node(provider_id(town, name))])


@pytest.mark.parametrize("at_once", [10, SIXTY], ids=["as the autoscaler does by default", "all at once"])
async def test_sixty_nodes_of_one_group_go_by_a_few_writes(town: Town, at_once: int) -> None:
    async with town.controllers(), serving(town) as served:
        names, before = await ready(town, served, SIXTY), sizes_written(town)
        turn = asyncio.Semaphore(at_once)

        async def one(name: str, id_: str) -> tuple[str, str]:
            async with turn:
                while (said := await served.caller.status("NodeGroupDeleteNodes", id=GROUP, nodes=[node(id_)])) != DONE:
                    if said[0] not in {"UNAVAILABLE", "DEADLINE_EXCEEDED"}:
                        break  # those only say that controllers of a busy machine take longer
                return said

        asked = [one(name, provider_id(town, name)) for name in names]
        assert set(await asyncio.gather(*asked)) == {DONE}
        assert await served.caller.size() == replicas(town) == 0
        assert sizes_written(town) - before < SIXTY / 2
        await town.until(lambda: not town.objects(MACHINE) and not town.hosts())


async def test_a_machine_that_can_not_be_marked_holds_no_other_caller_up(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        names = await ready(town, served, 4)
        machines = town.plane.store.resources.find(MACHINE.group, MACHINE.version, MACHINE.plural)
        assert machines is not None
        refused = ApiError.forbidden(machines, names[1], "by a policy")
        town.plane.faults.answer(refused, Match("patch", "machines.cluster.k8s.io", name=names[1]), times=100)
        answers = await asyncio.gather(*(gone(served, town, name) for name in names[:3]))
        assert [code for code, _ in answers] == ["OK", "UNAVAILABLE", "OK"]
        assert "by a policy" in answers[1][1]
        await town.until(lambda: live(town) == [names[1], names[3]])
        assert replicas(town) == 2


async def test_only_as_many_go_as_the_minimum_allows(town: Town) -> None:
    async with town.controllers(), serving(town) as served:
        names = await ready(town, served, 4, smallest=2)
        answers = await asyncio.gather(*(gone(served, town, name) for name in names))
        assert sorted(code for code, _ in answers) == ["FAILED_PRECONDITION"] * 2 + ["OK"] * 2
        stay = [name for name, (code, _) in zip(names, answers, strict=True) if code != "OK"]
        await town.until(lambda: live(town) == stay)
        assert replicas(town) == 2


async def test_a_caller_that_leaves_takes_no_other_with_it(town: Town) -> None:
    """Without controllers both wait; one gives up. Once the controllers act, the other's Node goes."""
    async with serving(town) as served:
        async with town.controllers():
            first, left, other, _ = await ready(town, served, 4)
        assert (await gone(served, town, first))[0] == "OK"
        leaving = asyncio.create_task(gone(served, town, left))
        waiting = asyncio.create_task(gone(served, town, other))
        await asyncio.sleep(0)
        leaving.cancel()
        code, why = await waiting
        assert (code, "yet to go" in why) == ("UNAVAILABLE", True)
        async with town.controllers():
            await town.until(lambda: len(town.objects(MACHINE)) == 3)
            assert (await gone(served, town, other))[0] == "OK"
            await town.until(lambda: len(town.objects(MACHINE)) == 2)
        assert left in live(town)
