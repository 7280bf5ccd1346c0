"""``nodewright up``."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli import node_policy, trust
from nodewright.cli.autoscaling import Flags, must_scale, options_of, with_autoscaler
from nodewright.cli.options import Format, LogFormat, LogLevel, Verbosity
from nodewright.cli.provisioning import provisioning_of
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.cli.embedded.session import Session, SessionOptions

HELP = """Start the embedded control plane with the CRDs, the controllers and simulated hosts, in the foreground.

Prints a line that starts with `ready` once kubectl works, and serves until SIGTERM or Ctrl-C. State lies in the data
folder: started again, everything goes on where it was. Exit code 0: stopped as asked; 1: failed; 2: wrong usage.
"""

DEFAULT_FOLDER = Path(".nodewright/up")


@with_autoscaler
def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help=f"Where state is kept. [default: {DEFAULT_FOLDER}]")
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            help="Where to write the kubeconfig (mode 0600). [default: in the data folder]",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port on loopback; 0: that of the last start, or a free one."
        ),
    ] = 0,
    in_memory: Annotated[
        bool,
        typer.Option(
            "--in-memory", help="Keep no state: it ends with the process; a data folder then only gets the kubeconfig."
        ),
    ] = False,
    no_controllers: Annotated[bool, typer.Option("--no-controllers", help="Only the API server and the CRDs.")] = False,
    scale: Annotated[
        bool, typer.Option("--autoscaler", help="Run the autoscaler too; it reads a good deal more of the cluster.")
    ] = False,
    bind_pods: Annotated[
        bool,
        typer.Option(
            "--bind-pods/--no-bind-pods", help="Find Nodes for pods that wait; off where a kube-scheduler does."
        ),
    ] = True,
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", help="Start from a damaged state with what can be read of it."),
    ] = False,
    anonymous_cluster_info: Annotated[
        bool,
        typer.Option(
            "--anonymous-cluster-info",
            help="Let anybody read the ConfigMap cluster-info in kube-public, for kubeadm's token discovery.",
        ),
    ] = False,
    remediation_kinds: trust.RemediationKinds = "",
    workload_tls: trust.TlsOption = trust.WorkloadTls.VERIFIED,
    workload_memory: trust.Memory = 512,
    server_allow_cidrs: trust.AllowCidrs = "",
    server_deny_cidrs: trust.DenyCidrs = "",
    allow_node_labels: node_policy.AllowLabels = None,
    protect_node_labels: node_policy.ProtectLabels = None,
    allow_node_taints: node_policy.AllowTaints = None,
    protect_node_taints: node_policy.ProtectTaints = None,
    log_level: LogLevel = Verbosity.WARNING,
    log_format: LogFormat = Format.AUTO,
    *,
    autoscaler: Flags,
) -> None:
    from nodewright.cli.longevity import starting  # noqa: PLC0415

    must_scale(autoscaler, scale)
    trusted = trust.Trust(remediation_kinds, workload_tls, workload_memory, server_allow_cidrs, server_deny_cidrs)
    trusted.template_kinds()
    nodes = None
    if not no_controllers:  # a plane alone starts sooner without what controllers need
        trusted.take_effect()
        nodes = node_policy.policy_of(allow_node_labels, protect_node_labels, allow_node_taints, protect_node_taints)
    with starting():
        from nodewright.apiserver.app.private_files import private_folder  # noqa: PLC0415
        from nodewright.cli.embedded.session import SessionOptions  # noqa: PLC0415
        from nodewright.runtime.logs import configure, configure_late  # noqa: PLC0415

        (configure_late if no_controllers else configure)(json=log_format.json, level=log_level.value)
        if in_memory and data_dir is not None and kubeconfig is None:
            kubeconfig = private_folder(data_dir.absolute()) / "kubeconfig"
        folder = None if in_memory else (data_dir or DEFAULT_FOLDER).absolute()
        options = options_of(autoscaler) if scale else None
        requests = provisioning_of(autoscaler) if scale else None
        where = kubeconfig.absolute() if kubeconfig else None
        desired = SessionOptions(
            folder, where, port, not no_controllers, bind_pods, options, requests, trust=trusted, nodes=nodes
        )
        asyncio.run(_serve(replace(desired, accept_loss=accept_loss, anonymous_cluster_info=anonymous_cluster_info)))


async def _serve(desired: SessionOptions) -> None:
    from nodewright.cli.embedded.session import session  # noqa: PLC0415
    from nodewright.cli.longevity import settle_in  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    started = time.monotonic()
    stop = asyncio.Event()
    stop_on_signals(stop)
    async with session(desired, stop) as running:
        if not stop.is_set():
            say("\n".join(_greeting(running, desired, time.monotonic() - started)))
            settle_in()
        await running.until_stopped()
        say("stopping")
    kept = f"; start it again with the same --data-dir to go on ({desired.data_dir})" if desired.data_dir else ""
    say(f"stopped{kept}")


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
