"""Read a MachineDeployment with its MachineSets, and patch it only if it is still the one that was read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import CliError
from nodewright.cli.rollout.naming import KIND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from api.selectors import Selector
    from controllers.kernel.refs import Kind, Obj
    from nodewright.runtime.kube.client import KubeClient

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Deployment:
    """One MachineDeployment of a cluster, for the length of a command."""

    client: KubeClient
    namespace: str
    name: str

    async def read(self) -> Obj:
        """Raises CliError if there is none."""
        from controllers.kernel.refs import MACHINE_DEPLOYMENT, Key  # noqa: PLC0415
        from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

        try:
            return await self.client.get(MACHINE_DEPLOYMENT, Key(self.namespace, self.name))
        except ApiError as error:
            if error.code != 404:
                raise
            raise CliError(
                f'{KIND} "{self.name}" not found in namespace {self.namespace}', "See `kubectl get md`"
            ) from error

    async def sets(self) -> list[dict[str, Any]]:
        """All MachineSets of the namespace."""
        from controllers.kernel.refs import MACHINE_SET  # noqa: PLC0415

        return await _all(self.client, MACHINE_SET, self.namespace)

    async def change(self, decide: Callable[[Obj], Awaitable[Mapping[str, Any]]], *, guarded: bool = False) -> bool:
        """Patch it with what ``decide`` makes of it; False if that is nothing.

        ``guarded``: only the version that was read may be patched; it is read and decided again when it has changed
        meanwhile (its controller writes its status all the time). Raises CliError if it changes for ever.
        """
        from controllers.kernel.refs import resource_version_of  # noqa: PLC0415

        for _ in range(_ATTEMPTS):
            body = await self.read()
            patch = await decide(body)
            if not patch:
                return False
            if await self._patched(body, patch, resource_version_of(body) if guarded else ""):
                return True
        raise CliError(f'{KIND} "{self.name}" changes all the time', "Try again")

    async def _patched(self, body: Obj, patch: Mapping[str, Any], version: str) -> bool:
        """False if it is of another version by now."""
        from controllers.kernel.refs import MACHINE_DEPLOYMENT, ref_of  # noqa: PLC0415
        from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

        try:
            await self.client.merge_patch(ref_of(MACHINE_DEPLOYMENT, body), patch, resource_version=version)
        except ApiError as error:
            if not error.conflict:
                raise
            return False
        return True


@asynccontextmanager
async def deployment(target: Target, namespace: str | None, name: str) -> AsyncIterator[Deployment]:
    connection = await connect(target)
    async with client_of(connection) as client:
        yield Deployment(client, namespace or connection.namespace, name)


@asynccontextmanager
async def deployments(target: Target, namespace: str | None, selector: Selector) -> AsyncIterator[list[Deployment]]:
    """Those of one namespace that ``selector`` matches, by name. Raises CliError if there is none."""
    from controllers.kernel.refs import MACHINE_DEPLOYMENT, key_of, labels_of  # noqa: PLC0415

    connection = await connect(target)
    where = namespace or connection.namespace
    async with client_of(connection) as client:
        there = await _all(client, MACHINE_DEPLOYMENT, where)
        found = sorted(key_of(obj).name for obj in there if selector.matches(labels_of(obj)))
        if not found:
            hint = f"{len(there)} have other labels" if there else "See `kubectl get md -A`"
            raise CliError(f"there is no {KIND} with labels {selector} in namespace {where}", hint)
        yield [Deployment(client, where, name) for name in found]


async def _all(client: KubeClient, kind: Kind, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    more = ""
    while True:
        page = await client.list_page(kind, continue_=more, namespace=namespace)
        found += page.items
        more = page.continue_
        if not more:
            return found
