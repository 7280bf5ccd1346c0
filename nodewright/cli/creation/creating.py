"""Make a cluster out of what was declared. Every step may be done twice, so a run goes on where another one ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.kernel.node_policy import endpoint_of, kubeconfig_secret_of
from controllers.kernel.refs import CLUSTER, SECRET, Key, Obj
from nodewright.cli.creation import kubeconfig_file
from nodewright.cli.creation.addons import AddOn, AddOns
from nodewright.cli.creation.applying import Applier
from nodewright.cli.creation.declared import Declared
from nodewright.cli.creation.looking import look
from nodewright.cli.creation.readiness import missing
from nodewright.cli.creation.showing import Display
from nodewright.cli.exits import CliError
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.kube.errors import ApiError, ConfigurationError
from nodewright.runtime.workloads.secret import connection_in

LOOK_SECONDS = 0.5
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Order:
    """``timeout``: seconds for all of it, 0 for no limit. ``kubeconfig``: where the new cluster's is written."""

    declared: Declared
    addons: Sequence[AddOn]
    kubeconfig: Path
    timeout: float = 0.0


class Creation:
    """``home`` is the way to the plane that holds the objects."""

    def __init__(self, client: KubeClient, home: Connection, order: Order, display: Display) -> None:
        self._client = client
        self._home = home
        self._order = order
        self._display = display
        self.own_api = True
        """Whether the cluster has an API of its own; else its Nodes are in the plane."""

    async def run(self) -> None:
        """Raises CliError."""
        order = self._order
        kubeconfig_file.must_be_free(order.kubeconfig, await self._kubeconfig())
        addons = AddOns(order.addons, self._reach, self._display.say)
        deadline = asyncio.timeout(order.timeout or None)
        left = ["nothing was applied yet"]
        try:
            async with deadline:
                await self._apply()
                await _both(addons.apply(), self._until_ready(left))
                await addons.until_at_work()
        except TimeoutError as error:
            if not deadline.expired():
                raise
            message = "; ".join(left[:_MOST_NAMED]) or f"it waits {addons.waits_for}"
            hint = "The objects are kept: run the same command again to go on"
            raise CliError(f"not done after {order.timeout:.0f} s: {message}", hint) from error
        await self._write_kubeconfig()

    async def _apply(self) -> None:
        applier = Applier(self._client)
        for obj in self._order.declared.objects:
            _, now = await applier.apply(obj)
            if now["metadata"].get("deletionTimestamp"):
                title = f"{obj['kind']} {obj['metadata']['name']}"
                raise CliError(f"{title} is being deleted", "Wait until it is gone (nodewright delete cluster)")
        self._display.say(f"{len(self._order.declared.objects)} objects applied")

    async def _until_ready(self, left: list[str]) -> None:
        """``left`` tells what is not ready."""
        while True:
            seen = await look(self._client, self._order.declared.cluster)
            self._display.show(seen.tree, seen.now)
            left[:] = missing(seen.members)
            if not left and await self._has_way(seen.cluster):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _has_way(self, cluster: Obj | None) -> bool:
        """Whether its kubeconfig is there, if it is to have one."""
        kubeconfig = await self._kubeconfig()
        self.own_api = bool(endpoint_of(cluster)) or kubeconfig is not None
        return kubeconfig is not None or not self.own_api

    async def _reach(self) -> Connection | None:
        cluster = await self._client.get(CLUSTER, self._order.declared.cluster)
        secret = await self._secret()
        if secret is not None:
            return await asyncio.to_thread(connection_in, secret)
        return None if endpoint_of(cluster) else self._home

    async def _write_kubeconfig(self) -> None:
        content = await self._kubeconfig()
        if content is not None:
            await asyncio.to_thread(kubeconfig_file.write, self._order.kubeconfig, content)

    async def _kubeconfig(self) -> bytes | None:
        secret = await self._secret()
        try:
            return kubeconfig_file.content_of(secret) if secret is not None else None
        except ConfigurationError as error:
            raise CliError(str(error), "Correct the Secret") from error

    async def _secret(self) -> Obj | None:
        key: Key = kubeconfig_secret_of(self._order.declared.cluster)
        try:
            return await self._client.get(SECRET, key)
        except ApiError as error:
            if error.not_found:
                return None
            raise


async def _both(first: Coroutine[Any, Any, None], second: Coroutine[Any, Any, None]) -> None:
    """Until both are done, or one has failed: that ends the other, and its error is raised."""
    tasks = [asyncio.ensure_future(each) for each in (first, second)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
