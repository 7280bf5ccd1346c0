"""Options that divide work between processes: which controllers each runs, which Machines, and which of them leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from api.names import SYSTEM_NAMESPACE
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import duration_of

if TYPE_CHECKING:
    from api.remediation import TemplateKind
    from api.selectors import Selector
    from controllers.autoscaler.options import AutoscalerOptions
    from controllers.kernel.joining import Limits
    from controllers.provisioningrequest.options import ProvisioningOptions
    from nodewright.runtime.election.claims import Claim
    from nodewright.runtime.election.lease import Terms
    from nodewright.runtime.election.lease_options import LeaseOptions
    from nodewright.runtime.settings.options import Reconcilers

LEASE_NAME = "nodewright"

Controllers = Annotated[
    str,
    typer.Option(
        "--controllers",
        metavar="NAMES",
        help="Which ones, comma separated; * is all but autoscaler, certificatesigningrequest, controlplane and "
        "provisioningrequest; -NAME: not this one.",
    ),
]
MachineSelector = Annotated[
    str, typer.Option("--machine-selector", metavar="SELECTOR", help="Serve only Machines with such labels.")
]
LeaderElect = Annotated[
    bool,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Stand by while another process serves the same objects; without it that is an error.",
    ),
]
LeaseDuration = Annotated[
    str,
    typer.Option("--leader-elect-lease-duration", metavar="TIME", help="How long others wait for a silent leader."),
]
RenewDeadline = Annotated[
    str,
    typer.Option("--leader-elect-renew-deadline", metavar="TIME", help="When a leader that can't renew stops."),
]
RetryPeriod = Annotated[
    str, typer.Option("--leader-elect-retry-period", metavar="TIME", help="Time between two tries of anybody.")
]
ResourceName = Annotated[
    str,
    typer.Option("--leader-elect-resource-name", metavar="NAME", help="Which Lease. [default: by what this one runs]"),
]
NodeOwnerLabel = Annotated[
    bool,
    typer.Option(
        "--node-owner-label",
        help="Label Nodes with the UID of their Machine, as kubermatic's tools expect; no two groups are similar then.",
    ),
]
ResourceNamespace = Annotated[
    str,
    typer.Option(
        "--leader-elect-resource-namespace",
        metavar="NS",
        help=f"Where it is; the same for all processes of a cluster. [default: {SYSTEM_NAMESPACE}]",
    ),
]


_REQUESTS = "provisioningrequest"
_SCALING = frozenset({"autoscaler", _REQUESTS})


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """How the options of the autoscaler and of ProvisioningRequests are made; None: their defaults.

    ``template_kinds``: kinds of objects that MachineHealthChecks may make by their templates.
    """

    autoscaler: Callable[[], AutoscalerOptions] | None = None
    provisioning: Callable[[], ProvisioningOptions] | None = None
    template_kinds: frozenset[TemplateKind] = frozenset()


@dataclass(frozen=True, slots=True)
class Work:
    """What one process does. ``lease`` is the name that all processes with the same work agree on; ``claims`` is what
    tells processes with different work whether they may work at the same time. ``namespace`` "": all."""

    reconcilers: Reconcilers
    machines: Selector
    lease: str
    claims: tuple[Claim, ...]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Election:
    """``waits``: stand by while another process works. ``name`` and ``namespace`` "": the usual ones."""

    waits: bool
    terms: Terms
    name: str
    namespace: str

    def options(self, work: Work, on_wait: Callable[[str], None] | None = None) -> LeaseOptions:
        from nodewright.runtime.election.lease_options import LeaseOptions  # noqa: PLC0415

        return LeaseOptions(
            self.name or work.lease,
            self.namespace or SYSTEM_NAMESPACE,
            self.terms,
            claims=work.claims,
            waits=self.waits,
            command="nodewright run",
            on_wait=on_wait,
        )


def work_named(
    controllers: str,
    machine_selector: str,
    node_name: str = "",
    limits: Limits | None = None,
    options: ControllerOptions | None = None,
    namespace: str = "",
) -> Work:
    """What the options ask for, on the Node ``node_name``, for objects in ``namespace`` ("": all).

    Raises CliError (usage) for names and selectors that can't be meant.
    """
    asked = options or ControllerOptions()
    reconcilers = reconcilers_named(
        controllers, node_name, limits, asked.autoscaler, asked.provisioning, asked.template_kinds
    )
    machines = _selector(machine_selector)
    if not machines.empty:
        _only_of_machines(reconcilers)
    from nodewright.runtime.settings.wiring import claims_of  # noqa: PLC0415

    within = ["namespace", namespace] if namespace else []
    name = ".".join([_lease_name(controllers, reconcilers, machines), *_of_many_clusters(reconcilers), *within])
    if any(reconciler.name in _SCALING for reconciler in reconcilers):
        from nodewright.runtime.settings.cluster_wiring import for_each_cluster  # noqa: PLC0415

        reconcilers = for_each_cluster(reconcilers)
    return Work(reconcilers, machines, name, claims_of(reconcilers, machines, namespace), namespace)


def with_owner_label(work: Work) -> Work:
    """The same, with the label ``machine-controller/owned-by`` on each Node."""
    from controllers.machine.reconciler import MachineReconciler  # noqa: PLC0415

    reconcilers = tuple(
        replace(reconciler, owner_label=True) if isinstance(reconciler, MachineReconciler) else reconciler
        for reconciler in work.reconcilers
    )
    return replace(work, reconcilers=reconcilers)


def reconcilers_named(
    names: str,
    node_name: str = "",
    limits: Limits | None = None,
    autoscaler: Callable[[], AutoscalerOptions] | None = None,
    provisioning: Callable[[], ProvisioningOptions] | None = None,
    template_kinds: frozenset[TemplateKind] = frozenset(),
) -> Reconcilers:
    """The controllers that ``names`` lists, as kube-controller-manager reads it: ``*``, ``NAME`` and ``-NAME``.

    ``*`` is not those that only run on request.
    """
    from controllers.kernel.joining import NO_LIMITS  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import on_request  # noqa: PLC0415
    from nodewright.runtime.settings.wiring import reconcilers as default_reconcilers  # noqa: PLC0415

    usual = {
        reconciler.name: reconciler
        for reconciler in default_reconcilers(node_name, limits or NO_LIMITS, template_kinds)
    }
    wanted = _words(names)
    beside = _enabled(_REQUESTS, wanted, False)
    special = on_request(_with_requests(autoscaler) if beside else autoscaler, provisioning)
    known = [*usual, *special]
    unknown = [name for name in wanted if name != "*" and name.removeprefix("-") not in known]
    if unknown:
        raise CliError(f"no controller named {', '.join(unknown)}", f"There are: {', '.join(known)}", USAGE)
    chosen = (
        *(reconciler for name, reconciler in usual.items() if _enabled(name, wanted, "*" in wanted)),
        *(make() for name, make in special.items() if _enabled(name, wanted, False)),
    )
    if not chosen:
        raise CliError("--controllers names none", f"There are: {', '.join(known)}, and * for all", USAGE)
    return chosen


def _with_requests(autoscaler: Callable[[], AutoscalerOptions] | None) -> Callable[[], AutoscalerOptions]:
    """In one process with the controller of ProvisioningRequests the autoscaler knows of them."""

    def options() -> AutoscalerOptions:
        from controllers.autoscaler.options import AutoscalerOptions  # noqa: PLC0415

        given = autoscaler() if autoscaler is not None else AutoscalerOptions()
        return replace(given, provisioning_requests=True)

    return options


def _enabled(name: str, wanted: list[str], usually: bool) -> bool:
    """The first word that names it decides."""
    spelling = next((word for word in wanted if word.removeprefix("-") == name), "")
    return not spelling.startswith("-") if spelling else usually


@dataclass(frozen=True, slots=True)
class ElectionFlags:
    """As they are typed."""

    leader_elect: LeaderElect = True
    leader_elect_lease_duration: LeaseDuration = "15s"
    leader_elect_renew_deadline: RenewDeadline = "10s"
    leader_elect_retry_period: RetryPeriod = "2s"
    leader_elect_resource_name: ResourceName = ""
    leader_elect_resource_namespace: ResourceNamespace = ""

    def election(self) -> Election:
        """Raises CliError (usage)."""
        terms = terms_of(
            self.leader_elect_lease_duration, self.leader_elect_renew_deadline, self.leader_elect_retry_period
        )
        return Election(self.leader_elect, terms, self.leader_elect_resource_name, self.leader_elect_resource_namespace)


def terms_of(lease_duration: str, renew_deadline: str, retry_period: str) -> Terms:
    """Raises CliError (usage)."""
    from nodewright.runtime.election.lease import Terms  # noqa: PLC0415

    try:
        return Terms(
            _seconds("--leader-elect-lease-duration", lease_duration),
            _seconds("--leader-elect-renew-deadline", renew_deadline),
            _seconds("--leader-elect-retry-period", retry_period),
        )
    except ValueError as error:
        raise CliError(f"leader election: {error}", "See docs/tasks/run-on-kubernetes.md", USAGE) from error


def limits_of(hosts_in_flight: int | None, token_lifetime: str) -> Limits:
    """Raises CliError (usage)."""
    from controllers.kernel.joining import Limits  # noqa: PLC0415

    return Limits(
        hosts_in_flight, duration_of("--bootstrap-token-lifetime", token_lifetime) if token_lifetime else None
    )


def _seconds(option: str, text: str) -> float:
    return duration_of(option, text).total_seconds()


def _selector(text: str) -> Selector:
    from api.selectors import SelectorError, parse  # noqa: PLC0415

    try:
        return parse(text)
    except SelectorError as error:
        raise CliError(f"--machine-selector: {error}", "It is written as for `kubectl get -l`", USAGE) from error


def _only_of_machines(reconcilers: Reconcilers) -> None:
    """Two processes that select different Machines must not both serve the sets that those belong to."""
    from controllers.kernel.sharding import can_be_sharded  # noqa: PLC0415

    whole = [reconciler.name for reconciler in reconcilers if not can_be_sharded(reconciler)]
    if whole:
        hint = "Run --controllers=machine with it, and the others in a process without it: --controllers=*,-machine"
        raise CliError(f"--machine-selector does not divide the work of {', '.join(whole)}", hint, USAGE)


def _lease_name(controllers: str, reconcilers: Reconcilers, machines: Selector) -> str:
    """The same work, the same Lease. What ``*`` leaves out is named, not what it means: the next version may have more
    controllers, and its processes must not work beside those of this one while they are exchanged. Nor must those that
    were asked for one more."""
    from controllers.kernel.memory import digest  # noqa: PLC0415

    words = _words(controllers)
    named = sorted({reconciler.name for reconciler in reconcilers})
    if "*" in words:
        without = sorted({word.removeprefix("-") for word in words if word.startswith("-")})
        named = ["without", *without] if without else []
    shard = [] if machines.empty else [digest(str(machines))]
    return ".".join(["-".join([LEASE_NAME, *named, *shard]), *_of_one_cluster(reconcilers)])


def _of_one_cluster(reconcilers: Reconcilers) -> list[str]:
    """What tells the Leases of those apart that work for one Cluster each. One that does anything else too must not
    work beside another that does."""
    from controllers.autoscaler.options import suffix_of  # noqa: PLC0415
    from controllers.kernel.reconciler import cluster_seen_by  # noqa: PLC0415
    from controllers.kernel.refs import Key  # noqa: PLC0415

    seen = {cluster_seen_by(reconciler) for reconciler in reconcilers}
    return [suffix_of(each) for each in seen if isinstance(each, Key)] if len(seen) == 1 else []


def _of_many_clusters(reconcilers: Reconcilers) -> list[str]:
    """The same of those that do nothing but scale Clusters: which ones, and whether the management cluster, too.

    It only keeps processes with the same options from competing: a Cluster is claimed by itself.
    """
    if any(reconciler.name not in _SCALING for reconciler in reconcilers):
        return []
    from controllers.kernel.memory import digest  # noqa: PLC0415
    from nodewright.runtime.settings.cluster_wiring import choice_in  # noqa: PLC0415

    choice = choice_in(reconcilers)
    if choice is None:
        return []
    labels = [] if choice.selector.empty else [digest(str(choice.selector))]
    return ["clusters", *labels, *([] if choice.home else ["alone"])]


def _words(controllers: str) -> list[str]:
    return [word.strip() for word in controllers.split(",") if word.strip()]
