"""``nodewright run``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.names import SYSTEM_NAMESPACE
from nodewright.cli import election, trust
from nodewright.cli.autoscaled import must_scale
from nodewright.cli.autoscaling import Flags, options_of
from nodewright.cli.cluster.access import Target, connect, plain_errors
from nodewright.cli.exits import USAGE, CliError, leave_at_once
from nodewright.cli.flags import with_flags
from nodewright.cli.node_policy import NodePolicyFlags
from nodewright.cli.options import Context, Format, Kubeconfig, LogFormat, LogLevel, Verbosity
from nodewright.cli.ports import must_be_free
from nodewright.cli.provisioning import provisioning_of
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.kernel.joining import Limits
    from controllers.kernel.node_policy import NodePolicy
    from nodewright.runtime.kube.connection import Connection
    from nodewright.runtime.settings.options import RunOptions

HELP = """Run the controllers against a cluster, until SIGTERM or Ctrl-C.

The CRDs must be there (`nodewright install`). Inside a pod the service account is used. Of several processes that serve
the same objects one works, and the others stand by. Exit code 0: stopped as asked; 1: failed, or leadership was lost;
2: wrong usage.
"""

_CLOUD_POLL = 0.2
_CLOUD_SECONDS = 30.0
"""How long a new leader waits until the last one's process has let go of the simulated cloud."""


class Orphans(StrEnum):
    """As ``nodewright.runtime.settings.options.OrphanHosts``, which costs an import of the runtime."""

    OFF = "off"
    REPORT = "report"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class WorkFlags:
    """What this process works on."""

    controllers: election.Controllers = "*"
    machine_selector: election.MachineSelector = ""
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Serve only the objects of that namespace. [default: all]"
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class HostFlags:
    """How hosts are made, simulated and swept."""

    simulated_kubelets: Annotated[
        bool,
        typer.Option(
            "--simulated-kubelets/--no-simulated-kubelets",
            help="Register the Nodes of simulated hosts, and start pods there.",
        ),
    ] = True
    simulated_cloud: Annotated[
        Path | None,
        typer.Option("--simulated-cloud", metavar="DIR", help="Keep simulated hosts there. [default: in memory only]"),
    ] = None
    orphan_hosts: Annotated[
        Orphans, typer.Option("--orphan-hosts", help="What becomes of hosts that no Machine knows.")
    ] = Orphans.REPORT
    management_cluster_id: Annotated[
        str,
        typer.Option(
            "--management-cluster-id",
            metavar="ID",
            help="Mark of this cluster on its hosts. [default: the UID of the Namespace kube-system]",
        ),
    ] = ""
    hosts_in_flight: Annotated[
        int,
        typer.Option(
            "--hosts-in-flight", min=1, metavar="N", help="Hosts of one provider account that come up at once."
        ),
    ] = 1000
    cluster_hosts_in_flight: Annotated[
        int | None,
        typer.Option(
            "--cluster-hosts-in-flight",
            min=1,
            metavar="N",
            help="Hosts of one Cluster that come up at once, unless it says so itself. [default: no limit]",
        ),
    ] = None
    bootstrap_token_lifetime: Annotated[
        str,
        typer.Option(
            "--bootstrap-token-lifetime",
            metavar="TIME",
            help="No more hosts come up than can join in that time, unless a Cluster says so. [default: no limit]",
        ),
    ] = ""

    @property
    def limits(self) -> Limits:
        """Raises CliError (usage)."""
        return election.limits_of(self.cluster_hosts_in_flight, self.bootstrap_token_lifetime)


@dataclass(frozen=True, slots=True)
class ServeFlags:
    """Where health and metrics are served."""

    listen: Annotated[str, typer.Option("--listen", metavar="HOST", help="Where health and metrics listen.")] = (
        "127.0.0.1"
    )
    health_port: Annotated[
        int | None,
        typer.Option(
            "--health-port", metavar="N", min=0, max=65535, help="Serve /healthz there. [default: not served]"
        ),
    ] = None
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="N",
            min=0,
            max=65535,
            help="Serve metrics and /readyz there. [default: not served]",
        ),
    ] = None

    def must_be_free(self) -> None:
        """Raises CliError."""
        must_be_free(self.listen, {"--health-port": self.health_port, "--metrics-port": self.metrics_port})


