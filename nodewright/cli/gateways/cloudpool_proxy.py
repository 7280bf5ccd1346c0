"""``nodewright gateway cloudpool-proxy``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.names import SYSTEM_NAMESPACE
from nodewright.cli import election
from nodewright.cli.cluster.access import plain_errors
from nodewright.cli.exits import CliError, leave_at_once
from nodewright.cli.flags import with_flags
from nodewright.cli.gateways import listener_flags
from nodewright.cli.gateways.listener_flags import ListenerFlags
from nodewright.cli.options import Format, LogFormat, LogLevel, Verbosity, duration_of
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from nodewright.gateways.cloudpool.config import ProxyConfig
    from nodewright.gateways.cloudpool.proxy import ProxyOptions
    from nodewright.runtime.election.leadership import Leadership
    from nodewright.runtime.kube.connection import Connection

HELP = """Stand in front of a cloudpool: what would take machines away is done by its rules, with drained Nodes.

Takes the configuration file and the flags of kubeaware-cloudpool-proxy. Exit code 0: stopped as asked; 1: failed, or
leadership was lost; 2: wrong usage.
"""
LEASE_NAME = "nodewright-cloudpool-proxy"
_DEBUG_FROM = 4
_FIRST_LOOK = 3.0
"""Seconds for the backend to show that it is a pool, before it is said that it is served."""


@dataclass(frozen=True, slots=True)
class ScaleDownFlags:
    """What a scale-down may do to Nodes."""

    drain_timeout: Annotated[
        str, typer.Option("--drain-timeout", metavar="TIME", help="After it a Node that is not empty is put back.")
    ] = "10m"
    local_storage: Annotated[
        bool,
        typer.Option(
            "--skip-nodes-with-local-storage/--no-skip-nodes-with-local-storage",
            help="Pods with emptyDir or hostPath keep their Node.",
        ),
    ] = True
    system_pods: Annotated[
        bool,
        typer.Option(
            "--skip-nodes-with-system-pods/--no-skip-nodes-with-system-pods",
            help="Young kube-system pods without a PodDisruptionBudget keep their Node.",
        ),
    ] = False
    strict: Annotated[
        bool, typer.Option("--strict/--no-strict", help="A scale-down that falls short is an error, not a 200.")
    ] = False


@dataclass(frozen=True, slots=True)
class KlogFlags:
    """Options of the original's logging; all but ``--v`` are taken and do nothing."""

    verbosity: Annotated[
        int | None, typer.Option("--v", metavar="N", help="The original's log level; from 4 on as --log-level=debug.")
    ] = None
    switches: Annotated[
        bool, typer.Option("--logtostderr", "--alsologtostderr", hidden=True, help="Taken for the original's sake.")
    ] = False
    values: Annotated[
        str,
        typer.Option(
            "--stderrthreshold", "--vmodule", "--log_dir", "--log_backtrace_at", hidden=True, help="The same."
        ),
    ] = ""

    @property
    def debug(self) -> bool:
        return self.verbosity is not None and self.verbosity >= _DEBUG_FROM


@dataclass(frozen=True, slots=True)
class _How:
    listener: ListenerFlags
    scale_down: ScaleDownFlags
    drain_timeout: float
    election: election.Election


