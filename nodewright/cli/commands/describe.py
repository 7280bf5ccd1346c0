"""``nodewright describe``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.names import SYSTEM_NAMESPACE
from nodewright.cli import completing
from nodewright.cli.choosing import AllNamespaces, Labels, selector_of
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig, Namespace, one_object
from nodewright.cli.structured import Output, OutputOption, show
from nodewright.reports.tree.branch import Branch, wrong

if TYPE_CHECKING:
    from datetime import datetime

    from api.selectors import Selector
    from controllers.kernel.refs import Kind, Obj
    from controllers.kernel.view import View
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
    """``name`` "": all objects of the kind that ``selector`` matches, ``everywhere`` or in one namespace."""

    kind: Kind
    name: str
    namespace: str | None
    everywhere: bool
    selector: Selector
    every_condition: bool
    every_machine: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """``leases``: those of the controllers, or why they can't be read."""

    cache: Cache
    view: View
    events: list[dict[str, Any]]
    leases: list[dict[str, Any]] | str


@dataclass(frozen=True, slots=True)
class _Drawn:
    tree: Branch
    serving: Branch
    warnings: Branch | None
    now: datetime
    namespace: str


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
    all_namespaces: AllNamespaces = False,
    labels: Labels = "",
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
    many = name is None and "/" not in kind and (all_namespaces or bool(labels))
    kind, name = (kind, "") if many else one_object(kind, name, "md/workers")
    if not many and (all_namespaces or labels):
        raise CliError("-A and -l are for all objects of a kind", "Leave the name out, or -A and -l", USAGE)
    objects = (kind_of(kind), name, namespace, all_namespaces, selector_of(labels))
    wanted = Wanted(*objects, every_condition=all_conditions, every_machine=all_machines)
    drawn = asyncio.run(_describe(Target(kubeconfig, context), wanted))
    if output is Output.TEXT:
        _print(drawn)
    else:
        values = [_value(each) for each in drawn]
        show({"items": values} if many else values[0], output)
    if any(wrong(each.tree) or wrong(each.serving) for each in drawn):
        raise typer.Exit(FAILED)


def _value(drawn: _Drawn) -> dict[str, Any]:
    from nodewright.reports.tree.values import branch_value  # noqa: PLC0415

    parts = {"object": drawn.tree, "servedBy": drawn.serving, "latestWarnings": drawn.warnings}
    named = {name: branch_value(part) for name, part in parts.items() if part is not None}
    return {"namespace": drawn.namespace, **named}


def _print(drawn: list[_Drawn]) -> None:
    """One below the other; a namespace is named where there are several objects."""
    from rich.text import Text  # noqa: PLC0415

    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.tree.builder import shown_once  # noqa: PLC0415
    from nodewright.reports.tree.drawing import lines  # noqa: PLC0415

    out = console()
    for number, each in enumerate(drawn):
        shown = [Text()] if number else []
        shown += [Text(f"Namespace {each.namespace}", "bold")] if len(drawn) > 1 else []
        shown += lines(shown_once(each.tree), each.now, out.width)
        shown += [Text(), *lines(each.serving, each.now, out.width)]
        if each.warnings is not None:
            shown += [Text(), *lines(each.warnings, each.now, out.width)]
        for line in shown:
            out.print(line, soft_wrap=True)


def kind_of(word: str) -> Kind:
    """The kind that a person means by ``md``, ``machinesets`` and the like. Raises CliError (usage)."""
    from controllers.kernel import refs  # noqa: PLC0415

    sets = (refs.CONTROL_PLANE, refs.MACHINE_DEPLOYMENT, refs.MACHINE_SET)
    known = {k.name: k for k in (refs.CLUSTER, *sets, refs.MACHINE, refs.MACHINE_HEALTH_CHECK)}
    for name, words in KINDS.items():
        if word.lower() in words:
            return known[name]
    raise CliError(f'can\'t describe a "{word}"', f"Kinds: {', '.join(words[0] for words in KINDS.values())}", USAGE)


