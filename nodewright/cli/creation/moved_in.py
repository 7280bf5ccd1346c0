"""A cluster that holds its own objects: into it after `create cluster`, out of it for `delete cluster`.

The data folder remembers where a Cluster went (``moved/<namespace>.<name>.kubeconfig``, 0600), from before the move
until the cluster is taken down: without that the same files would make a second cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from api.names import MOVING_ANNOTATION
from controllers.kernel.refs import CLUSTER, Key, annotations_of
from nodewright.apiserver.app.private_files import private_folder, write_private
from nodewright.cli.cluster.access import client_of
from nodewright.cli.installation.removing import stop_controllers
from nodewright.cli.moving.journal import Phase
from nodewright.cli.moving.moving import Move
from nodewright.cli.moving.sides import Side
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from providers.base.registry import Registry

Say = Callable[[str], None]


class MovedIn:
    """The record of one Cluster in one data folder."""

    def __init__(self, folder: Path, cluster: Key, say: Say) -> None:
        self._file = folder / "moved" / f"{cluster.namespace}.{cluster.name}.kubeconfig"
        self._cluster = cluster
        self._say = say

    @property
    def has_begun(self) -> bool:
        """Whether its objects are on their way there, or there already."""
        return self._file.exists()

    def begin(self, kubeconfig: bytes) -> None:
        private_folder(self._file.parent)
        write_private(self._file, kubeconfig)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

    async def move_in(self, home: KubeClient) -> None:
        """Raises CliError."""
        async with AsyncExitStack() as stack:
            there = await self._there(stack)
            await Move(_home(home), there, self._cluster, Registry.installed(), self._say).run()

    async def bring_back(self, home: KubeClient) -> None:
        """Nothing is asked of the cluster once all is back, since it is on its way down then. Raises CliError."""
        here = _home(home)
        cluster = await here.find(CLUSTER, self._cluster)
        if cluster is not None and MOVING_ANNOTATION not in annotations_of(cluster):
            await here.forget(self._cluster)
            return
        async with AsyncExitStack() as stack:
            there = await self._there(stack)
            if await self._is_taken_back(here, there):
                return
            await Move(there, here, self._cluster, Registry.installed(), self._say).run()

    async def end_controllers(self) -> None:
        """Once all is back: the budget of their pods would hold up the drain of the last worker.

        An API that does not answer is on its way down already. Raises CliError while they look after other Machines.
        """
        try:
            async with client_of(await load_kubeconfig([self._file])) as client:
                await stop_controllers(client)
        except (ApiError, NoAnswer) as error:
            self._say(f"controllers in Cluster {self._cluster.name} can't be ended: {error}")

    async def _is_taken_back(self, here: Side, there: Side) -> bool:
        """Whether all is here because the way in was not ended; where that can't be undone, it is ended."""
        under_way = await here.journal(self._cluster)
        if under_way is None or under_way[0].source != await here.mark():
            return False
        inward = Move(here, there, self._cluster, Registry.installed(), self._say)
        if under_way[0].phase is Phase.PREPARE:
            return await inward.abort()
        await inward.run()
        return False

    async def acting_there(self) -> list[str]:
        """Controllers that have a Lease in the cluster."""
        async with AsyncExitStack() as stack:
            return await (await self._there(stack)).acting_controllers(datetime.now(UTC))

    async def _there(self, stack: AsyncExitStack) -> Side:
        connection = await load_kubeconfig([self._file])
        return Side(await stack.enter_async_context(client_of(connection)), f"Cluster {self._cluster}")


def _home(client: KubeClient) -> Side:
    return Side(client, "the data folder")
