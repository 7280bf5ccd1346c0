"""``nodewright autoscaler run``: our autoscaler on the groups of a provider that serves externalgrpc."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.names import SYSTEM_NAMESPACE
from nodewright.cli import election
from nodewright.cli.autoscaling import Flags, options_of
from nodewright.cli.cluster.access import Target, connect, plain_errors
from nodewright.cli.exits import USAGE, CliError, leave_at_once
from nodewright.cli.options import Context, Format, Kubeconfig, LogFormat, LogLevel, Verbosity
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.autoscaler.options import AutoscalerOptions
    from nodewright.gateways.externalgrpc.client.config import CloudConfig

LEASE = "nodewright-autoscaler-externalgrpc"
PROVIDER = "externalgrpc"
_LONGEST_CONFIG = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _How:
    config: CloudConfig
    options: AutoscalerOptions
    election: election.Election


def run(  # noqa: PLR0913, PLR0917  (one parameter per option)
    cloud_provider: Annotated[
        str, typer.Option("--cloud-provider", metavar="NAME", help="externalgrpc, the only one.")
    ] = "",
    cloud_config: Annotated[
        Path | None,
        typer.Option("--cloud-config", metavar="FILE", help="How it is called: address, cert, key, cacert (YAML)."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    leader_elect: election.LeaderElect = True,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
    *,
    autoscaler: Flags,
) -> None:
    """Scale the node groups of a provider that serves externalgrpc, until SIGTERM or Ctrl-C.

    For groups of this cluster's own MachineDeployments and MachineSets use `nodewright run --controllers=autoscaler`.
    """
    if cloud_provider != PROVIDER:
        hint = "For MachineDeployments and MachineSets: nodewright run --controllers=autoscaler"
        raise CliError(f"--cloud-provider: {cloud_provider!r} is not {PROVIDER}", hint, USAGE)
    _must_be_the_providers(autoscaler)
    options = options_of(autoscaler)
    config = _config(cloud_config)
    terms = election.terms_of("15s", "10s", "2s")
    how = _How(config, options, election.Election(leader_elect, terms, "", ""))
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    configure(json=log_format.json, level=log_level.value)
    asyncio.run(_run(Target(kubeconfig, context), how))


def _must_be_the_providers(flags: Flags) -> None:
    """Groups and their bounds come from the provider alone."""
    given = {
        "--nodes": flags.nodes,
        "--node-group-auto-discovery": flags.node_group_auto_discovery,
        "--cluster": flags.cluster,
        "--clusters": flags.clusters,
        "--capacity-buffers-enabled": flags.capacity_buffers_enabled,
        "--capacity-quotas-enabled": flags.capacity_quotas_enabled,
        "--enable-proactive-scaleup": flags.enable_proactive_scaleup,
        "--enable-provisioning-requests": flags.enable_provisioning_requests,
    }
    for name, value in given.items():
        if value:
            raise CliError(f"{name} is for MachineDeployments and MachineSets", "Leave it out", USAGE)


def _config(path: Path | None) -> CloudConfig:
    from nodewright.gateways.externalgrpc.client.config import CloudConfigError, read_config  # noqa: PLC0415

    if path is None:
        raise CliError("--cloud-config is needed", "It says `address: HOST:PORT` at least", USAGE)
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST_CONFIG + 1)
        if len(content) > _LONGEST_CONFIG:
            raise CliError(f"--cloud-config: {path} has more than 1 MiB", code=USAGE)
        found = read_config(content.decode())
        found.credentials()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"--cloud-config: {path}: {error}", code=USAGE) from error
    except CloudConfigError as error:
        raise CliError(f"--cloud-config: {path}: {error}", "See docs/tasks/autoscale.md", USAGE) from error
    return found


async def _run(target: Target, how: _How) -> None:
    from nodewright.gateways.externalgrpc.client.autoscaler import ExternalAutoscaler  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.client.provider import ExternalProvider  # noqa: PLC0415
    from nodewright.runtime.election.claims import Claim  # noqa: PLC0415
    from nodewright.runtime.election.leadership import (  # noqa: PLC0415
        HeldElsewhereError,
        LeadershipLostError,
        LeaseLeadership,
    )
    from nodewright.runtime.election.lease_options import LeaseOptions  # noqa: PLC0415
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415
    from nodewright.runtime.settings.options import utc_now  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    connection = await connect(target)
    lease = LeaseOptions(
        LEASE,
        SYSTEM_NAMESPACE,
        how.election.terms,
        claims=(Claim("autoscaler"),),
        waits=how.election.waits,
        command="nodewright autoscaler run",
        on_wait=lambda why: say(f"waiting: {why}; this process takes over when that one ends"),
    )
    lost = ""
    with plain_errors():
        async with AsyncExitStack() as stack:
            keeper = await stack.enter_async_context(KubeClient(connection, "lease", lease.limits))
            leadership = LeaseLeadership(keeper, lease, utc_now)
            stack.push_async_callback(leadership.release)
            try:
                await _unless(stop, leadership.acquire(), leadership.lost)
            except (HeldElsewhereError, LeadershipLostError) as error:
                raise CliError(str(error), "Stop the other one, or leave --no-leader-elect out") from error
            if not stop.is_set():
                client = await stack.enter_async_context(KubeClient(connection, "autoscaler"))
                provider = await stack.enter_async_context(ExternalProvider(how.config))
                autoscaler = await stack.enter_async_context(
                    ExternalAutoscaler(client.fenced(lambda: leadership.held), provider, how.options, utc_now)
                )
                say(f"ready: scaling the node groups of {how.config.address} for {connection.server}")
                await _unless(stop, autoscaler.run(asyncio.Event()), leadership.lost)
                lost = leadership.why_lost if leadership.lost.is_set() else ""
    if lost:
        leave_at_once(CliError(lost, "Another process may work now; start this one again to stand by"))
    say("stopped")


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None], lost: asyncio.Event) -> None:
    """Await ``work`` until it is done, or one of the two is set: then it is cancelled, whatever it waits for.

    A call that is under way then may have happened; whoever takes over sees it at the provider.
    """
    working = asyncio.create_task(work)
    ends = [asyncio.create_task(each.wait()) for each in (stop, lost)]
    try:
        await asyncio.wait({working, *ends}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, *ends):
            task.cancel()
        await asyncio.gather(working, *ends, return_exceptions=True)