async def _describe(target: Target, wanted: Wanted) -> list[_Drawn]:
    """Raises CliError where there is no such object."""
    from controllers.kernel.refs import EVENT  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import now_view, read_cluster  # noqa: PLC0415

    connection = await connect(target)
    namespace = "" if wanted.everywhere else wanted.namespace or connection.namespace
    async with client_of(connection) as client:
        cache = await read_cluster(client)
        found = _found(cache, wanted, namespace)
        events = (await client.list_page(EVENT, limit=MOST_EVENTS, namespace=namespace)).items
        leases = await leases_of(client)
    read = _Read(cache, now_view(cache), events, leases)
    return [_draw(read, wanted, obj) for obj in found]


def _found(cache: Cache, wanted: Wanted, namespace: str) -> list[Obj]:
    """Raises CliError where there is none."""
    from controllers.kernel.refs import key_of, labels_of  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import objects_of  # noqa: PLC0415

    there = [obj for obj in objects_of(cache, wanted.kind) if namespace in {"", key_of(obj).namespace}]
    found = [obj for obj in there if wanted.name in {"", key_of(obj).name} and wanted.selector.matches(labels_of(obj))]
    if found:
        return sorted(found, key=key_of)
    names = sorted(key_of(obj).name for obj in there)
    title = f"{wanted.kind.name} {namespace}/{wanted.name}"
    if wanted.name:
        hint = f"There are: {', '.join(names[:10])}" if names else f"There is none in namespace {namespace}; try -n"
        raise CliError(f"{title} does not exist", hint)
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    hint = f"{len(names)} have other labels" if names else "See `kubectl get`, or look elsewhere with -n or -A"
    raise CliError(f"there is no such {wanted.kind.name} {where}", hint)


def _uids(read: _Read, namespace: str) -> dict[str, str]:
    """Of all objects of a namespace, and of those in none, by KIND/NAME."""
    from controllers.kernel.refs import uid_of  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import KINDS as KINDS_READ  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import objects_of  # noqa: PLC0415

    return {
        f"{kind.name}/{each['metadata']['name']}": uid_of(each)
        for kind in KINDS_READ
        for each in objects_of(read.cache, kind)
        if each["metadata"].get("namespace", namespace) == namespace
    }


def _draw(read: _Read, wanted: Wanted, obj: Obj) -> _Drawn:
    from controllers.kernel.refs import key_of  # noqa: PLC0415
    from nodewright.reports.tree.builder import DisplayOptions, grow  # noqa: PLC0415
    from nodewright.reports.tree.serving import not_known, served_in  # noqa: PLC0415
    from nodewright.reports.tree.warnings import latest  # noqa: PLC0415

    namespace, view = key_of(obj).namespace, read.view
    tree = grow(wanted.kind, obj, view, DisplayOptions(wanted.every_condition, wanted.every_machine))
    everything = grow(wanted.kind, obj, view, DisplayOptions(every_machine=True))
    uids = _uids(read, namespace)
    events = [event for event in read.events if event["metadata"].get("namespace") == namespace]
    warnings = latest(events, everything, namespace, uids)
    under = Branch("Latest warnings", children=tuple(warnings)) if warnings else None
    leases = read.leases
    serving = not_known(leases) if isinstance(leases, str) else served_in(leases, view.now, wanted.kind, obj)
    return _Drawn(tree, serving, under, view.now, namespace)


async def leases_of(client: KubeClient) -> list[dict[str, Any]] | str:
    """Those of the controllers, or why they can't be read: not everybody who may look at Machines may see them."""
    from controllers.kernel.refs import LEASE  # noqa: PLC0415
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    try:
        return (await client.list_page(LEASE, 0, namespace=SYSTEM_NAMESPACE)).items
    except ApiError as error:
        return error.message
