"""Many requests at once: each gets its own answer, and none is turned away."""

from __future__ import annotations

import asyncio

import pytest

from nodewright.gateways.cloudpool.instances import Instances, PoolConfig
from tests.gateways.cloudpool.test_server import comes, served
from tests.runtime.town import Town

REQUESTS = 100


@pytest.mark.e2e
@pytest.mark.parametrize("decrement", [True, False], ids=["smaller", "replaced"])
async def test_a_hundred_machines_are_terminated_at_once(town: Town, decrement: bool) -> None:
    await town.machine_set("workers", REQUESTS)
    pools = Instances({"workers": PoolConfig("MachineSet", "default", "workers")})
    async with town.controllers(), served(town, pools) as client:
        names = await client.runs(REQUESTS)
        body = {"decrementDesiredSize": decrement}
        await asyncio.gather(*(client.does("/pool/terminate", {"machineId": name, **body}) for name in names))

        async def all_gone() -> bool:
            _, pool = await client("GET", "/pool")
            return not {machine["id"] for machine in pool["machines"]} & set(names)

        await comes(all_gone)
        assert (await client.size())[0] == (0 if decrement else REQUESTS)


async def test_bodies_that_do_not_arrive_keep_no_other_request_out(town: Town) -> None:
    await town.machine_set("workers", 1)
    pools = Instances({"workers": PoolConfig("MachineSet", "default", "workers")})
    async with town.controllers(), served(town, pools, in_flight=10) as client:
        await client.runs(1)
        host, port = client.url.removeprefix("http://").split(":")
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
        for _, writer in slow:
            writer.write(b"POST /pool/size HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n")
            writer.write(b"Content-Type: application/json\r\n\r\n{")
            await writer.drain()
        for _ in range(20):
            assert (await client("GET", "/pool"))[0] == 200
            await client.does("/pool/size", {"desiredSize": 1})
        for _, writer in slow:
            writer.close()
