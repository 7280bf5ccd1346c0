"""``nodewright up``."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli import trust
from nodewright.cli.autoscaled import must_scale
from nodewright.cli.autoscaling import Flags, options_of
from nodewright.cli.embedded.folder import DETACHED
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.merging import MergeFlags, merge_into_kubectls
from nodewright.cli.node_policy import NodePolicyFlags
from nodewright.cli.options import Format, LogFormat, LogLevel, Verbosity
from nodewright.cli.provisioning import provisioning_of
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.kernel.node_policy import NodePolicy
    from nodewright.cli.embedded.session import Session, SessionOptions

HELP = """Start the embedded control plane with the CRDs, the controllers and simulated hosts, in the foreground.

Prints a line that starts with `ready` once kubectl works, and serves until SIGTERM or Ctrl-C. State lies in the data
folder: started again, everything goes on where it was. Exit code 0: stopped as asked; 1: failed; 2: wrong usage.
"""

START_SECONDS = 90.0
"""How long `--detach` waits for the ready line."""
DEFAULT_FOLDER = Path(".nodewright/up")
CONTEXT = "nodewright"
"""The usual name of a context that is merged."""


@dataclass(frozen=True, slots=True)
class PlaneFlags:
    """What is started, and where its state lies."""

    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help=f"Where state is kept. [default: {DEFAULT_FOLDER}]")
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            help="Where to write the kubeconfig (mode 0600). [default: in the data folder]",
        ),
    ] = None
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port on loopback; 0: that of the last start, or a free one."
        ),
    ] = 0
    in_memory: Annotated[
        bool,
        typer.Option(
            "--in-memory", help="Keep no state: it ends with the process; a data folder then only gets the kubeconfig."
        ),
    ] = False
    no_controllers: Annotated[bool, typer.Option("--no-controllers", help="Only the API server and the CRDs.")] = False
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once it is ready; `nodewright down` stops it.")
    ] = False
    web: Annotated[bool, typer.Option("--web/--no-web", help="Show the fleet in a browser, on loopback.")] = True
    web_port: Annotated[
        int, typer.Option("--web-port", metavar="N", min=0, max=65535, help="Port of the web view; 0: a free one.")
    ] = 0
    scale: Annotated[
        bool, typer.Option("--autoscaler", help="Run the autoscaler too; it reads a good deal more of the cluster.")
    ] = False
    bind_pods: Annotated[
        bool,
        typer.Option(
            "--bind-pods/--no-bind-pods", help="Find Nodes for pods that wait; off where a kube-scheduler does."
        ),
    ] = True
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Start from a damaged state with what can be read of it."),
    ] = False
    anonymous_cluster_info: Annotated[
        bool,
        typer.Option(
            "--anonymous-cluster-info",
            help="Let anybody read the ConfigMap cluster-info in kube-public, for kubeadm's token discovery.",
        ),
    ] = False

    simulated_cloud: Annotated[
        Path | None,
        typer.Option(
            "--simulated-cloud",
            metavar="DIR",
            help="Keep simulated hosts there, together with other planes. [default: in the data folder]",
        ),
    ] = None

    @property
    def folder(self) -> Path | None:
        """Where state is kept; None: nowhere."""
        return None if self.in_memory else (self.data_dir or DEFAULT_FOLDER).absolute()

    def kubeconfig_path(self) -> Path | None:
        """Where the kubeconfig is written; None: in the data folder. Makes the folder that a plane in memory has."""
        from nodewright.apiserver.app.private_files import private_folder  # noqa: PLC0415

        if self.in_memory and self.data_dir is not None and self.kubeconfig is None:
            return private_folder(self.data_dir.absolute()) / "kubeconfig"
        return self.kubeconfig.absolute() if self.kubeconfig else None


@with_flags
def command(  # noqa: PLR0913  (one parameter per group of options)
    *,
    plane: PlaneFlags,
    merging: MergeFlags,
    trusted: trust.Trust,
    node_policy: NodePolicyFlags,
    log_level: LogLevel = Verbosity.WARNING,
    log_format: LogFormat = Format.AUTO,
    autoscaler: Flags,
) -> None:
    from nodewright.cli.longevity import starting  # noqa: PLC0415

    must_scale(autoscaler, plane.scale)
    trusted.template_kinds()
    context = merging.name(CONTEXT)
    if plane.detach and DETACHED not in os.environ:
        _start_in_background(plane)
        return
    nodes = None
    if not plane.no_controllers:  # a plane alone starts sooner without what controllers need
        trusted.take_effect()
        nodes = node_policy.policy()
    with starting():
        from nodewright.runtime.telemetry.logs import configure, configure_late  # noqa: PLC0415

        (configure_late if plane.no_controllers else configure)(json=log_format.json, level=log_level.value)
        web = plane.web_port if plane.web and not plane.no_controllers else None
        asyncio.run(_serve(_session_options(plane, trusted, nodes, autoscaler), web, context))


def _start_in_background(plane: PlaneFlags) -> None:
    """Raises CliError (usage) for a plane in memory, whose kubeconfig nobody would find, and if it does not start."""
    from nodewright.cli.embedded.detached import LOG, start  # noqa: PLC0415

    if plane.folder is None:
        raise CliError("--detach needs a data folder", "Leave --in-memory out", USAGE)
    say("\n".join(start(plane.folder, START_SECONDS)))
    say(f"  nodewright down{f' --data-dir {plane.data_dir}' if plane.data_dir else ''}    # log: {plane.folder / LOG}")


def _session_options(
    plane: PlaneFlags, trusted: trust.Trust, nodes: NodePolicy | None, autoscaler: Flags
) -> SessionOptions:
    """Raises CliError (usage)."""
    from nodewright.cli.embedded.session import SessionOptions  # noqa: PLC0415

    where = plane.kubeconfig_path()
    options = options_of(autoscaler) if plane.scale else None
    requests = provisioning_of(autoscaler) if plane.scale else None
    desired = SessionOptions(
        plane.folder, where, plane.port, not plane.no_controllers, plane.bind_pods, options, requests,
        trust=trusted, nodes=nodes,
    )  # fmt: skip
    return replace(
        desired,
        accept_loss=plane.accept_loss,
        anonymous_cluster_info=plane.anonymous_cluster_info,
        simulated_cloud=plane.simulated_cloud.absolute() if plane.simulated_cloud else None,
    )


async def _serve(desired: SessionOptions, web: int | None, context: str) -> None:
    """``web``: the port of the web view; None: none is served. ``context``: what to add for kubectl; "": nothing."""
    from nodewright.cli.embedded.session import session  # noqa: PLC0415
    from nodewright.cli.longevity import settle_in  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    started = time.monotonic()
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(desired, stop) as running, AsyncExitStack() as stack:
        if not stop.is_set():
            _greet(running, desired, context, time.monotonic() - started)
            if web is not None:
                say("\n".join(("", *(await _web_view(stack, running, web)))))
            settle_in()
        await running.until_stopped()
        say("stopping")
    kept = f"; start it again with the same --data-dir to go on ({desired.data_dir})" if desired.data_dir else ""
    say(f"stopped{kept}")


def _greet(running: Session, desired: SessionOptions, context: str, seconds: float) -> None:
    merged = merge_into_kubectls(running.kubeconfig, context) if context else ""
    say("\n".join(_greeting(running, desired, seconds)))
    if merged:
        say(f"\nkubectl --context {shlex.quote(context)} works too: {merged}")


async def _web_view(stack: AsyncExitStack, running: Session, port: int) -> list[str]:
    """Serve it; nothing is read of the plane before somebody looks. What can't be served is told, and no more."""
    from nodewright.cli.web.listening import Asked, listener_of  # noqa: PLC0415
    from nodewright.cli.web.serving import lines, web_server  # noqa: PLC0415

    try:
        server = await stack.enter_async_context(web_server(running.connection, listener_of(Asked(port=port))))
    except OSError as error:
        return [f"No web view: port {port} can't be used: {error.strerror or error}"]
    return lines(server)


def _greeting(running: Session, desired: SessionOptions, seconds: float) -> list[str]:
    from nodewright.cli.examples import write_example  # noqa: PLC0415

    example = write_example(desired.data_dir or running.plane.ca_path.parent)
    what = "control plane and controllers" if desired.controllers else "control plane without controllers"
    return [
        f"ready: {what} at {running.url} after {seconds:.1f} s, kubeconfig {running.kubeconfig}",
        "",
        "In another terminal:",
        f"  export KUBECONFIG={running.kubeconfig}",
        f"  kubectl apply -f {example}",
        "  kubectl get machines -w",
        "  nodewright describe cluster demo",
    ]
