"""``nodewright plan``."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.choosing import AllNamespaces, Files, Labels, files_of, selector_of
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig, Namespace
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from api.selectors import Selector
    from controllers.kernel.refs import Key, Kind, Obj
    from nodewright.cli.dryrun.foresee import Prospect
    from nodewright.cli.dryrun.in_memory import InMemoryCluster
    from nodewright.cli.manifests.findings import Finding
    from nodewright.runtime.cache.cache import Cache

HELP = """Dry run: what the controllers would do now, and why. Nothing is written and no provider is asked.

Without FILE: for the objects of the cluster as they are. With FILE: as if those manifests were applied, onto an empty
cluster or (with --kubeconfig, --context or --live) onto that one. Exit code 0: worked out; 1: a manifest is wrong or
an object can't go on; 2: wrong usage.
"""


@dataclass(frozen=True, slots=True)
class Inputs:
    """``objects``: what is applied on paper; ``target`` None: onto an empty cluster."""

    objects: tuple[Mapping[str, Any], ...]
    target: Target | None
    namespace: str | None
    """Of objects that name none; None: that of the kubeconfig's context, or "default"."""
    selector: Selector


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Manifests to apply on paper; - is standard input.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="With FILE: onto the current cluster instead of an empty one.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also status writes, events and notes; no grouping.")
    ] = False,
    filenames: Files = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    labels: Labels = "",
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    objects = _checked(files_of(files, filenames))
    on_live = not objects or live or kubeconfig is not None or context is not None
    target = Target(kubeconfig, context) if on_live else None
    shown = None if all_namespaces else namespace
    prospects = asyncio.run(foresee(Inputs(objects, target, namespace, selector_of(labels))))
    prospects = [each for each in prospects if shown is None or each.key.namespace in {shown, ""}]
    title = _title(objects, on_live)
    if output is not Output.TEXT:
        from nodewright.cli.dryrun.showing import as_data  # noqa: PLC0415

        show({"title": title, "objects": as_data(prospects)}, output)
    else:
        _print(prospects, title, everything)
    if any(prospect.failed for prospect in prospects):
        raise typer.Exit(FAILED)


def _title(objects: tuple[Mapping[str, Any], ...], on_live: bool) -> str:
    if not objects:
        return "If nothing is changed"
    return f"If these {len(objects)} objects were applied {'to this cluster' if on_live else 'to an empty cluster'}"


def _refused(findings: Sequence[Finding]) -> CliError:
    for finding in findings:
        say(finding.line())
    return CliError(f"{len(findings)} errors in the manifests", "Correct them first; nothing was worked out")


def _checked(files: list[str]) -> tuple[Mapping[str, Any], ...]:
    """The objects of the files, defaults filled in. Raises CliError if one of them is wrong."""
    from nodewright.cli.commands.validate import check_text, texts  # noqa: PLC0415
    from nodewright.cli.manifests.checks import Checker, with_defaults  # noqa: PLC0415
    from nodewright.cli.manifests.documents import Document, read  # noqa: PLC0415
    from nodewright.cli.manifests.findings import in_order  # noqa: PLC0415

    if not files:
        return ()
    checker = Checker()
    read_texts = texts(files)
    findings = in_order(f for name, text in read_texts for f in check_text(checker, name, text))
    if findings:
        raise _refused(findings)
    documents = [part for _, text in read_texts for part in read(text) if isinstance(part, Document)]
    objects = tuple(obj for document in documents for obj in with_defaults(document.data))
    if not objects:
        raise CliError("no Nodewright object in these files", "Name a file with a Cluster, Machine or the like", USAGE)
    return objects


async def foresee(ask: Inputs) -> list[Prospect]:
    """What each object comes to. Raises CliError."""
    from nodewright.cli.dryrun.foresee import DryRun  # noqa: PLC0415
    from nodewright.cli.dryrun.in_memory import InMemoryCluster  # noqa: PLC0415
    from nodewright.runtime.cache.cache import Cache  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import kinds_of, on_request  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import reconcilers as every_reconciler  # noqa: PLC0415

    reconcilers = (on_request()["controlplane"](), *every_reconciler())
    kinds = kinds_of(reconcilers)
    namespace = ask.namespace or "default"
    if ask.target is None:
        cache = _empty(Cache(kinds))
    else:
        from nodewright.cli.cluster.snapshot import read_cluster  # noqa: PLC0415

        connection = await connect(ask.target)
        namespace = ask.namespace or connection.namespace
        async with client_of(connection) as client:
            cache = await read_cluster(client, kinds)
    in_memory = InMemoryCluster(cache)
    dryrun = DryRun(in_memory, reconcilers)
    by_name = {kind.name: kind for kind in kinds}
    for obj in ask.objects:
        kind = by_name.get(obj["kind"])
        if kind is not None:
            in_memory.apply(kind, {**obj, "metadata": {"namespace": namespace, **obj["metadata"]}})
    before = _objects_in(in_memory)
    prospects = dryrun.foresee()
    if ask.selector.empty:
        return prospects
    wanted = _chosen((before, _objects_in(in_memory)), ask.selector)
    return [each for each in prospects if (each.kind, each.key) in wanted]


def _objects_in(in_memory: InMemoryCluster) -> dict[Kind, list[Obj]]:
    from nodewright.cli.cluster.snapshot import objects_of  # noqa: PLC0415

    return {kind: objects_of(in_memory.cache, kind) for kind in in_memory.cache.stores}


def _chosen(times: Iterable[Mapping[Kind, Iterable[Obj]]], selector: Selector) -> set[tuple[Kind, Key]]:
    """What is chosen at one of the ``times``: objects go on paper, others come."""
    from controllers.kernel.refs import key_of  # noqa: PLC0415
    from nodewright.reports.chosen import chosen  # noqa: PLC0415

    return {(kind, key_of(obj)) for time in times for kind, found in chosen(time, selector).items() for obj in found}


def _empty(cache: Cache) -> Cache:
    from nodewright.cli.cluster.snapshot import fill  # noqa: PLC0415

    for kind in cache.stores:
        fill(cache, kind, [])
    return cache


def _print(prospects: list[Prospect], title: str, everything: bool) -> None:
    from rich.text import Text  # noqa: PLC0415

    from nodewright.cli.dryrun import assumed_control_planes  # noqa: PLC0415
    from nodewright.cli.dryrun.assumed_hosts import ASSUMPTION  # noqa: PLC0415
    from nodewright.cli.dryrun.showing import DisplayOptions, as_tree  # noqa: PLC0415
    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.tree.drawing import sentences  # noqa: PLC0415

    out = console()
    for line in sentences(as_tree(prospects, title, DisplayOptions(everything)), out.width):
        out.print(line, soft_wrap=True)
    assumptions = [assumed_control_planes.ASSUMPTION] if any(each.course is not None for each in prospects) else []
    for text in (*assumptions, ASSUMPTION):
        for part in textwrap.wrap(text, out.width):
            out.print(Text(part, "dim"), soft_wrap=True)
