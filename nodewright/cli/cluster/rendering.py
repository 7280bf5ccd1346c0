"""What the host of a Machine would get to join, decided from a live cluster as the controllers decide it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from api.conditions import Reason
from controllers.bootstrap.authorities import AUTHORITIES, NEW_KEYS, KeyPair
from controllers.bootstrap.credentials import token_ids
from controllers.bootstrap.founding import Founded
from controllers.bootstrap.ordering import Rendering
from controllers.kernel.bootstrapping import BootstrapNeed, BootstrapReads, FoundingOrder, JoinTarget, NoTarget, Support
from controllers.kernel.node_policy import endpoint_of, kubeconfig_secret_of
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_CLASS, NODE, SECRET, Key
from controllers.kernel.view import HostAbsent, HostReads, Reached, Unreachable
from controllers.machine.observe import Observed
from controllers.machine.reconciler import RECONCILER
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.cluster.snapshot import now_view, read_cluster
from nodewright.cli.exits import CliError
from nodewright.runtime.bootstrap.targets import Site, ask, with_server
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, ConfigurationError
from nodewright.runtime.workloads.options import WorkloadOptions
from nodewright.runtime.workloads.secret import connection_in
from providers.base.contract import BootstrapFormat
from providers.base.registry import Registry

MASK = "x" * 16
"""In place of the secret half of a token."""


async def rendered(target: Target, namespace: str | None, name: str, form: BootstrapFormat | None) -> str:
    """``form`` None: that which the provider likes best. Raises CliError."""
    connection = await connect(target)
    key = Key(namespace or connection.namespace, name)
    async with client_of(connection) as client:
        view = now_view(await read_cluster(client, (CLUSTER, MACHINE, MACHINE_CLASS, NODE)))
        need = RECONCILER.needs(key, view) if view.get(MACHINE, key) is not None else None
        if need is None:
            raise CliError(f"Machine {key} does not exist")
        if need.bootstrap is None:
            hint = "Set spec.bootstrap, be it {}, on the Machine, its template or its Cluster"
            raise CliError(f"nobody asks for bootstrap data of Machine {key}", hint)
        where = await _join_target(client, need.bootstrap)
    support = Support(*Registry.installed().bootstrapping(need.config)) if need.config else Support()
    if support.own:
        raise CliError(f"the host of Machine {key} gets no bootstrap data: {support.own}")
    reads = HostReads(HostAbsent(), support=support, bootstrap=BootstrapReads(where))
    if need.bootstrap.cluster is not None and endpoint_of(view.get(CLUSTER, need.bootstrap.cluster)):
        secret = kubeconfig_secret_of(need.bootstrap.cluster).name
        unknown = Unreachable(secret, str(Reason.UNREACHABLE), "it does not answer", None)
        view = replace(view, workload=Reached(secret) if isinstance(where, JoinTarget) else unknown)
    observed = RECONCILER.observe(key, view, reads)
    found = observed.bootstrapping if isinstance(observed, Observed) else None
    if need.problems or found is None or found.refused is not None or found.order is None:
        faults = [f"{problem.path}: {problem.message}" for problem in need.problems]
        message = f"{found.refused.reason}: {found.refused.message}" if found and found.refused else "; ".join(faults)
        raise CliError(f"no bootstrap data can be made for Machine {key}: {message}")
    render = found.order.render
    if form is not None and isinstance(render, Rendering):
        render = replace(render, format=form)
    founded = _shown(found.order.founding, key.name) if found.order.founding is not None else None
    return render(f"{token_ids(need.machine_uid)[0]}.{MASK}", {}, founded).decode()


def _shown(founding: FoundingOrder, name: str) -> Founded:
    """Authorities without their keys; the certificates are made up too, as those in Secrets are nobody's to print."""
    now = datetime.now(UTC)
    made = {each.suffix: NEW_KEYS.authority(each.common_name or name, now) for each in AUTHORITIES}
    pki = {suffix: KeyPair(pair.certificate, MASK) for suffix, pair in made.items()}
    return Founded(not founding.answers, pki)


async def _join_target(client: KubeClient, need: BootstrapNeed) -> JoinTarget | NoTarget:
    """By the kubeconfig Secret of the Cluster where there is one, as the controllers do."""
    now = datetime.now(UTC)
    home = Site(client, "the API server")
    if need.cluster is None:
        return with_server(await ask(home, client, now), need.endpoint, home)
    secret = kubeconfig_secret_of(need.cluster)
    try:
        options = WorkloadOptions()
        connection = connection_in(await client.get(SECRET, secret), options.servers)
    except ApiError as error:
        if not error.not_found:
            raise
        return with_server(await ask(home, client, now), need.endpoint, home)
    except ConfigurationError as error:
        raise CliError(f"Cluster {need.cluster} can't be reached: {error}") from error
    async with KubeClient(connection, "cli", options.client) as there:
        site = Site(there, f"the API server of Cluster {need.cluster}", is_workload=True)
        return with_server(await ask(site, there, now), need.endpoint, site)
