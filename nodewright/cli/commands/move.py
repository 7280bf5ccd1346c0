"""``nodewright move``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.cluster.access import Target
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.kernel.refs import Key
    from nodewright.cli.moving.moving import Move
    from nodewright.cli.moving.sides import Side

HELP = """Move a Cluster with its Machines to another management cluster. No host is restarted and no Node drained.

All that would be copied is checked before anything is done. Killed at any moment and run again it goes on; --abort
takes all back until hosts are handed over.

Exit code 0: done; 1: it can't be moved now, or did not end; 2: wrong usage.
"""


@dataclass(frozen=True, slots=True)
class _Order:
    cluster: Key | None
    source: Target
    target: Target
    namespace: str
    check: bool
    abort: bool


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    name: Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="The Cluster's name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All Clusters of the namespace, one after the other.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NS", help="Which namespace.")] = "default",
    to_kubeconfig: Annotated[
        Path | None, typer.Option("--to-kubeconfig", metavar="FILE", help="The management cluster that is to have it.")
    ] = None,
    to_context: Annotated[
        str | None, typer.Option("--to-context", metavar="NAME", help="Its context there. [default: the current one]")
    ] = None,
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
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Copy, compare, commit, hand over the hosts, delete at the source."""
    from controllers.kernel.refs import Key  # noqa: PLC0415

    if (name is None) == (not every):
        raise CliError("name one Cluster, or say --all", code=USAGE)
    if to_kubeconfig is None and to_context is None:
        raise CliError("it is not said where to", "Name the other cluster with --to-kubeconfig or --to-context", USAGE)
    if simulated_cloud is not None:
        from nodewright.cli.moving.simulated import share_hosts_in  # noqa: PLC0415

        share_hosts_in(simulated_cloud)
    target = Target(to_kubeconfig or kubeconfig, to_context)
    key = None if name is None else Key(namespace, name)
    asyncio.run(_move(_Order(key, Target(kubeconfig, context), target, namespace, check, abort)))


async def _move(order: _Order) -> None:
    from nodewright.cli.cluster.access import client_of, connect  # noqa: PLC0415
    from nodewright.cli.moving.sides import Side  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        source = Side(await stack.enter_async_context(client_of(await connect(order.source))), "the source")
        target = Side(await stack.enter_async_context(client_of(await connect(order.target))), "the target")
        for cluster in [order.cluster] if order.cluster is not None else await _clusters(source, order.namespace):
            await _move_one(source, target, cluster, order)


async def _move_one(source: Side, target: Side, cluster: Key, order: _Order) -> None:
    from nodewright.cli.moving.moving import Move  # noqa: PLC0415
    from providers.base.registry import Registry  # noqa: PLC0415

    moving: Move = Move(source, target, cluster, Registry.installed(), lambda text: say(f"Cluster {cluster}: {text}"))
    if order.check:
        items = await moving.check()
        say(f"Cluster {cluster} can be moved now, with {len(items)} objects:")
        for item in items:
            say(f"  {item.title}{' (a copy; it stays here too)' if item.shared else ''}")
    elif order.abort:
        undone = await moving.abort()
        say(f"Cluster {cluster}: {'all is as it was' if undone else 'no move was under way'}")
    else:
        report = await moving.run()
        if report.objects:
            say(f"Cluster {cluster} has moved: {report.objects} objects, {report.hosts} hosts")


async def _clusters(source: Side, namespace: str) -> list[Key]:
    from controllers.kernel.refs import CLUSTER, key_of  # noqa: PLC0415

    found = (await source.world(namespace))[CLUSTER]
    if not found:
        raise CliError(f"there is no Cluster in namespace {namespace}", "Name another one with -n")
    return sorted(key_of(each) for each in found)
