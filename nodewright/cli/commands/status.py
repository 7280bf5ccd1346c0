"""``nodewright status``."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.choosing import AllNamespaces, Labels, selector_of
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.commands.describe import leases_of
from nodewright.cli.exits import FAILED
from nodewright.cli.options import Context, Kubeconfig, Namespace
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from api.selectors import Selector
    from nodewright.reports.fleet.summary import Fleet

HELP = """Show the whole fleet on one screen: what there is, who decides, and only what is wrong, with its cause.

Exit code 0: nothing is wrong; 1: something is; 2: wrong usage.
"""
EVERY_SECONDS = 2.0


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    labels: Labels = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it anew every two seconds, until Ctrl-C.")] = False,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    target = Target(kubeconfig, context)
    namespace = None if all_namespaces else namespace
    selector = selector_of(labels)
    while True:
        fleet = asyncio.run(_look(target, namespace, selector))
        _show(fleet, output, anew=watch)
        if not watch:
            break
        asyncio.run(asyncio.sleep(EVERY_SECONDS))
    if fleet.problems:
        raise typer.Exit(FAILED)


async def _look(target: Target, namespace: str | None, selector: Selector) -> Fleet:
    from controllers.kernel.refs import MACHINE_CLASS, key_of  # noqa: PLC0415
    from nodewright.cli.cluster.platform import platform_of  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import now_view, objects_of, read_cluster  # noqa: PLC0415
    from nodewright.reports.chosen import chosen  # noqa: PLC0415
    from nodewright.reports.fleet.summary import TOPS, summarize  # noqa: PLC0415
    from nodewright.reports.tree.serving import ended, live  # noqa: PLC0415

    async with client_of(await connect(target)) as client:
        cache = await read_cluster(client)
        leases, platform = await asyncio.gather(leases_of(client), platform_of(client))
    view = now_view(cache)
    everything = {
        kind: [obj for obj in objects_of(cache, kind) if namespace is None or key_of(obj).namespace == namespace]
        for kind in (*TOPS, MACHINE_CLASS)
    }
    objects = chosen(everything, selector)
    serving, over = (live(leases, view.now), ended(leases, view.now)) if not isinstance(leases, str) else (None, ())
    return replace(summarize(view, objects, serving, over), platform=platform)


def _show(fleet: Fleet, output: Output, *, anew: bool) -> None:
    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.fleet.showing import as_lines, as_value  # noqa: PLC0415

    if output is not Output.TEXT:
        show(as_value(fleet), output)
        return
    out = console()
    if anew and sys.stdout.isatty():
        out.clear()
    for line in as_lines(fleet, min(out.width, 120)):
        out.print(line, soft_wrap=True)
