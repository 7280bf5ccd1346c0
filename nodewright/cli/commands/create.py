"""``nodewright create``."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.commands.up import DEFAULT_FOLDER
from nodewright.cli.exits import INTERRUPTED, USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.help import Command
from nodewright.cli.merging import MergeFlags, merge_into_kubectls
from nodewright.cli.options import LogLevel, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.cli.creation.creating import Order
    from nodewright.cli.creation.moved_in import MovedIn
    from nodewright.cli.creation.showing import Display
    from nodewright.cli.embedded.session import Session
    from nodewright.runtime.kube.client import KubeClient

HELP = """Make a cluster from files, without a management cluster: this process is the management cluster.

Exit code 0: the cluster is ready; 1: something is wrong; 2: wrong usage; 130: stopped before the end. After 1 and 130
the same command goes on.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)

TIMEOUT = 3600.0


@group.callback()
def create() -> None:
    """Make a cluster from files, without a management cluster."""


@dataclass(frozen=True, slots=True)
class InsideFlags:
    """What is put into the new cluster, and which controllers look after it from within."""

    image: Annotated[
        str,
        typer.Option("--image", metavar="IMAGE", help="Image of the controllers there, with a tag or digest."),
    ] = ""
    components: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME", help="A folder of deploy/components for them; repeatable."),
    ] = None
    brings_controllers: Annotated[
        bool,
        typer.Option("--brings-controllers", help="Controllers run in the new cluster without --image: by an add-on."),
    ] = False
    simulated_cloud: Annotated[
        Path | None,
        typer.Option("--simulated-cloud", metavar="DIR", help="Cloud shared with `nodewright up`."),
    ] = None
    addons: Annotated[
        list[str] | None,
        typer.Option("--addons", metavar="FILE", help="Apply this in the new cluster, in the order given; repeatable."),
    ] = None


