"""Ask several management clusters at the same time; each has so many seconds, and one that fails spoils no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from controllers.kernel.refs import Key
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.cluster.snapshot import objects_of, read_cluster
from nodewright.cli.exits import CliError
from nodewright.cli.listing.rows import KINDS, Row, rows

MOST_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Answer:
    """``title``: the context, or the file. ``problem``: why there are no rows, "" if the cluster has answered."""

    title: str
    rows: tuple[Row, ...] = ()
    problem: str = ""


async def ask(sides: Sequence[tuple[str, Target]], namespace: str | None, seconds: float) -> list[Answer]:
    """In the order of ``sides``, which are titles with what they mean. ``namespace`` None: all."""
    free = asyncio.Semaphore(MOST_AT_ONCE)

    async def one(title: str, target: Target) -> Answer:
        async with free:
            try:
                async with asyncio.timeout(seconds):
                    return Answer(title, await _rows(target, namespace))
            except TimeoutError:
                return Answer(title, problem=f"no answer within {seconds:g} s")
            except CliError as error:
                return Answer(title, problem=error.message)

    return list(await asyncio.gather(*(one(title, target) for title, target in sides)))


async def _rows(target: Target, namespace: str | None) -> tuple[Row, ...]:
    connection = await connect(target)
    part = (Key(namespace or "", ""),)
    async with client_of(connection) as client:
        cache = await read_cluster(client, KINDS, dict.fromkeys(KINDS, part))
    return tuple(rows({kind: objects_of(cache, kind) for kind in KINDS}))
