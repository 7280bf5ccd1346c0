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
from nodewright.cli import election, node_policy, trust
from nodewright.cli.autoscaling import Flags, must_scale, options_of, with_autoscaler
from nodewright.cli.cluster.access import Target, connect, plain_errors
from nodewright.cli.exits import USAGE, CliError, leave_at_once
from nodewright.cli.options import Context, Format, Kubeconfig, LogFormat, LogLevel, Verbosity
from nodewright.cli.ports import must_be_free
from nodewright.cli.provisioning import provisioning_of
from nodewright.cli.screen import say

if TYPE_CHECKING:
    from controllers.kernel.node_policy import NodePolicy
    from nodewright.runtime.kube.connection import Connection
    from nodewright.runtime.options import RunOptions

HELP = """Run the controllers against a cluster, until SIGTERM or Ctrl-C.

The CRDs must be there (`nodewright install`). Inside a pod the service account is used. Of several processes that serve
the same objects one works, and the others stand by. Exit code 0: stopped as asked; 1: failed, or leadership was lost;
2: wrong usage.
"""

_CLOUD_POLL = 0.2
_CLOUD_SECONDS = 30.0
"""How long a new leader waits until the last one's process has let go of the simulated cloud."""


class Orphans(StrEnum):
    """As ``nodewright.runtime.options.OrphanHosts``, which costs an import of the runtime."""

    OFF = "off"
    REPORT = "report"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class _How:
    work: election.Work
    election: election.Election
    kubelets: bool
    cloud: Path | None
    orphans: str
    hosts_in_flight: int
    host: str
    health: int | None
    metrics: int | None
    mark: str
    trust: trust.Trust
    nodes: NodePolicy