@group.command("cluster", cls=Command, short_help="Make one cluster from YAML files and wait until it is ready")
@with_flags
def cluster(  # noqa: PLR0913  (one parameter per option)
    *,
    files: Annotated[
        list[str],
        typer.Option("--filename", "-f", metavar="FILE", help="File or folder; - is standard input; repeatable."),
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="The objects stay in the data folder, for `nodewright up` to go on with.")
    ] = False,
    inside: InsideFlags,
    kubeconfig_out: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig-out",
            metavar="FILE",
            help="Where its kubeconfig goes (0600). [default: ./<cluster>.kubeconfig]",
        ),
    ] = None,
    merging: MergeFlags,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Where state is kept, as of `nodewright up`.")
    ] = DEFAULT_FOLDER,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up after so long; 0: never.")
    ] = TIMEOUT,
    log_level: LogLevel = Verbosity.ERROR,
) -> None:
    """Apply the files to a control plane in this process, and wait until all Machines are Nodes that are Ready.

    Add-ons are applied as soon as the new cluster's API answers, and waited for at the end. Stopped at any moment, even
    by kill -9, and run again it goes on.
    """
    from nodewright.cli.commands.validate import texts  # noqa: PLC0415
    from nodewright.cli.creation.addons import AddOn  # noqa: PLC0415
    from nodewright.cli.creation.creating import Order  # noqa: PLC0415
    from nodewright.cli.creation.declared import declared  # noqa: PLC0415
    from nodewright.cli.creation.objects import objects_in  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    controllers = _controllers(inside.image, inside.components, keep=keep, brought=inside.brings_controllers)
    configure(level=log_level.value)
    found = declared(texts(files))
    read = [AddOn(name, tuple(objects_in(name, text))) for name, text in texts(inside.addons)] if inside.addons else []
    out = (kubeconfig_out or Path(f"{found.cluster.name}.kubeconfig")).absolute()
    order = Order(found, [*found.addons, *read], out, timeout)
    cloud = inside.simulated_cloud and inside.simulated_cloud.absolute()
    plan = _Plan(order, data_dir.absolute(), keep, controllers, cloud, merging.name(found.cluster.name))
    if not asyncio.run(_create(plan)):
        say("stopped before the end; the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True, slots=True)
class _Plan:
    """``controllers``: objects to put into the new cluster; () if others do it. ``context``: to add for kubectl; "":
    none.
    """

    order: Order
    folder: Path
    keep: bool
    controllers: list[dict[str, Any]]
    simulated_cloud: Path | None
    context: str


def _controllers(image: str, components: list[str] | None, *, keep: bool, brought: bool) -> list[dict[str, Any]]:
    """Before anything is done. Raises CliError (usage) if it is not said where the objects are to be looked after."""
    if not image:
        if components:
            raise CliError("--with goes with --image", code=USAGE)
        if not keep and not brought:
            text = "it is not said which controllers look after the cluster from within"
            hint = "--image names theirs; with --keep the objects stay here, and `nodewright up` looks after them"
            raise CliError(text, hint, USAGE)
        return []
    if keep:
        raise CliError("--keep and --image exclude each other", "With --keep no controllers run in the cluster", USAGE)
    from nodewright.cli.installation.manifests import Choice, render  # noqa: PLC0415

    return render(Choice(image, "base", tuple(components or ())))


async def _create(plan: _Plan) -> bool:
    from nodewright.cli.creation.showing import display  # noqa: PLC0415
    from nodewright.cli.embedded.session import SessionOptions, session  # noqa: PLC0415
    from nodewright.cli.embedded.working import work_in  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(SessionOptions(plan.folder, simulated_cloud=plan.simulated_cloud), stop) as running:
        if stop.is_set():
            return False
        shown = display()
        try:
            return await work_in(running, _work(running, plan, shown))
        finally:
            shown.close()


async def _work(running: Session, plan: _Plan, shown: Display) -> None:
    from nodewright.cli.cluster.access import client_of  # noqa: PLC0415
    from nodewright.cli.creation.creating import Creation  # noqa: PLC0415
    from nodewright.cli.creation.moved_in import MovedIn  # noqa: PLC0415

    started, order = time.monotonic(), plan.order
    key = order.declared.cluster
    moved = MovedIn(plan.folder, key, shown.say)
    async with client_of(running.connection) as client:
        creation = Creation(client, running.connection, order, shown)
        if not moved.has_begun:
            await creation.run()
        if not plan.keep:
            await _move_in(plan, moved, client, own_api=creation.own_api)
        elif moved.has_begun:
            raise CliError(f"Cluster {key} is moved into itself already", "Leave --keep out")
    shown.close()
    kubeconfig = order.kubeconfig if creation.own_api else running.kubeconfig
    say(f"Cluster {key} is ready after {time.monotonic() - started:.0f} s, kubeconfig {kubeconfig}")
    if plan.context:
        say(merge_into_kubectls(kubeconfig, plan.context))
    say(f"\nNext:\n  kubectl --kubeconfig {kubeconfig} get nodes")
    if plan.keep:
        say(f"  nodewright up --data-dir {plan.folder}    # goes on managing it: scale, upgrade, replace what fails")
    else:
        say(f"  kubectl --kubeconfig {kubeconfig} get machines    # they are looked after in the cluster itself")
    say(f"  nodewright delete cluster {key.name} --data-dir {plan.folder}")


async def _move_in(plan: _Plan, moved: MovedIn, home: KubeClient, *, own_api: bool) -> None:
    from nodewright.cli.cluster.access import client_of  # noqa: PLC0415
    from nodewright.cli.installation.everything import install_in  # noqa: PLC0415
    from nodewright.runtime.kube.kubeconfig import load_kubeconfig  # noqa: PLC0415

    key = plan.order.declared.cluster
    if not own_api:
        raise CliError(f"Cluster {key} has no API of its own to hold its objects", "They stay here: say --keep")
    async with client_of(await load_kubeconfig([plan.order.kubeconfig])) as client:
        await install_in(client, plan.controllers)
    if not moved.has_begun:
        moved.begin(plan.order.kubeconfig.read_bytes())
    if not await moved.acting_there():
        raise CliError(f"no controllers are at work in Cluster {key}", "Name their image: --image; then run it again")
    await moved.move_in(home)