@with_flags
def command(  # noqa: PLR0913  (one parameter per group of options)
    *,
    config_file: Annotated[Path, typer.Option("--config-file", metavar="FILE", help="The configuration, JSON.")] = Path(
        "/etc/elastisys/kubeaware-cloudpool-proxy.json"
    ),
    listener: ListenerFlags = ListenerFlags(port=8080),  # noqa: B008 - frozen
    scale_down: ScaleDownFlags,
    elect: election.ElectionFlags,
    klog: KlogFlags,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    from nodewright import __version__  # noqa: PLC0415
    from nodewright.gateways.cloudpool.config import ConfigError, load  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    if version:
        say(f"Version: {__version__}")
        return
    try:
        config = load(config_file)
    except ConfigError as error:
        raise CliError(str(error), "--config-file names it; docs/tasks/cloudpool-proxy.md has its fields") from error
    drain_timeout = duration_of("--drain-timeout", scale_down.drain_timeout)
    how = _How(listener, scale_down, drain_timeout.total_seconds(), elect.election())
    configure(json=log_format.json, level=Verbosity.DEBUG.value if klog.debug else log_level.value)
    asyncio.run(_run(config, how))


def _options(config: ProxyConfig, how: _How) -> ProxyOptions:
    from controllers.cloudpool.scaledown import Rules  # noqa: PLC0415
    from nodewright.gateways.cloudpool.config import backend_of  # noqa: PLC0415
    from nodewright.gateways.cloudpool.proxy import ProxyOptions  # noqa: PLC0415
    from nodewright.gateways.cloudpool.scaler import ScalerOptions  # noqa: PLC0415

    rules = Rules(how.scale_down.local_storage, how.scale_down.system_pods)
    scaler = ScalerOptions(rules, config.api_timeout, how.scale_down.strict)
    return ProxyOptions(backend_of(config), how.listener.listener(config.server_timeout), scaler, how.drain_timeout)


async def _run(config: ProxyConfig, how: _How) -> None:
    from nodewright.gateways.cloudpool.config import connection_of  # noqa: PLC0415
    from nodewright.gateways.cloudpool.proxy import CloudpoolProxy  # noqa: PLC0415
    from nodewright.runtime.kube.client import ClientLimits, KubeClient  # noqa: PLC0415

    with plain_errors():
        connection = await connection_of(config)
        options = _options(config, how)
    lost: list[Leadership] = []

    async def start(stack: AsyncExitStack) -> Any:
        limits = ClientLimits(request_timeout=config.api_timeout)
        client = await stack.enter_async_context(KubeClient(connection, "cloudpool-proxy", limits))
        decided = asyncio.Event()
        leadership = await _leadership(connection, how, config.backend_url, stack, decided)
        lost.append(leadership)
        say(f"in front of {config.backend_url}, for the cluster {connection.server}")
        proxy = await stack.enter_async_context(CloudpoolProxy(client, options, leadership))
        await proxy.until_it_leads(decided, _FIRST_LOOK)
        if trouble := await proxy.trouble(_FIRST_LOOK):
            say(f"the pool can't be asked yet, every request tries again: {trouble}")
        return proxy

    with plain_errors():
        await listener_flags.serve(how.listener, start, lambda: lost[0].lost)
    if lost and lost[0].lost.is_set():
        leave_at_once(CliError(lost[0].why_lost, "Another process may work now; start this one again to stand by"))


async def _leadership(
    connection: Connection, how: _How, backend: str, stack: AsyncExitStack, decided: asyncio.Event
) -> Leadership:
    """``decided`` is set once it is known that another process works."""
    from controllers.kernel.memory import digest  # noqa: PLC0415
    from nodewright.runtime.election.claims import Claim  # noqa: PLC0415
    from nodewright.runtime.election.leadership import LeaseLeadership  # noqa: PLC0415
    from nodewright.runtime.election.lease_options import LeaseOptions  # noqa: PLC0415
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415
    from nodewright.runtime.settings.options import utc_now  # noqa: PLC0415

    def say(why: str) -> None:
        decided.set()
        say(f"waiting: {why}; until that ends, this process only passes requests on")

    choice, pool = how.election, digest(backend)
    lease = LeaseOptions(
        choice.name or f"{LEASE_NAME}-{pool}",
        choice.namespace or SYSTEM_NAMESPACE,
        choice.terms,
        claims=(Claim("cloudpool-proxy", pool),),
        waits=choice.waits,
        command="nodewright gateway cloudpool-proxy",
        on_wait=say,
    )
    client = await stack.enter_async_context(KubeClient(connection, "lease", lease.limits))
    leadership = LeaseLeadership(client, lease, utc_now)
    stack.push_async_callback(leadership.release)
    return leadership
