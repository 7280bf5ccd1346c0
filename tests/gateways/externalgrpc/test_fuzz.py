"""Requests that make no sense: each gets the status that fits, no size changes, and the server goes on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from nodewright.gateways.externalgrpc.server import SERVICE
from tests.gateways.externalgrpc.caller import CAPACITY, GROUP, Caller, bounds, group, node, replicas, serving
from tests.runtime.town import Town

BIG = 2**31 - 1
ODD = (
    "",
    "x",
    "MachineDeployment/default/gone",
    "Machine/default/workers",
    GROUP.lower(),
    "../../etc",
    "ä" * 300,
    "\x00",
)
IDS = ("", "x", "pending://", "pending://default/none", "pending:///", "sim://1/2/3", "ü" * 1000, "\x00", GROUP)
OPTIONAL = ("PricingNodePrice", "PricingPodPrice", "NodeGroupGetOptions")
HARMLESS = ("NodeGroups", "GPULabel", "GetAvailableGPUTypes", "Cleanup", "Refresh")


def nonsense(rng: random.Random) -> tuple[str, dict[str, Any], set[str]]:
    """A call, its fields, and the statuses of which one must come."""
    name = rng.choice(sorted(SERVICE.methods_by_name))
    odd, known = rng.choice(ODD), rng.random() < 0.5
    where = GROUP if known else odd
    if name in HARMLESS:
        return name, {}, {"OK"}
    if name in OPTIONAL:
        return name, {}, {"UNIMPLEMENTED"}
    if name == "NodeGroupForNode":
        return name, {"node": node(rng.choice(IDS), rng.choice(IDS))}, {"OK"}
    if name == "NodeGroupIncreaseSize":
        delta = rng.choice((0, -1, -BIG, BIG, 100))
        wrong = "INVALID_ARGUMENT" if delta <= 0 else "FAILED_PRECONDITION"
        return name, {"id": where, "delta": delta}, {wrong if known else "NOT_FOUND"}
    if name == "NodeGroupDecreaseTargetSize":
        delta = rng.choice((0, 1, BIG, -BIG, -100))
        wrong = "INVALID_ARGUMENT" if delta >= 0 else "FAILED_PRECONDITION"
        return name, {"id": where, "delta": delta}, {wrong if known else "NOT_FOUND"}
    if name == "NodeGroupDeleteNodes":
        nodes = [
            node(rng.choice(IDS), fake=rng.choice(("", "unregistered"))) for _ in range(rng.choice((0, 1, 2, 300)))
        ]
        return name, {"id": where, "nodes": nodes}, {"NOT_FOUND" if nodes or not known else "INVALID_ARGUMENT"}
    return name, {"id": where}, {"OK" if known else "NOT_FOUND"}


def requests(seed: int, count: int) -> Iterator[tuple[str, dict[str, Any], set[str]]]:
    rng = random.Random(seed)
    return (nonsense(rng) for _ in range(count))


async def bytes_of_no_message(caller: Caller, rng: random.Random) -> str:
    try:
        await caller.send(rng.choice(sorted(SERVICE.methods_by_name)), b"\x0a\xff" + rng.randbytes(rng.randrange(40)))
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_nonsense_is_refused_with_the_right_status_and_changes_nothing(town: Town, count: int) -> None:
    async with serving(town) as served:
        await group(town, 2, {**bounds(1, 5), **CAPACITY})
        await town.until(lambda: GROUP in served.gateway.fleet.groups())
        seen: Counter[str] = Counter()
        for name, fields, wanted in requests(count, count):
            code, why = await served.caller.status(name, **fields)
            assert code in wanted, (name, fields, code, why)
            seen[code] += 1
        rng = random.Random(count)
        for _ in range(count // 10):
            code = await bytes_of_no_message(served.caller, rng)
            assert code in ("INVALID_ARGUMENT", "OK", "UNIMPLEMENTED", "NOT_FOUND"), code
        assert set(seen) == {"OK", "UNIMPLEMENTED", "NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION"}
        assert replicas(town) == await served.caller.size() == 2
