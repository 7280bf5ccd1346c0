"""``nodewright move``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.archives.keys import KeyFlags, Keys
from nodewright.cli.cluster.access import Target
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.options import Context, Kubeconfig
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.kernel.refs import Key
    from nodewright.cli.moving.moving import Move
    from nodewright.cli.moving.sides import Side

HELP = """Move a Cluster with its Machines to another management cluster, or by way of an encrypted archive.

No host is restarted and no Node drained.

All that would be copied is checked before anything is done. Killed at any moment and run again it goes on; --abort
takes all back until hosts are handed over.

Exit code 0: done; 1: it can't be moved now, or did not end; 2: wrong usage.
"""


@dataclass(frozen=True, slots=True)
class EndFlags:
    """Where from, and where to."""

    to_kubeconfig: Annotated[
        Path | None, typer.Option("--to-kubeconfig", metavar="FILE", help="The management cluster that is to have it.")
    ] = None
    to_context: Annotated[
        str | None, typer.Option("--to-context", metavar="NAME", help="Its context there. [default: the current one]")
    ] = None
    to_directory: Annotated[
        Path | None,
        typer.Option("--to-directory", metavar="DIR", help="Into an encrypted archive there, until it is taken up."),
    ] = None
    from_directory: Annotated[
        Path | None, typer.Option("--from-directory", metavar="DIR", help="Out of the archive that lies there.")
    ] = None
    kubeconfig: Kubeconfig = None
    context: Context = None

    def ends(self) -> tuple[Target | Path, Target | Path]:
        """Source and target; a folder holds archives. Raises CliError (usage)."""
        elsewhere = self.to_kubeconfig is not None or self.to_context is not None
        if (self.to_directory is not None) + (self.from_directory is not None) + elsewhere > 1 and not (
            self.from_directory is not None and self.to_directory is None
        ):
            raise CliError("several places are named", "Name one of --to-kubeconfig and --to-directory", USAGE)
        here = Target(self.kubeconfig, self.context)
        if self.from_directory is not None:
            there = Target(self.to_kubeconfig or self.kubeconfig, self.to_context) if elsewhere else here
            return self.from_directory, there
        if self.to_directory is not None:
            return here, self.to_directory
        if not elsewhere:
            hint = "Name the other cluster with --to-kubeconfig or --to-context, or a folder with --to-directory"
            raise CliError("it is not said where to", hint, USAGE)
        return here, Target(self.to_kubeconfig or self.kubeconfig, self.to_context)


@dataclass(frozen=True, slots=True)
class _Order:
    """``keys``: of the archive, if one of the ends is a folder."""

    cluster: Key | None
    ends: tuple[Target | Path, Target | Path]
    keys: Keys
    namespace: str
    check: bool
    abort: bool


@with_flags
def command(  # noqa: PLR0913
    *,
    name: Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="The Cluster's name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All Clusters of the namespace, one after the other.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NS", help="Which namespace.")] = "default",
    ends: EndFlags,
    key: KeyFlags,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether it can be moved now, and what would.")
    ] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Take back a move that has not handed hosts over yet.")
    ] = False,
    simulated_cloud: Annotated[
        Path | None,
        typer.Option("--simulated-cloud", metavar="DIR", help="Where both management clusters keep simulated hosts."),
    ] = None,
) -> None:
    """Copy, compare, commit, hand over the hosts, delete at the source."""
    from controllers.kernel.refs import Key  # noqa: PLC0415

    if (name is None) == (not every):
        raise CliError("name one Cluster, or say --all", code=USAGE)
    source, target = ends.ends()
    keys = Keys()
    if isinstance(source, Path) or isinstance(target, Path):
        keys = key.keys(confirm=isinstance(target, Path))
    if simulated_cloud is not None:
        from nodewright.cli.moving.simulated import share_hosts_in  # noqa: PLC0415

        share_hosts_in(simulated_cloud)
    cluster = None if name is None else Key(namespace, name)
    asyncio.run(_move(_Order(cluster, (source, target), keys, namespace, check, abort)))


async def _move(order: _Order) -> None:
    async with AsyncExitStack() as stack:
        ends = [
            end if isinstance(end, Path) else await _cluster(stack, end, title)
            for end, title in zip(order.ends, ("the source", "the target"), strict=True)
        ]
        for cluster in [order.cluster] if order.cluster is not None else await _clusters(ends[0], order.namespace):
            await _move_one(ends, cluster, order)


async def _cluster(stack: AsyncExitStack, target: Target, title: str) -> Side:
    from nodewright.cli.cluster.access import client_of, connect  # noqa: PLC0415
    from nodewright.cli.moving.sides import Side  # noqa: PLC0415

    return Side(await stack.enter_async_context(client_of(await connect(target))), title)


async def _move_one(ends: list[Side | Path], cluster: Key, order: _Order) -> None:
    from nodewright.cli.moving.moving import Move  # noqa: PLC0415
    from providers.base.registry import Registry  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        source = _side(stack, ends[0], cluster, order, new=False)
        target = _side(stack, ends[1], cluster, order, new=True)
        moving = Move(source, target, cluster, Registry.installed(), lambda text: say(f"Cluster {cluster}: {text}"))
        if order.check:
            await _check(moving, cluster)
            return
        if order.abort:
            undone = await moving.abort()
            say(f"Cluster {cluster}: {'all is as it was' if undone else 'no move was under way'}")
        else:
            report = await moving.run()
            if report.objects:
                say(f"Cluster {cluster} has moved: {report.objects} objects, {report.hosts} hosts")
        await _remove_empty(target if order.abort else source)


async def _check(moving: Move, cluster: Key) -> None:
    items = await moving.check()
    say(f"Cluster {cluster} can be moved now, with {len(items)} objects:")
    for item in items:
        say(f"  {item.title}{' (a copy; it stays here too)' if item.shared else ''}")


def _side(stack: AsyncExitStack, end: Side | Path, cluster: Key, order: _Order, *, new: bool) -> Side:
    if not isinstance(end, Path):
        return end
    from nodewright.cli.moving.archive import archive  # noqa: PLC0415

    return stack.enter_context(archive(end, cluster, order.keys, new=new, look=new and order.check))


async def _remove_empty(side: Side) -> None:
    """An archive whose Cluster is elsewhere holds Secrets, and is of no use any more."""
    from nodewright.cli.moving.archive import ArchiveSide  # noqa: PLC0415

    if isinstance(side, ArchiveSide) and await side.discard_if_empty():
        say(f"{side.title} is removed: its Cluster is not in it any more")


async def _clusters(source: Side | Path, namespace: str) -> list[Key]:
    from nodewright.cli.moving.archive import clusters_in  # noqa: PLC0415

    found = clusters_in(source, namespace) if isinstance(source, Path) else await _live(source, namespace)
    if not found:
        raise CliError(f"there is no Cluster in namespace {namespace}", "Name another one with -n")
    return found


async def _live(source: Side, namespace: str) -> list[Key]:
    """Those that are there, and those of which a move took the Cluster away and did not end."""
    from controllers.kernel.refs import CLUSTER, SECRET, key_of  # noqa: PLC0415
    from nodewright.cli.moving.journal import clusters_of  # noqa: PLC0415

    world = await source.world(namespace)
    return sorted({*(key_of(each) for each in world[CLUSTER]), *clusters_of(world[SECRET])})
