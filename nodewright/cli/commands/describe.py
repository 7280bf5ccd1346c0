"""``nodewright describe``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.names import SYSTEM_NAMESPACE
from nodewright.cli import completing
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig, Namespace, one_object
from nodewright.cli.structured import Output, OutputOption, show
from nodewright.reports.tree.branch import Branch, wrong

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kernel.refs import Kind
    from nodewright.runtime.cache.cache import Cache
    from nodewright.runtime.kube.client import KubeClient

MOST_EVENTS = 2000
"""Events looked through; they live for an hour."""

HELP = """Show one object and all that belongs to it as a tree: state, reasons, and what to do where something is wrong.

Under it stands which processes serve it. Exit code 0: shown and nothing is wrong; 1: something in it is wrong, nobody
serves it, or it does not exist; 2: wrong usage.
"""

KINDS = {
    "Cluster": ("cluster", "clusters", "cl"),
    "ControlPlane": ("controlplane", "controlplanes", "cp"),
    "MachineDeployment": ("machinedeployment", "machinedeployments", "md"),
    "MachineSet": ("machineset", "machinesets", "ms"),
    "Machine": ("machine", "machines", "ma"),
    "MachineHealthCheck": ("machinehealthcheck", "machinehealthchecks", "mhc"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    kind: Kind
    name: str
    namespace: str | None
    every_condition: bool
    every_machine: bool


@dataclass(frozen=True, slots=True)
class _Drawn:
    tree: Branch
    serving: Branch
    warnings: Branch | None
    now: datetime


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="cluster (cl), machinedeployment (md), machineset (ms), machine (ma) or machinehealthcheck (mhc).",
            autocompletion=completing.kinds(KINDS),
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Its name; KIND/NAME will do too.", autocompletion=completing.names(KINDS)),
    ] = None,
    namespace: Namespace = None,
    all_conditions: Annotated[
        bool, typer.Option("--all-conditions", help="Also conditions that are as they should be.")
    ] = False,
    all_machines: Annotated[
        bool, typer.Option("--all-machines", help="Every Machine and every old MachineSet.")
    ] = False,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    from rich.text import Text  # noqa: PLC0415

    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.tree.builder import shown_once  # noqa: PLC0415
    from nodewright.reports.tree.drawing import lines  # noqa: PLC0415
    from nodewright.reports.tree.values import branch_value  # noqa: PLC0415

    kind, name = one_object(kind, name, "md/workers")
    wanted = Wanted(kind_of(kind), name, namespace, all_conditions, all_machines)
    drawn = asyncio.run(_describe(Target(kubeconfig, context), wanted))
    if output is not Output.TEXT:
        parts = {"object": drawn.tree, "servedBy": drawn.serving, "latestWarnings": drawn.warnings}
        show({name: branch_value(part) for name, part in parts.items() if part is not None}, output)
        _exit(drawn)
        return
    out = console()
    shown = lines(shown_once(drawn.tree), drawn.now, out.width)
    shown += [Text(), *lines(drawn.serving, drawn.now, out.width)]
    if drawn.warnings is not None:
        shown += [Text(), *lines(drawn.warnings, drawn.now, out.width)]
    for line in shown:
        out.print(line, soft_wrap=True)
    _exit(drawn)


def _exit(drawn: _Drawn) -> None:
    if wrong(drawn.tree) or wrong(drawn.serving):
        raise typer.Exit(FAILED)


def kind_of(word: str) -> Kind:
    """The kind that a person means by ``md``, ``machinesets`` and the like. Raises CliError (usage)."""
    from controllers.kernel import refs  # noqa: PLC0415

    sets = (refs.CONTROL_PLANE, refs.MACHINE_DEPLOYMENT, refs.MACHINE_SET)
    known = {k.name: k for k in (refs.CLUSTER, *sets, refs.MACHINE, refs.MACHINE_HEALTH_CHECK)}
    for name, words in KINDS.items():
        if word.lower() in words:
            return known[name]
    raise CliError(f'can\'t describe a "{word}"', f"Kinds: {', '.join(words[0] for words in KINDS.values())}", USAGE)


async def _describe(target: Target, wanted: Wanted) -> _Drawn:
    from controllers.kernel.refs import EVENT, Key, uid_of  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import KINDS as KINDS_READ  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import now_view, objects_of, read_cluster  # noqa: PLC0415
    from nodewright.reports.tree.builder import DisplayOptions, grow  # noqa: PLC0415
    from nodewright.reports.tree.serving import not_known, served_in  # noqa: PLC0415
    from nodewright.reports.tree.warnings import latest  # noqa: PLC0415

    connection = await connect(target)
    namespace = wanted.namespace or connection.namespace
    async with client_of(connection) as client:
        cache = await read_cluster(client)
        events = (await client.list_page(EVENT, limit=MOST_EVENTS, namespace=namespace)).items
        leases = await leases_of(client)
    view = now_view(cache)
    obj = view.get(wanted.kind, Key(namespace, wanted.name))
    if obj is None:
        raise _missing(cache, wanted, namespace)
    tree = grow(wanted.kind, obj, view, DisplayOptions(wanted.every_condition, wanted.every_machine))
    everything = grow(wanted.kind, obj, view, DisplayOptions(every_machine=True))
    uids = {
        f"{kind.name}/{each['metadata']['name']}": uid_of(each)
        for kind in KINDS_READ
        for each in objects_of(cache, kind)
        if each["metadata"].get("namespace", namespace) == namespace
    }
    warnings = latest(events, everything, namespace, uids)
    under = Branch("Latest warnings", children=tuple(warnings)) if warnings else None
    serving = not_known(leases) if isinstance(leases, str) else served_in(leases, view.now, wanted.kind, obj)
    return _Drawn(tree, serving, under, view.now)


async def leases_of(client: KubeClient) -> list[dict[str, Any]] | str:
    """Those of the controllers, or why they can't be read: not everybody who may look at Machines may see them."""
    from controllers.kernel.refs import LEASE  # noqa: PLC0415
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    try:
        return (await client.list_page(LEASE, 0, namespace=SYSTEM_NAMESPACE)).items
    except ApiError as error:
        return error.message


def _missing(cache: Cache, wanted: Wanted, namespace: str) -> CliError:
    from nodewright.cli.cluster.snapshot import objects_of  # noqa: PLC0415

    objects = objects_of(cache, wanted.kind)
    there = sorted(str(o["metadata"]["name"]) for o in objects if o["metadata"].get("namespace") == namespace)
    hint = f"There are: {', '.join(there[:10])}" if there else f"There is none in namespace {namespace}; try -n"
    return CliError(f"{wanted.kind.name} {namespace}/{wanted.name} does not exist", hint)
