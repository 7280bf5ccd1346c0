"""Take a cluster down: workers, then control planes with the Cluster. Every step may be done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from controllers.kernel.conditions import find
from controllers.kernel.ownership import controller_of
from controllers.kernel.refs import (
    CLUSTER,
    CONTROL_PLANE,
    MACHINE,
    MACHINE_HEALTH_CHECK,
    Key,
    Kind,
    Obj,
    Ref,
    is_deleting,
    key_of,
    mapping,
    ref_of,
    spec_of,
    status_of,
)
from nodewright.cli.creation.looking import Look, look
from nodewright.cli.creation.showing import Display
from nodewright.cli.exits import CliError
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

LOOK_SECONDS = 0.5
_MOST_NAMED = 10


def next_to_delete(seen: Look, *, unreachable: bool = False) -> list[Ref]:
    """What is to be deleted now: all that is no control plane, and once that is gone the rest.

    What a set owns goes with the set, else the set would make it anew. The Cluster is asked to go with its last
    Machines: the controllers keep it until those are gone, and then expect no answer of an API whose hosts they remove.
    ``unreachable``: that API is gone already, so all goes at once.
    """
    members = list(_members(seen))
    tops = [(kind, obj) for kind, obj in members if controller_of(obj) is None and not is_deleting(obj)]
    workers = [ref_of(kind, obj) for kind, obj in tops if not runs_control_plane(obj)]
    if not unreachable and any(not runs_control_plane(obj) for _, obj in members):
        return workers
    planes = [ref_of(kind, obj) for kind, obj in tops if runs_control_plane(obj)]
    own = [ref_of(CLUSTER, seen.cluster)] if seen.cluster is not None and not is_deleting(seen.cluster) else []
    return [*own, *workers, *planes] if unreachable else [*planes, *own]


def runs_control_plane(obj: Obj) -> bool:
    """A Machine, or what owns such."""
    if obj.get("kind") == CONTROL_PLANE.name:
        return True
    spec = spec_of(obj)
    template = mapping(mapping(spec.get("template")).get("spec"))
    return any(mapping(each.get("versions")).get("controlPlane") for each in (spec, template))


def left_over(seen: Look) -> list[str]:
    """What is still there and why, each in a few words."""
    machines = [(kind, obj) for kind, obj in _members(seen) if kind == MACHINE] or list(_members(seen))
    found = [f"{kind.name} {key_of(obj).name}{_why(obj)}" for kind, obj in machines]
    return found or ([f"Cluster {key_of(seen.cluster).name}{_why(seen.cluster)}"] if seen.cluster is not None else [])


class Removal:
    """``timeout``: seconds for all of it, 0 for no limit."""

    def __init__(self, client: KubeClient, cluster: Key, display: Display, timeout: float = 0.0) -> None:
        self._client = client
        self._cluster = cluster
        self._display = display
        self._timeout = timeout
        self.left: list[str] = []
        """What was still there at the last look."""

    async def run(self, *, unreachable: bool = False) -> None:
        """Raises CliError naming what can't be removed."""
        seen = await look(self._client, self._cluster)
        if seen.empty:
            raise await self._missing()
        deadline = asyncio.timeout(self._timeout or None)
        try:
            async with deadline:
                await self._checks()
                while not seen.empty:
                    seen = await self._step(seen, unreachable=unreachable)
                self.left = []
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise CliError(f"not gone after {self._timeout:.0f} s: {named(self.left)}", WAY_OUT) from error

    async def _step(self, seen: Look, *, unreachable: bool) -> Look:
        """Delete what may go now; gives what is there a moment later."""
        self.left = left_over(seen)
        for ref in next_to_delete(seen, unreachable=unreachable):
            await self._delete(ref)
        await asyncio.sleep(LOOK_SECONDS)
        after = await look(self._client, self._cluster)
        self._display.show(after.tree, after.now)
        return after

    async def _checks(self) -> None:
        """Health checks of the Cluster would replace Machines meanwhile."""
        page = await self._client.list_page(MACHINE_HEALTH_CHECK, 0, namespace=self._cluster.namespace)
        for check in page.items:
            if spec_of(check).get("clusterName") == self._cluster.name:
                await self._delete(ref_of(MACHINE_HEALTH_CHECK, check))

    async def _delete(self, ref: Ref) -> None:
        try:
            await self._client.delete(ref)
        except ApiError as error:
            if not error.not_found and not error.conflict:
                raise
        else:
            self._display.say(f"delete {ref}")

    async def _missing(self) -> CliError:
        clusters = (await self._client.list_page(CLUSTER, 0)).items
        there = ", ".join(sorted(str(key_of(each)) for each in clusters)[:_MOST_NAMED])
        return CliError(f"Cluster {self._cluster} does not exist", f"There are: {there}" if there else "There is none")


WAY_OUT = "Run the same command again to go on; if its API is gone for good, add --unreachable"


def named(left: Iterable[str]) -> str:
    """The first few."""
    names = list(left)
    more = len(names) - _MOST_NAMED
    return "; ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _members(seen: Look) -> Iterator[tuple[Kind, Obj]]:
    for kind, objects in seen.members.items():
        yield from ((kind, obj) for obj in objects)


def _why(obj: Obj) -> str:
    for type_ in ("Deleting", "Ready"):
        found: Mapping[str, object] = mapping(find(status_of(obj).get("conditions"), type_))
        if found.get("message"):
            return f" ({found['message']})"
    return ""
