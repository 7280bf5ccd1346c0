"""``nodewright logs``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli import completing
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig, Namespace, one_object
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show, show_next

if TYPE_CHECKING:
    from controllers.kernel.refs import Key, Kind
    from nodewright.reports.timeline.entries import Entry, History
    from nodewright.runtime.kube.client import KubeClient

HELP = """Tell the story of a Machine in the order of time: events, conditions, calls of its provider, its Node's too.

Exit code 0: printed; 1: the API server knows nothing of such a Machine, or can't be read; 2: wrong usage.
"""
KINDS = {"Machine": ("machine", "machines", "ma")}
EVERY_SECONDS = 1.0
MOST_EVENTS = 1000
"""Events read about one object; an object has a budget of them."""
MOST_ENTRIES = 10_000
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what happens next, until the Machine is gone.")
]
_NODE_EVENTS = "default"
"""The namespace of Events about objects that have none (kubernetes client-go, record.EventRecorder)."""
_MOST_OWNERS = 2
"""Its MachineSet, and the MachineDeployment of that."""


@dataclass(frozen=True, slots=True)
class _Showing:
    output: Output
    tail: int
    follow: bool


def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    kind: Annotated[str, typer.Argument(metavar="KIND", help="machine (ma).", autocompletion=completing.kinds(KINDS))],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Its name; KIND/NAME will do too.", autocompletion=completing.names(KINDS)),
    ] = None,
    namespace: Namespace = None,
    follow: Follow = False,
    tail: Annotated[
        int, typer.Option("--tail", metavar="N", min=1, max=MOST_ENTRIES, help="At most so many entries, the latest.")
    ] = 200,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    kind, name = one_object(kind, name, "machine/workers-x7k2p-0")
    if kind.lower() not in KINDS["Machine"]:
        hint = f"Only Machines have one; `nodewright describe {kind} {name}` shows what others are at"
        raise CliError(f'there is no log of a "{kind}"', hint, USAGE)
    asyncio.run(_tell(Target(kubeconfig, context), (namespace, name), _Showing(output, tail, follow)))


async def _tell(target: Target, wanted: tuple[str | None, str], showing: _Showing) -> None:
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from nodewright.reports.timeline.entries import entries_of  # noqa: PLC0415

    connection = await connect(target)
    key = Key(wanted[0] or connection.namespace, wanted[1])
    async with client_of(connection) as client:
        history = await _read(client, key)
        entries = entries_of(history)
        if history.machine is None and not entries:
            hint = "Events live for an hour; `kubectl get machines` lists what is there, -n names another namespace"
            raise CliError(f"nothing is known of Machine {key}", hint)
        _show_first(key, entries, showing)
        uid = _uid(history)
        if showing.follow:
            history = await _follow(client, key, history, showing.output)
    if history.machine is None or _uid(history) != uid:
        say(f"nodewright: Machine {key} is gone; these are its last events", err=True)


async def _follow(client: KubeClient, key: Key, history: History, output: Output) -> History:
    """Show what is new until the Machine is gone, or another one has its name; gives what was read last."""
    from nodewright.reports.timeline.entries import entries_of  # noqa: PLC0415

    uid, entries = _uid(history), entries_of(history)
    while history.machine is not None and _uid(history) == uid:
        await asyncio.sleep(EVERY_SECONDS)
        seen = set(entries)
        history = await _read(client, key)
        entries = entries_of(history)
        for entry in entries if _uid(history) in {"", uid} else ():
            if entry not in seen:
                _show_next(entry, output)
    return history


def _uid(history: History) -> str:
    return str(history.machine["metadata"].get("uid", "")) if history.machine is not None else ""


async def _read(client: KubeClient, key: Key) -> History:
    from controllers.kernel.refs import MACHINE, NODE, Key  # noqa: PLC0415
    from nodewright.reports.timeline.entries import History  # noqa: PLC0415

    machine = await _get(client, MACHINE, key)
    node_name = await _node_of(client, machine, key.namespace)
    node = await _get(client, NODE, Key("", node_name)) if node_name else None
    owners = await _owners(client, machine, key.namespace)
    events = list(await client.events_about(key.namespace, key.name, MOST_EVENTS))
    for owner in owners:
        events += await client.events_about(key.namespace, owner["metadata"]["name"], MOST_EVENTS)
    if node_name and (node_name, _NODE_EVENTS) != (key.name, key.namespace):
        events += await client.events_about(_NODE_EVENTS, node_name, MOST_EVENTS)
    return History(key.name, machine, node_name, node, owners, events)


async def _node_of(client: KubeClient, machine: dict[str, Any] | None, namespace: str) -> str:
    """ "" for one without a Node, and for one whose Node is in a cluster of its own: another is of that name here."""
    from controllers.kernel.node_policy import recorded_secret  # noqa: PLC0415
    from controllers.kernel.refs import CLUSTER, Key  # noqa: PLC0415

    if machine is None:
        return ""
    cluster = (machine.get("spec") or {}).get("clusterName")
    if cluster and recorded_secret(await _get(client, CLUSTER, Key(namespace, str(cluster)))):
        return ""
    return str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")


async def _owners(client: KubeClient, machine: dict[str, Any] | None, namespace: str) -> list[dict[str, Any]]:
    from controllers.kernel.ownership import controller_of  # noqa: PLC0415
    from controllers.kernel.refs import MACHINE_DEPLOYMENT, MACHINE_SET, Key, uid_of  # noqa: PLC0415

    kinds = {kind.name: kind for kind in (MACHINE_SET, MACHINE_DEPLOYMENT)}
    found: list[dict[str, Any]] = []
    current = machine
    while current is not None and len(found) < _MOST_OWNERS:
        reference = controller_of(current)
        kind = kinds.get(str(reference["kind"])) if reference is not None else None
        if reference is None or kind is None:
            break
        current = await _get(client, kind, Key(namespace, str(reference["name"])))
        if current is None or uid_of(current) != reference.get("uid"):
            break
        found.append(current)
    return found


async def _get(client: KubeClient, kind: Kind, key: Key) -> dict[str, Any] | None:
    """None: it is not there, or a Node may not be seen by this person."""
    from controllers.kernel.refs import NODE  # noqa: PLC0415
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    try:
        return await client.get(kind, key)
    except ApiError as error:
        if error.not_found or (kind == NODE and error.code == 403):
            return None
        raise


def _show_first(key: Key, entries: list[Entry], showing: _Showing) -> None:
    from nodewright.reports.timeline.showing import as_value  # noqa: PLC0415

    shown = entries[-showing.tail :]
    if showing.output is not Output.TEXT and not showing.follow:
        values = [as_value(entry) for entry in shown]
        show({"machine": str(key), "earlier": len(entries) - len(shown), "entries": values}, showing.output)
        return
    for entry in shown:
        _show_next(entry, showing.output)


def _show_next(entry: Entry, output: Output) -> None:
    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.timeline.showing import as_lines, as_value  # noqa: PLC0415

    if output is not Output.TEXT:
        show_next(as_value(entry), output)
        return
    out = console()
    for line in as_lines(entry, out.width):
        out.print(line, soft_wrap=True)
