"""After a guarded write that came too late: the Machines that it was for, read again before the next decision."""

from __future__ import annotations

import asyncio

from controllers.kernel.actions import Patch
from controllers.kernel.refs import MACHINE, Ref
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError
from nodewright.runtime.writes.executor import Execution


async def reread(execution: Execution, client: KubeClient, cache: Cache) -> None:
    """Machines whose patch was refused as stale, into ``cache``: else the same decision would be taken again until the
    watch has caught up.

    Raises KubeError if the API server does not say how an object is now.
    """
    patches = [failure.action for failure in execution.failures if failure.stale and isinstance(failure.action, Patch)]
    refs = dict.fromkeys(patch.target for patch in patches if patch.target.kind == MACHINE)
    async with asyncio.TaskGroup() as group:
        reads = [group.create_task(_reread(ref, client, cache)) for ref in refs]
    for read in reads:
        if error := read.result():
            raise error


async def _reread(ref: Ref, client: KubeClient, cache: Cache) -> KubeError | None:
    try:
        cache.wrote(ref.kind, await client.get(ref.kind, ref.key))
    except ApiError as error:
        if not error.not_found:
            return error
        cache.deleted(ref.kind, ref.key, ref.uid)
    except KubeError as error:
        return error
    return None
