"""A kubelet that somebody stopped is started again, if the pool says so, and so often in an hour.

The starts are counted on the host, under its lock and before each of them: two controllers, or one that is killed,
start it no more often. What does not help is left as it is, and stays said.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from providers.ssh import remote
from providers.ssh.connections import Connections
from providers.ssh.looks import Seen
from providers.ssh.pool import Pool
from providers.ssh.trouble import HostError

_log = structlog.get_logger("nodewright.ssh")
STEP = "start-kubelet"


async def repaired(connections: Connections, pool: Pool, every: tuple[Seen, ...]) -> tuple[Seen, ...]:
    """``every`` with what was done about kubelets that don't run. Never raises HostError."""
    if not pool.kubelet_starts:
        return every
    return tuple(await asyncio.gather(*(_started(connections, pool, one) for one in every)))


async def _started(connections: Connections, pool: Pool, one: Seen) -> Seen:
    if one.claim is None or not one.is_stopped:
        return one
    most = pool.kubelet_starts
    script = remote.start_kubelet(one.claim.id, most)
    try:
        answer = await connections.run(one.host, pool.secret, script, step=STEP)
    except HostError as error:
        return replace(one, repair=f"starting it again failed: {error}")
    if "spent" in answer:
        return replace(one, repair=f"it was started {most} times within an hour, and is left now")
    if "started" not in answer:  # it runs, or something else is done to the host now
        return one
    number = answer["started"][:4]
    _log.warning("a kubelet that did not run was started", pool=pool.name, host=one.host.name, number=number, most=most)
    return replace(one, repair=f"it is started again ({number} of {most} times within an hour)")