@dataclass(frozen=True, slots=True)
class OwnNodeFlags:
    """The Node of this process, and what Nodes are labelled with."""

    node_name: Annotated[
        str,
        typer.Option(
            "--node-name",
            envvar="NODE_NAME",
            metavar="NAME",
            help="Node on which this program runs: its Machine is not deleted unless forced. [default: none]",
        ),
    ] = ""
    node_owner_label: election.NodeOwnerLabel = False


@dataclass(frozen=True, slots=True)
class _How:
    """Options that were made sense of, and those that need none."""

    work: election.Work
    election: election.Election
    hosts: HostFlags
    serve: ServeFlags
    trust: trust.Trust
    nodes: NodePolicy


@with_flags
def command(  # noqa: PLR0913  (one parameter per group of options)
    *,
    where: WorkFlags,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    elect: election.ElectionFlags,
    hosts: HostFlags,
    serve: ServeFlags,
    own_node: OwnNodeFlags,
    node_policy: NodePolicyFlags,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
    trusted: trust.Trust,
    traces: Annotated[
        bool, typer.Option("--traces", help="Send OpenTelemetry spans, where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    autoscaler: Flags,
) -> None:
    from nodewright.runtime.telemetry import tracing  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    choice = elect.election()
    work = _work(where, own_node, hosts, partial(_controllers, autoscaler, trusted))
    must_scale(autoscaler, any(reconciler.name == "autoscaler" for reconciler in work.reconcilers))
    _mark(hosts.management_cluster_id)
    how = _How(work, choice, hosts, serve, trusted, node_policy.policy())
    trusted.take_effect()
    serve.must_be_free()
    if traces:
        _start_traces()
    configure(json=log_format.json, level=log_level.value)
    try:
        asyncio.run(_run(Target(kubeconfig, context), how))
    finally:
        tracing.stop()


def _controllers(autoscaler: Flags, trusted: trust.Trust) -> election.ControllerOptions:
    return election.ControllerOptions(
        partial(options_of, autoscaler), partial(provisioning_of, autoscaler), trusted.template_kinds()
    )


def _work(
    where: WorkFlags, own_node: OwnNodeFlags, hosts: HostFlags, controllers: Callable[[], election.ControllerOptions]
) -> election.Work:
    """Raises CliError (usage)."""
    limits = hosts.limits
    work = election.work_named(
        where.controllers, where.machine_selector, own_node.node_name, limits, controllers(), where.namespace
    )
    work = election.with_owner_label(work) if own_node.node_owner_label else work
    if where.namespace:
        _can_be_narrowed(work, hosts.orphan_hosts)
    return work


def _can_be_narrowed(work: election.Work, orphans: Orphans) -> None:
    """A process that sees the Machines of one namespace must not judge objects of others."""
    if orphans is Orphans.DELETE:
        hint = "Leave one out: hosts of Machines in other namespaces would look like orphans"
        raise CliError("--orphan-hosts=delete and --namespace contradict each other", hint, USAGE)
    if any(reconciler.name == "certificatesigningrequest" for reconciler in work.reconcilers):
        hint = "Run it in a process without --namespace: requests of kubelets are in no namespace"
        raise CliError("--namespace does not divide the work of certificatesigningrequest", hint, USAGE)


def _mark(text: str) -> None:
    """Raises CliError (usage) if it can't be the value of a label."""
    from api.selectors import label_value_error  # noqa: PLC0415

    if problem := label_value_error(text):
        raise CliError(f"--management-cluster-id: {problem}", code=USAGE)


def _start_traces() -> None:
    from nodewright.runtime.telemetry import tracing  # noqa: PLC0415

    try:
        tracing.start()
    except ImportError as error:
        raise CliError(str(error), "Or leave --traces out") from error


def _keep_hosts_in(folder: Path) -> None:
    from providers.simulated import WORLDS  # noqa: PLC0415

    try:
        WORLDS.keep_in(folder)
    except RuntimeError as error:
        raise CliError(str(error), "Stop the other one, or choose another --simulated-cloud") from error
    except ValueError as error:
        raise CliError(str(error), "Remove the damaged file, or choose another --simulated-cloud") from error


def _takes_over(folder: Path, standing_by: asyncio.Event) -> Callable[[], Awaitable[None]]:
    """For a process that has just begun to lead: the leader before may need a moment to end."""
    taken = False

    async def take_over() -> None:
        nonlocal taken
        if not taken:
            await _keep_hosts_within(folder, _CLOUD_SECONDS if standing_by.is_set() else 0.0)
            taken = True

    return take_over


async def _keep_hosts_within(folder: Path, seconds: float) -> None:
    """Raises StartRefusedError if another process has the folder for longer than that."""
    from nodewright.runtime.settings.options import StartRefusedError  # noqa: PLC0415

    give_up = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            _keep_hosts_in(folder)
        except CliError as error:
            if asyncio.get_running_loop().time() >= give_up:
                raise StartRefusedError(error.message, error.hint) from error
            await asyncio.sleep(_CLOUD_POLL)
        else:
            return


def _options(connection: Connection, how: _How) -> RunOptions:
    from nodewright.runtime.hosts.options import HostOptions  # noqa: PLC0415
    from nodewright.runtime.preflight import Preflight  # noqa: PLC0415
    from nodewright.runtime.settings.options import OrphanHosts, RunOptions  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import reached_at, with_node_policy  # noqa: PLC0415

    standing_by = asyncio.Event()

    def stand_by(why: str) -> None:
        standing_by.set()
        say(f"waiting: {why}; this process takes over when that one ends")

    cloud = how.hosts.simulated_cloud
    lease = how.election.options(how.work, stand_by)
    check = Preflight(how.work.reconcilers, how.work.namespace, lease.namespace, say)
    return RunOptions(
        reconcilers=with_node_policy(reached_at(how.work.reconcilers, connection.server), how.nodes),
        machines=how.work.machines,
        namespace=how.work.namespace,
        preflight=check.run,
        simulated_kubelets=how.hosts.simulated_kubelets,
        hosts_in_memory=cloud is None,
        leader_election=lease,
        on_leading=_takes_over(cloud, standing_by) if cloud is not None else None,
        orphan_hosts=OrphanHosts(how.hosts.orphan_hosts.value),
        management_cluster=how.hosts.management_cluster_id,
        workloads=how.trust.workloads(),
        hosts=HostOptions(hosts_in_flight=how.hosts.hosts_in_flight),
        listen_host=how.serve.listen,
        health_port=how.serve.health_port,
        metrics_port=how.serve.metrics_port,
    )


async def _run(target: Target, how: _How) -> None:
    connection = await connect(target)
    options = _options(connection, how)
    names = ", ".join(reconciler.name for reconciler in how.work.reconcilers)
    say(f"starting {names} against {connection.server}")
    lease = options.leader_election
    assert lease is not None
    say(f"at work while it holds the lease {lease.namespace}/{lease.name}")
    if lease.namespace != SYSTEM_NAMESPACE:
        say(
            f"warning: processes that keep their Leases in {SYSTEM_NAMESPACE} are not seen; "
            "give all processes the same --leader-elect-resource-namespace",
            err=True,
        )

    def ready() -> None:
        settle_in()
        say(f"ready: {names} at work")

    # kopf takes seconds to import on a slow machine: what can be said or refused before has been by now.
    from nodewright.cli.longevity import settle_in  # noqa: PLC0415
    from nodewright.runtime.election.leadership import HeldElsewhereError, LeadershipLostError  # noqa: PLC0415
    from nodewright.runtime.operator import operate  # noqa: PLC0415
    from nodewright.runtime.settings.options import StartRefusedError  # noqa: PLC0415

    try:
        with plain_errors():
            await operate(connection, options, stop=asyncio.Event(), ready=ready)
    except StartRefusedError as error:
        leave_at_once(CliError(error.message, error.remedy))
    except HeldElsewhereError as error:
        hint = "Stop that process, or leave --no-leader-elect out to stand by"
        leave_at_once(CliError(f"another process is at work: {error}", hint))
    except LeadershipLostError as error:
        leave_at_once(CliError(str(error), "Another process may work now; start this one again to stand by"))
    say("stopped")
