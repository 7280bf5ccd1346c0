"""MachineSets and MachineDeployments as cloudpools, with the controllers and a simulated cloud at work behind them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api import names
from controllers.kernel.refs import MACHINE, MACHINE_SET, NODE, Key, Ref
from hack.cloudpool.pool import Pool
from hack.cloudpool.scene import options_for
from nodewright.gateways.cloudpool.instances import Instances, PoolConfig
from nodewright.gateways.cloudpool.listener import ListenerOptions
from nodewright.gateways.cloudpool.proxy import CloudpoolProxy
from nodewright.gateways.cloudpool.server import CloudpoolServer, ServerOptions
from nodewright.runtime.kube.client import KubeClient
from tests.runtime.town import Town

WORKERS = PoolConfig("MachineSet", "default", "workers")
ANY_PORT = ServerOptions(ListenerOptions(port=0), 30.0)


@dataclass
class Client:
    """A cloudpool client, and the administrator of the cluster behind the pool."""

    url: str
    session: aiohttp.ClientSession
    kube: KubeClient

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, json=body) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text else None

    async def does(self, path: str, body: Any) -> None:
        assert await self("POST", path, body) == (200, None)

    async def machines(self, *states: str) -> list[str]:
        _, pool = await self("GET", "/pool")
        return [m["id"] for m in pool["machines"] if m["machineState"] in (states or ("RUNNING",))]

    async def size(self) -> tuple[int, int, int]:
        _, size = await self("GET", "/pool/size")
        return size["desiredSize"], size["allocated"], size["active"]

    async def replicas(self) -> int:
        found = await self.kube.get(MACHINE_SET, Key("default", "workers"))
        return int(found["spec"]["replicas"])

    async def runs(self, count: int) -> list[str]:
        """Wait until so many machines run and none is on its way in or out."""

        async def settled() -> bool:
            _, pool = await self("GET", "/pool")
            return [m["machineState"] for m in pool["machines"]] == ["RUNNING"] * count

        await comes(settled)
        return await self.machines()


async def comes(ask: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(120.0):
        while not await ask():  # noqa: ASYNC110  (the facts are in servers, which know no events of ours)
            await asyncio.sleep(0.02)


@asynccontextmanager
async def served(town: Town, instances: Instances | None = None, **listener: Any) -> AsyncIterator[Client]:
    found = instances or Instances({"workers": WORKERS})
    options = ServerOptions(ListenerOptions(port=0, **listener), 30.0)
    async with (
        KubeClient(town.connection, "cloudpool") as kube,
        CloudpoolServer(kube, found, options) as server,
        aiohttp.ClientSession() as session,
    ):
        client = Client(server.url, session, town.client)
        await server._watching.current(60.0)
        yield client


@pytest.mark.parametrize("path", ["terminate", "detach", "attach", "serviceState", "membershipStatus"])
async def test_a_machine_id_that_is_no_unicode_is_refused_not_an_error_of_the_server(town: Town, path: str) -> None:
    await town.machine_set("workers", 0)
    body = {
        "terminate": {"decrementDesiredSize": False},
        "detach": {"decrementDesiredSize": False},
        "attach": {},
        "serviceState": {"serviceState": "BOOTING"},
        "membershipStatus": {"membershipStatus": {"active": True, "evictable": True}},
    }[path]
    async with served(town) as client:
        code, _ = await client("POST", f"/pool/{path}", {"machineId": "\ud800", **body})
        assert code == 400
        assert (await client("GET", "/pool"))[0] == 200


async def test_a_client_scales_a_machine_set_up_and_down_and_takes_single_machines(town: Town) -> None:
    await town.machine_set("workers", 2)
    async with town.controllers(), served(town) as client:
        first = await client.runs(2)
        assert await client.size() == (2, 2, 2)
        _, pool = await client("GET", "/pool")
        machine = pool["machines"][0]
        assert machine["membershipStatus"] == {"active": True, "evictable": True}
        assert (machine["serviceState"], machine["cloudProvider"]) == ("UNKNOWN", "simulated.nodewright.dev")
        assert datetime.fromisoformat(machine["launchTime"]).tzinfo is not None
        assert machine["metadata"]["nodeName"]

        await client.does("/pool/size", {"desiredSize": 4})
        assert (await client.size())[:1] == (4,), "at once, though the machines are still to come"
        four = await client.runs(4)
        assert set(first) < set(four)

        await client.does("/pool/terminate", {"machineId": four[0], "decrementDesiredSize": True})
        assert await client.replicas() == 3
        assert await client.runs(3) == four[1:]

        await client.does("/pool/terminate", {"machineId": four[1], "decrementDesiredSize": False})
        assert await client.replicas() == 3
        three = await client.runs(3)
        assert four[1] not in three
        assert set(four[2:]) < set(three)

        status, body = await client("POST", "/pool/terminate", {"machineId": four[0]})
        assert (status, body["message"]) == (404, f"unrecognized machine: {four[0]} is no machine of the pool")


@pytest.mark.slow
async def test_membership_protects_sets_aside_and_gives_up(town: Town) -> None:
    await town.machine_set("workers", 2)
    async with town.controllers(), served(town) as client:
        one, two = await client.runs(2)
        await say(client, one, active=True, evictable=False)
        await client.does("/pool/size", {"desiredSize": 1})
        assert await client.runs(1) == [one], "the protected one stays, whatever the set's own order"
        status, body = await client("POST", "/pool/terminate", {"machineId": one})
        assert status == 502
        assert "cannot be evicted: prevented by its membership status" in body["message"]
        await client.does("/pool/size", {"desiredSize": 0})
        assert await client.size() == (1, 1, 1), "nobody is left who may go"

        await say(client, one, active=False, evictable=False)
        assert await client.replicas() == 2
        assert (await client.size())[0] == 1
        both = await client.runs(2)
        assert await client.size() == (1, 2, 1)

        await say(client, one, active=False, evictable=True)
        await comes(lambda: gone(client, one))
        assert await client.replicas() == 1, "nobody works for a machine that is gone"
        assert two not in both
        await client.does("/pool/serviceState", {"machineId": both[-1], "serviceState": "IN_SERVICE"})
        _, pool = await client("GET", "/pool")
        assert "IN_SERVICE" in [machine["serviceState"] for machine in pool["machines"]]


async def say(client: Client, machine: str, active: bool, evictable: bool) -> None:
    status = {"active": active, "evictable": evictable}
    await client.does("/pool/membershipStatus", {"machineId": machine, "membershipStatus": status})


async def gone(client: Client, machine: str) -> bool:
    return machine not in await client.machines("REQUESTED", "PENDING", "RUNNING", "TERMINATING")


@pytest.mark.slow
async def test_a_machine_is_detached_and_attached_and_nobody_is_made_or_deleted_for_it(town: Town) -> None:
    await town.machine_set("workers", 3)
    async with town.controllers(), served(town) as client:
        three = await client.runs(3)
        await client.does("/pool/detach", {"machineId": three[1], "decrementDesiredSize": True})
        assert await client.replicas() == 2
        assert await client.runs(2) == [three[0], three[2]]
        left = await client.kube.get(MACHINE, Key("default", three[1]))
        assert not left["metadata"].get("ownerReferences")
        assert "deletionTimestamp" not in left["metadata"]

        await client.does("/pool/attach", {"machineId": three[1]})
        assert await client.replicas() == 3
        assert await client.runs(3) == three
        annotations = (await client.kube.get(MACHINE_SET, Key("default", "workers")))["metadata"].get("annotations", {})
        assert names.DISABLE_CREATE_ANNOTATION not in annotations
        await client.does("/pool/attach", {"machineId": three[1]})
        assert await client.replicas() == 3, "it was there already"
        assert (await client("POST", "/pool/attach", {"machineId": "nobody"}))[0] == 404


async def test_a_pool_that_is_not_there_says_so_and_is_served_as_soon_as_it_is(town: Town) -> None:
    told = "there is no MachineSet default/workers"
    async with served(town) as client:
        status, body = await client("GET", "/status")
        assert status == 200
        assert (body["started"], body["configured"]) == (True, True)
        assert told in body["problem"]
        status, body = await client("GET", "/pool/size")
        assert (status, body["message"]) == (502, told)
        assert "as soon as" in body["detail"]
        await town.machine_set("workers", 0)

        async def there() -> bool:
            return await client("GET", "/status") == (200, {"started": True, "configured": True})

        await comes(there)
        assert await client.size() == (0, 0, 0)


async def test_at_the_start_it_is_told_which_pools_are_missing(town: Town) -> None:
    await town.machine_set("workers", 0)
    pools = Instances({"workers": WORKERS, "typo": PoolConfig("MachineDeployment", "default", "wrokers")})
    pools.create("later")
    async with KubeClient(town.connection, "cloudpool") as kube, CloudpoolServer(kube, pools, ANY_PORT) as server:
        [told] = await server.missing(60.0)
    assert told.startswith("cloudpool typo: there is no MachineDeployment default/wrokers")


def test_it_is_told_which_object_a_pool_is_whoever_said_so(tmp_path: Path) -> None:
    file = tmp_path / "pools.json"
    pools = Instances({"workers": WORKERS}, file=file)
    pools.create("later")
    pools.start("workers", False)
    again = Instances({"workers": PoolConfig("MachineDeployment", "default", "another")}, file=file)
    assert str(again) == "later (not configured), workers (MachineSet default/workers, stopped)"
    assert str(Instances({})) == "(none yet)"


@pytest.mark.slow
async def test_several_pools_have_paths_of_their_own_and_are_configured_started_and_stopped(
    town: Town, tmp_path: Path
) -> None:
    await town.machine_set("workers", 1)
    file = tmp_path / "pools.json"
    pools = Instances({"workers": WORKERS}, file=file)
    async with town.controllers(), served(town, pools) as client:
        await client.runs(1)
        assert (await client("POST", "/cloudpools/more"))[0] == 201
        assert (await client("POST", "/cloudpools/more"))[0] == 400
        assert (await client("GET", "/pool"))[0] == 404, "there are two now: which one is meant?"
        _, urls = await client("GET", "/cloudpools")
        assert urls == [f"{client.url}/cloudpools/more", f"{client.url}/cloudpools/workers"]
        more = "/cloudpools/more"
        assert (await client("GET", f"{more}/config"))[0] == 404
        assert (await client("POST", f"{more}/start"))[0] == 400
        status, body = await client("GET", f"{more}/pool")
        assert (status, body["message"]) == (500, "attempt to invoke cloudpool before being started")
        assert (await client("POST", f"{more}/config", {"kind": "Pod", "name": "x"}))[0] == 400
        await client.does(f"{more}/config", {"kind": "MachineSet", "name": "workers"})
        await client.does(f"{more}/start", None)
        assert await client("GET", f"{more}/status") == (200, {"started": True, "configured": True})
        assert (await client("GET", f"{more}/pool/size"))[1]["desiredSize"] == 1
        await client.does(f"{more}/stop", None)
    again = Instances({}, file=file)
    assert again.names() == ["more", "workers"]
    assert again.get("more") is not None
    async with served(town, again) as client:
        assert await client("GET", "/cloudpools/more/status") == (200, {"started": False, "configured": True})
        assert (await client("DELETE", "/cloudpools/more"))[0] == 200
        assert (await client("GET", "/pool/size"))[1]["desiredSize"] == 1


@pytest.mark.slow
async def test_a_bar_that_an_interrupted_attach_left_is_taken_away_at_the_next_start(town: Town) -> None:
    await town.machine_set("workers", 1)
    bar = {"metadata": {"annotations": {names.DISABLE_CREATE_ANNOTATION: "nodewright-cloudpool/nobody"}}}
    await town.client.merge_patch(Ref(MACHINE_SET, Key("default", "workers")), bar)

    async def free() -> bool:
        found = await town.client.get(MACHINE_SET, Key("default", "workers"))
        barred = names.DISABLE_CREATE_ANNOTATION in (found["metadata"].get("annotations") or {})
        return not barred and found["spec"]["replicas"] == 0

    async with served(town):
        await comes(free)


@pytest.mark.slow
async def test_the_proxy_in_front_of_a_machine_set_drains_first_and_the_set_follows(town: Town) -> None:
    await town.machine_set("workers", 3)
    async with town.controllers(), served(town) as client:
        three = await client.runs(3)
        options = options_for(Pool(url=client.url))
        async with KubeClient(town.connection, "cloudpool-proxy") as kube, CloudpoolProxy(kube, options) as proxy:
            await proxy._watching.current(60.0)
            through = Client(proxy.url, client.session, client.kube)
            assert await through.size() == (3, 3, 3)
            await through.does("/pool/size", {"desiredSize": 2})
            assert await client.replicas() == 2
            two = await client.runs(2)
            assert set(two) < set(three)
            await through.does("/pool/terminate", {"machineId": two[0], "decrementDesiredSize": False})
            assert await client.replicas() == 2
            again = await client.runs(2)
            assert two[0] not in again
            assert two[1] in again

            async def as_many_nodes_as_machines() -> bool:
                nodes = (await town.client.list_page(NODE)).items
                closed = [node for node in nodes if node["spec"].get("taints") or node["spec"].get("unschedulable")]
                return len(nodes) == 2 and not closed

            await comes(as_many_nodes_as_machines)