@with_autoscaler
def command(  # noqa: PLR0913, PLR0917  (one parameter per option)
    controllers: election.Controllers = "*",
    machine_selector: election.MachineSelector = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Serve only the objects of that namespace. [default: all]"
        ),
    ] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    leader_elect: election.LeaderElect = True,
    leader_elect_lease_duration: election.LeaseDuration = "15s",
    leader_elect_renew_deadline: election.RenewDeadline = "10s",
    leader_elect_retry_period: election.RetryPeriod = "2s",
    leader_elect_resource_name: election.ResourceName = "",
    leader_elect_resource_namespace: election.ResourceNamespace = "",
    simulated_kubelets: Annotated[
        bool,
        typer.Option(
            "--simulated-kubelets/--no-simulated-kubelets",
            help="Register the Nodes of simulated hosts, and start pods there.",
        ),
    ] = True,
    simulated_cloud: Annotated[
        Path | None,
        typer.Option("--simulated-cloud", metavar="DIR", help="Keep simulated hosts there. [default: in memory only]"),
    ] = None,
    orphan_hosts: Annotated[
        Orphans, typer.Option("--orphan-hosts", help="What becomes of hosts that no Machine knows.")
    ] = Orphans.REPORT,
    management_cluster_id: Annotated[
        str,
        typer.Option(
            "--management-cluster-id",
            metavar="ID",
            help="Mark of this cluster on its hosts. [default: the UID of the Namespace kube-system]",
        ),
    ] = "",
    hosts_in_flight: Annotated[
        int,
        typer.Option(
            "--hosts-in-flight", min=1, metavar="N", help="Hosts of one provider account that come up at once."
        ),
    ] = 1000,
    cluster_hosts_in_flight: Annotated[
        int | None,
        typer.Option(
            "--cluster-hosts-in-flight",
            min=1,
            metavar="N",
            help="Hosts of one Cluster that come up at once, unless it says so itself. [default: no limit]",
        ),
    ] = None,
    bootstrap_token_lifetime: Annotated[
        str,
        typer.Option(
            "--bootstrap-token-lifetime",
            metavar="TIME",
            help="No more hosts come up than can join in that time, unless a Cluster says so. [default: no limit]",
        ),
    ] = "",
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST", help="Where health and metrics listen.")
    ] = "127.0.0.1",
    health_port: Annotated[
        int | None,
        typer.Option(
            "--health-port", metavar="N", min=0, max=65535, help="Serve /healthz there. [default: not served]"
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="N",
            min=0,
            max=65535,
            help="Serve metrics and /readyz there. [default: not served]",
        ),
    ] = None,
    node_name: Annotated[
        str,
        typer.Option(
            "--node-name",
            envvar="NODE_NAME",
            metavar="NAME",
            help="Node on which this program runs: its Machine is not deleted unless told so. [default: none]",
        ),
    ] = "",
    node_owner_label: election.NodeOwnerLabel = False,
    allow_node_labels: node_policy.AllowLabels = None,
    protect_node_labels: node_policy.ProtectLabels = None,
    allow_node_taints: node_policy.AllowTaints = None,
    protect_node_taints: node_policy.ProtectTaints = None,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
    remediation_kinds: trust.RemediationKinds = "",
    workload_tls: trust.TlsOption = trust.WorkloadTls.VERIFIED,
    workload_memory: trust.Memory = 512,
    server_allow_cidrs: trust.AllowCidrs = "",
    server_deny_cidrs: trust.DenyCidrs = "",
    traces: Annotated[
        bool, typer.Option("--traces", help="Send OpenTelemetry spans, where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    *,
    autoscaler: Flags,
) -> None:
    from nodewright.runtime import tracing  # noqa: PLC0415
    from nodewright.runtime.logs import configure  # noqa: PLC0415

    terms = election.terms_of(leader_elect_lease_duration, leader_elect_renew_deadline, leader_elect_retry_period)
    choice = election.Election(leader_elect, terms, leader_elect_resource_name, leader_elect_resource_namespace)
    limits = election.limits_of(cluster_hosts_in_flight, bootstrap_token_lifetime)
    trusted = trust.Trust(remediation_kinds, workload_tls, workload_memory, server_allow_cidrs, server_deny_cidrs)
    options = election.ControllerOptions(
        partial(options_of, autoscaler), partial(provisioning_of, autoscaler), trusted.template_kinds()
    )
    work = election.work_named(controllers, machine_selector, node_name, limits, options, namespace)
    work = election.with_owner_label(work) if node_owner_label else work
    if namespace:
        _can_be_narrowed(work, orphan_hosts)
    must_scale(autoscaler, any(reconciler.name == "autoscaler" for reconciler in work.reconcilers))
    how = _How(
        work, choice, simulated_kubelets, simulated_cloud, orphan_hosts.value, hosts_in_flight,
        listen, health_port, metrics_port, _mark(management_cluster_id), trusted,
        node_policy.policy_of(allow_node_labels, protect_node_labels, allow_node_taints, protect_node_taints),
    )  # fmt: skip
    trusted.take_effect()
    must_be_free(listen, {"--health-port": health_port, "--metrics-port": metrics_port})
    if traces:
        _start_traces()
    configure(json=log_format.json, level=log_level.value)
    try:
        asyncio.run(_run(Target(kubeconfig, context), how))
    finally:
        tracing.stop()


def _can_be_narrowed(work: election.Work, orphans: Orphans) -> None:
    """Whoever sees the Machines of one namespace must not judge what belongs to others."""
    if orphans is Orphans.DELETE:
        hint = "Leave one out: hosts of Machines in other namespaces would look like orphans"
        raise CliError("--orphan-hosts=delete and --namespace contradict each other", hint, USAGE)
    if any(reconciler.name == "certificatesigningrequest" for reconciler in work.reconcilers):
        hint = "Run it in a process without --namespace: requests of kubelets are in no namespace"
        raise CliError("--namespace does not divide the work of certificatesigningrequest", hint, USAGE)


def _mark(text: str) -> str:
    from api.selectors import label_value_error  # noqa: PLC0415

    if problem := label_value_error(text):
        raise CliError(f"--management-cluster-id: {problem}", code=USAGE)
    return text


def _start_traces() -> None:
    from nodewright.runtime import tracing  # noqa: PLC0415

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

    from nodewright.runtime.options import StartRefusedError  # noqa: PLC0415

    async def take_over() -> None:
        nonlocal taken
        if taken:
            return
        give_up = asyncio.get_running_loop().time() + (_CLOUD_SECONDS if standing_by.is_set() else 0.0)
        while True:
            try:
                _keep_hosts_in(folder)
            except CliError as error:
                if asyncio.get_running_loop().time() >= give_up:
                    raise StartRefusedError(error.message, error.hint) from error
                await asyncio.sleep(_CLOUD_POLL)
            else:
                taken = True
                return

    return take_over


def _options(connection: Connection, how: _How) -> RunOptions:
    from nodewright.runtime.hosts.options import HostOptions  # noqa: PLC0415
    from nodewright.runtime.options import OrphanHosts, RunOptions  # noqa: PLC0415
    from nodewright.runtime.preflight import Preflight  # noqa: PLC0415
    from nodewright.runtime.wiring import reached_at, with_node_policy  # noqa: PLC0415

    standing_by = asyncio.Event()

    def stand_by(why: str) -> None:
        standing_by.set()
        say(f"waiting: {why}; this process takes over when that one ends")

    lease = how.election.options(how.work, stand_by)
    check = Preflight(how.work.reconcilers, how.work.namespace, lease.namespace, say)
    return RunOptions(
        reconcilers=with_node_policy(reached_at(how.work.reconcilers, connection.server), how.nodes),
        machines=how.work.machines,
        namespace=how.work.namespace,
        preflight=check.run,
        simulated_kubelets=how.kubelets,
        hosts_in_memory=how.cloud is None,
        leader_election=lease,
        on_leading=_takes_over(how.cloud, standing_by) if how.cloud is not None else None,
        orphan_hosts=OrphanHosts(how.orphans),
        management_cluster=how.mark,
        workloads=how.trust.workloads(),
        hosts=HostOptions(hosts_in_flight=how.hosts_in_flight),
        listen_host=how.host,
        health_port=how.health,
        metrics_port=how.metrics,
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
    from nodewright.runtime.leadership import HeldElsewhereError, LeadershipLostError  # noqa: PLC0415
    from nodewright.runtime.operator import operate  # noqa: PLC0415
    from nodewright.runtime.options import StartRefusedError  # noqa: PLC0415

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
