"""``nodewright autoscaler``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli import completing, external_autoscaler
from nodewright.cli.autoscaled import only_one
from nodewright.cli.autoscaling import Flags, options_of, tells_where_alone
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.help import Command
from nodewright.cli.options import Context, Kubeconfig, Namespace, one_object
from nodewright.cli.running_autoscaler import Given, read_running, reader_of
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from controllers.autoscaler.observe import Observed
    from controllers.autoscaler.refusing import Answer
    from controllers.kernel.refs import Key, Obj
    from controllers.kernel.view import View
    from nodewright.reports.tree.branch import Branch

HELP = """Ask the autoscaler, or let it scale the node groups of a provider outside.

Exit code 0: explained, or stopped on request; 1: there is no such object, the cluster can't be read, or leadership was
lost; 2: wrong usage.
"""
KINDS = {
    "Pod": ("pod", "pods", "po"),
    "Node": ("node", "nodes", "no"),
    "MachineDeployment": ("machinedeployment", "machinedeployments", "md"),
    "MachineSet": ("machineset", "machinesets", "ms"),
}

group = typer.Typer(help=HELP, no_args_is_help=True)


group.command("run", cls=Command, short_help="Scale the node groups of a provider that serves externalgrpc")(
    with_flags(external_autoscaler.run)
)


@group.command("explain", cls=Command, short_help="Why a pod gets no Node, why a group or a Node stays as it is")
@with_flags
def explain(  # noqa: PLR0913  (one parameter per option)
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="pod (po), node (no), machinedeployment (md) or machineset (ms).",
            autocompletion=completing.kinds(KINDS),
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Its name; KIND/NAME will do too.", autocompletion=completing.names(KINDS)),
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: OutputOption = Output.TEXT,
    *,
    autoscaler: Flags,
) -> None:
    """Say what the autoscaler would decide now, and every reason for a no.

    Without options of the autoscaler it takes those that the running one published.
    """
    from nodewright.cli.screen import console  # noqa: PLC0415
    from nodewright.reports.tree.drawing import sentences  # noqa: PLC0415
    from nodewright.reports.tree.values import branch_value  # noqa: PLC0415

    kind, name = one_object(kind, name, "pod/web-0")
    only_one(autoscaler)
    given = Given(options_of(autoscaler), tells_where_alone(autoscaler))
    answer, running = asyncio.run(_explain(Target(kubeconfig, context), _kind_of(kind), (namespace, name), given))
    if output is not Output.TEXT:
        show({**branch_value(as_branch(answer)), "autoscaler": branch_value(as_branch(running))}, output)
        return
    out = console()
    for tree in (answer, running):
        for line in sentences(as_branch(tree), out.width):
            out.print(line, soft_wrap=True)


def as_branch(answer: Answer) -> Branch:
    from nodewright.reports.tree.branch import Branch  # noqa: PLC0415

    return Branch(answer.text, children=tuple(map(as_branch, answer.below)))


def _kind_of(word: str) -> str:
    found = next((name for name, words in KINDS.items() if word.lower() in words), None)
    if found is None:
        raise CliError(f'can\'t explain a "{word}"', "Kinds: pod, node, machinedeployment, machineset", USAGE)
    return found


async def _explain(target: Target, kind: str, wanted: tuple[str | None, str], given: Given) -> tuple[Answer, Answer]:
    """The answer, and what there is to say of the autoscaler that runs."""
    from controllers.autoscaler.observe import observe  # noqa: PLC0415
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from nodewright.runtime.hosts.credentials import secrets_by  # noqa: PLC0415
    from nodewright.runtime.hosts.directory import HostDirectory  # noqa: PLC0415
    from nodewright.runtime.hosts.objects import objects_by  # noqa: PLC0415
    from providers.base.registry import Registry  # noqa: PLC0415

    connection = await connect(target)
    key = Key(wanted[0] or connection.namespace, wanted[1])
    async with client_of(connection) as client:
        found = await read_running(client, given)
        options = found.options
        hosts = HostDirectory(Registry.installed(), may_call=lambda: False)
        hosts.read_secrets_by(secrets_by(client))
        hosts.read_objects_by(objects_by(client))
        try:
            look = await reader_of(client, options, hosts)
            observe(look(), options)
            await hosts.shapes_are_known()
            view = look()
            return _answer(observe(view, options), view, kind, key), found.description
        finally:
            await hosts.close(0.0)


def _answer(observed: Observed, view: View, kind: str, key: Key) -> Answer:
    from controllers.autoscaler import explaining  # noqa: PLC0415
    from controllers.kernel import refs  # noqa: PLC0415

    if kind == "Node":
        _there(view.get(refs.NODE, refs.Key("", key.name)), f"Node {key.name}")
        return explaining.explain_node(observed, key.name)
    if kind == "Pod":
        return explaining.explain_pod(observed, _there(view.get(refs.POD, key), f"Pod {key}"))
    of = refs.MACHINE_DEPLOYMENT if kind == "MachineDeployment" else refs.MACHINE_SET
    return explaining.explain_group(observed, refs.ref_of(of, _there(view.get(of, key), f"{kind} {key}")))


def _there(found: Obj | None, title: str) -> Obj:
    if found is None:
        hint = "See `kubectl get nodes`" if title.startswith("Node ") else "Name its namespace with -n"
        raise CliError(f"{title} does not exist", hint)
    return found
