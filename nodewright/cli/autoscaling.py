"""Options of the autoscaler, named as the Cluster Autoscaler names them where they mean the same."""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.autoscaler_values import consolidation_of, range_of
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import duration_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controllers.autoscaler.options import AutoscalerOptions, GrowthOptions

LEAST_ALLOCATED = "LeastAllocated"
_GIB = 1024**3
_KEY_CHARACTERS = frozenset(string.ascii_letters + string.digits + "-_.")


def _option(name: str, metavar: str, help_: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar or None, help=help_, rich_help_panel="Autoscaler", **more)


@dataclass(frozen=True, slots=True)
class Flags:
    """As they are typed. ``options_of`` makes sense of them."""

    scan_interval: Annotated[str, _option("--scan-interval", "TIME", "How often the cluster is looked at.")] = "10s"
    batch_idle_duration: Annotated[
        str, _option("--batch-idle-duration", "TIME", "Pods that come are waited for until none has come for so long.")
    ] = "1s"
    batch_max_duration: Annotated[
        str, _option("--batch-max-duration", "TIME", "The longest that is waited for pods that come.")
    ] = "10s"
    nodes: Annotated[
        list[str] | None,
        _option("--nodes", "MIN:MAX:NS/NAME", "A group with its bounds, whatever its annotations say; repeatable."),
    ] = None
    node_group_auto_discovery: Annotated[
        list[str] | None,
        _option(
            "--node-group-auto-discovery",
            "clusterapi:KEY=VALUE,...",
            "Of annotated groups only these: namespace, clusterName or a label; repeatable.",
        ),
    ] = None
    cluster: Annotated[
        str,
        _option(
            "--cluster",
            "NS/NAME",
            "Scale this Cluster, whose Nodes live in a cluster of their own. "
            "[default: what has its Nodes in the management cluster]",
        ),
    ] = ""
    clusters: Annotated[
        str,
        _option(
            "--clusters",
            "SELECTOR",
            "Scale each Cluster with such labels whose Nodes live in a cluster of its own, by itself; all: each.",
        ),
    ] = ""
    management_cluster: Annotated[
        bool,
        _option(
            "--management-cluster/--no-management-cluster",
            "",
            "With --clusters: scale what has its Nodes in the management cluster, too.",
        ),
    ] = True
    expander: Annotated[
        str, _option("--expander", "NAMES", "Which group grows, where several would do; asked one after the other.")
    ] = "least-waste"
    balance_similar_node_groups: Annotated[
        bool,
        _option(
            "--balance-similar-node-groups/--no-balance-similar-node-groups",
            "",
            "Share new Nodes among groups whose Nodes are alike.",
        ),
    ] = False
    max_nodes_total: Annotated[int, _option("--max-nodes-total", "N", "Nodes of the cluster; 0: no limit.", min=0)] = 0
    cores_total: Annotated[str, _option("--cores-total", "MIN:MAX", "Cores of the cluster.")] = "0:320000"
    memory_total: Annotated[str, _option("--memory-total", "MIN:MAX", "Memory of the cluster, in GiB.")] = "0:6400000"
    max_nodes_per_scaleup: Annotated[
        int, _option("--max-nodes-per-scaleup", "N", "Nodes added in one look.", min=1)
    ] = 1000
    scale_up_rate: Annotated[
        str, _option("--scale-up-rate", "N:TIME", "At most N new Nodes in any such span of time. [default: no limit]")
    ] = ""
    max_node_provision_time: Annotated[
        str, _option("--max-node-provision-time", "TIME", "How long a Machine is waited for.")
    ] = "15m"
    startup_taint: Annotated[
        list[str] | None,
        _option(
            "--startup-taint",
            "KEY",
            "A taint that goes once a Node has started, besides the usual ones; KEY/: all that begin so; repeatable.",
        ),
    ] = None
    max_autoprovisioned_node_group_count: Annotated[
        int,
        _option(
            "--max-autoprovisioned-node-group-count",
            "N",
            "Groups that it makes of MachineClasses offered for that, at a time; 0: it makes none.",
            min=0,
        ),
    ] = 0
    gangs: Annotated[
        list[str] | None,
        _option(
            "--gangs",
            "API",
            "Pods of its groups get all of their Nodes or none: scheduling.k8s.io/ with v1alpha2, v1alpha3 or v1beta1, "
            "scheduling.x-k8s.io/v1alpha1 or scheduling.volcano.sh/v1beta1; repeatable.",
        ),
    ] = None
    capacity_buffers_enabled: Annotated[
        bool,
        _option(
            "--capacity-buffers-enabled/--no-capacity-buffers-enabled",
            "",
            "Keep the room free that CapacityBuffers ask for.",
        ),
    ] = False
    capacity_quotas_enabled: Annotated[
        bool,
        _option(
            "--capacity-quotas-enabled/--no-capacity-quotas-enabled",
            "",
            "Add no Node with which a CapacityQuota would be exceeded.",
        ),
    ] = False
    enable_proactive_scaleup: Annotated[
        bool,
        _option(
            "--enable-proactive-scaleup/--no-enable-proactive-scaleup",
            "",
            "Add Nodes for pods that ReplicaSets, Jobs and StatefulSets have yet to make.",
        ),
    ] = False
    pod_injection_limit: Annotated[
        int,
        _option("--pod-injection-limit", "N", "Pods not made yet for which Nodes are added in one look.", min=0),
    ] = 5000
    scheduler_scoring_strategy: Annotated[
        str,
        _option(
            "--scheduler-scoring-strategy",
            "NAME",
            "LeastAllocated: Nodes suffice also where kube-scheduler puts each pod on the least allocated Node. "
            "[default: pods just fit]",
        ),
    ] = ""
    expendable_pods_priority_cutoff: Annotated[
        int, _option("--expendable-pods-priority-cutoff", "N", "Pods of a lower priority get no Node of their own.")
    ] = -10
    scale_down_enabled: Annotated[
        bool, _option("--scale-down-enabled/--no-scale-down-enabled", "", "Whether Nodes go that nobody needs.")
    ] = True
    scale_down_utilization_threshold: Annotated[
        float,
        _option(
            "--scale-down-utilization-threshold", "SHARE", "A Node of which more is asked for stays.", min=0, max=1
        ),
    ] = 0.5
    scale_down_gpu_utilization_threshold: Annotated[
        float,
        _option(
            "--scale-down-gpu-utilization-threshold", "SHARE", "The same of the GPUs of a Node with GPUs.", min=0, max=1
        ),
    ] = 0.5
    ignore_daemonsets_utilization: Annotated[
        bool,
        _option(
            "--ignore-daemonsets-utilization/--no-ignore-daemonsets-utilization",
            "",
            "Whether pods of DaemonSets count as no use of their Node.",
        ),
    ] = False
    scale_down_unneeded_time: Annotated[
        str, _option("--scale-down-unneeded-time", "TIME", "How long nobody must have needed a Node.")
    ] = "10m"
    consolidation_enabled: Annotated[
        bool,
        _option(
            "--consolidation-enabled/--no-consolidation-enabled",
            "",
            "Whether Nodes go however much of them is used, and one cheaper or smaller Node takes the place of others.",
        ),
    ] = False
    consolidation_threshold: Annotated[
        float,
        _option(
            "--consolidation-threshold",
            "SHARE",
            "Which share of the price of the old Nodes, or of their size, has to be saved.",
            min=0,
            max=1,
        ),
    ] = 0.15
    consolidation_window: Annotated[
        list[str] | None,
        _option(
            "--consolidation-window",
            "SCHEDULE=TIME",
            "When Nodes may go for it, cron in UTC: '0 22 * * mon-fri=6h'; repeatable. [default: always]",
        ),
    ] = None
    scale_down_delay_after_add: Annotated[
        str, _option("--scale-down-delay-after-add", "TIME", "No Node goes for so long after one was added.")
    ] = "10m"
    scale_down_delay_after_delete: Annotated[
        str, _option("--scale-down-delay-after-delete", "TIME", "The same after one was removed.")
    ] = "0s"
    scale_down_delay_after_failure: Annotated[
        str, _option("--scale-down-delay-after-failure", "TIME", "The same after a group failed to grow.")
    ] = "3m"
    max_scale_down_parallelism: Annotated[
        int, _option("--max-scale-down-parallelism", "N", "Nodes that go at a time.", min=1)
    ] = 10
    max_drain_parallelism: Annotated[
        int, _option("--max-drain-parallelism", "N", "Those of them whose pods have to move.", min=1)
    ] = 1
    skip_nodes_with_system_pods: Annotated[
        bool,
        _option(
            "--skip-nodes-with-system-pods/--no-skip-nodes-with-system-pods",
            "",
            "Whether young pods of kube-system without a budget hold their Node.",
        ),
    ] = True
    skip_nodes_with_local_storage: Annotated[
        bool,
        _option(
            "--skip-nodes-with-local-storage/--no-skip-nodes-with-local-storage",
            "",
            "Whether pods that keep data on their Node hold it.",
        ),
    ] = True
    skip_nodes_with_custom_controller_pods: Annotated[
        bool,
        _option(
            "--skip-nodes-with-custom-controller-pods/--no-skip-nodes-with-custom-controller-pods",
            "",
            "Whether pods of controllers that nobody here knows hold their Node.",
        ),
    ] = True
    initial_node_group_backoff_duration: Annotated[
        str, _option("--initial-node-group-backoff-duration", "TIME", "How long a group rests that failed to grow.")
    ] = "5m"
    max_node_group_backoff_duration: Annotated[
        str, _option("--max-node-group-backoff-duration", "TIME", "The longest such rest; each is twice the last.")
    ] = "30m"
    node_group_backoff_reset_timeout: Annotated[
        str, _option("--node-group-backoff-reset-timeout", "TIME", "When a failure is forgotten.")
    ] = "3h"
    ok_total_unready_count: Annotated[
        int, _option("--ok-total-unready-count", "N", "So many unready Nodes stop nothing.", min=0)
    ] = 3
    max_total_unready_percentage: Annotated[
        float, _option("--max-total-unready-percentage", "N", "Nor does this share of them.", min=0, max=100)
    ] = 45.0
    autoscaler_namespace: Annotated[
        str, _option("--autoscaler-namespace", "NS", "Where its ConfigMaps are, and the Cluster Autoscaler's Lease.")
    ] = "kube-system"
    enable_provisioning_requests: Annotated[
        bool,
        _option(
            "--enable-provisioning-requests/--no-enable-provisioning-requests",
            "",
            "Leave them the room that they hold; the controller provisioningrequest beside it implies that.",
        ),
    ] = False
    provisioning_request_booking_time: Annotated[
        str, _option("--provisioning-request-booking-time", "TIME", "How long their room is kept for pods to come.")
    ] = "10m"
    provisioning_request_initial_backoff_time: Annotated[
        str, _option("--provisioning-request-initial-backoff-time", "TIME", "When one that failed is tried again.")
    ] = "1m"
    provisioning_request_max_backoff_time: Annotated[
        str, _option("--provisioning-request-max-backoff-time", "TIME", "The longest pause; each is twice the last.")
    ] = "10m"
    provisioning_request_max_age: Annotated[
        str, _option("--provisioning-request-max-age", "TIME", "When one fails for good, or is deleted once over.")
    ] = "168h"
    check_capacity_processor_instance: Annotated[
        str, _option("--check-capacity-processor-instance", "NAME", "Serve only checks that ask for this instance.")
    ] = ""


def tells_where_alone(flags: Flags) -> bool:
    """Whether ``flags`` only say which autoscaler is meant, and nothing of how it decides."""
    plain = Flags()
    return replace(flags, cluster="", autoscaler_namespace=plain.autoscaler_namespace) == plain


def options_of(flags: Flags) -> AutoscalerOptions:
    """Raises CliError (usage) naming the option."""
    from controllers.autoscaler.backoff import Pauses  # noqa: PLC0415
    from controllers.autoscaler.options import (  # noqa: PLC0415
        AutoscalerOptions,
        HealthOptions,
        ShrinkOptions,
    )
    from nodewright.cli.autoscaled import cluster_of, clusters_of, discovery_of  # noqa: PLC0415

    pauses = Pauses(
        duration_of("--initial-node-group-backoff-duration", flags.initial_node_group_backoff_duration),
        duration_of("--max-node-group-backoff-duration", flags.max_node_group_backoff_duration),
        duration_of("--node-group-backoff-reset-timeout", flags.node_group_backoff_reset_timeout),
    )
    interval = duration_of("--scan-interval", flags.scan_interval)
    if interval <= timedelta(0):
        raise CliError("--scan-interval: must be more than 0", "It is written like 10s", USAGE)
    return AutoscalerOptions(
        _growth(flags),
        ShrinkOptions(
            enabled=flags.scale_down_enabled,
            utilization_threshold=flags.scale_down_utilization_threshold,
            unneeded_time=duration_of("--scale-down-unneeded-time", flags.scale_down_unneeded_time),
            delay_after_add=duration_of("--scale-down-delay-after-add", flags.scale_down_delay_after_add),
            delay_after_delete=duration_of("--scale-down-delay-after-delete", flags.scale_down_delay_after_delete),
            delay_after_failure=duration_of("--scale-down-delay-after-failure", flags.scale_down_delay_after_failure),
            parallel=flags.max_scale_down_parallelism,
            parallel_drains=flags.max_drain_parallelism,
            system_pods_block=flags.skip_nodes_with_system_pods,
            local_storage_blocks=flags.skip_nodes_with_local_storage,
            custom_controllers_block=flags.skip_nodes_with_custom_controller_pods,
            gpu_utilization_threshold=flags.scale_down_gpu_utilization_threshold,
            ignore_daemon_sets=flags.ignore_daemonsets_utilization,
        ),
        HealthOptions(flags.ok_total_unready_count, flags.max_total_unready_percentage / 100, pauses),
        discovery_of(flags),
        interval,
        flags.autoscaler_namespace,
        flags.enable_provisioning_requests,
        cluster_of(flags),
        consolidation_of(
            flags.consolidation_enabled, flags.consolidation_threshold, windows=flags.consolidation_window or ()
        ),
        clusters_of(flags),
    )


def _growth(flags: Flags) -> GrowthOptions:
    from controllers.autoscaler.expanders import Choosing, ExpanderError, checked  # noqa: PLC0415
    from controllers.autoscaler.options import GrowthOptions, Range  # noqa: PLC0415

    try:
        expanders = tuple(checked([name.strip() for name in flags.expander.split(",") if name.strip()]))
    except ExpanderError as error:
        raise CliError(f"--expander: {error}", "See docs/autoscaler.md", USAGE) from error
    number, _, window = flags.scale_up_rate.partition(":")
    memory = range_of("--memory-total", flags.memory_total)
    growth = GrowthOptions(
        Choosing(expanders),
        flags.balance_similar_node_groups,
        flags.max_nodes_total,
        range_of("--cores-total", flags.cores_total),
        Range(memory.least * _GIB, memory.most * _GIB),
        flags.max_nodes_per_scaleup,
        provision_time=duration_of("--max-node-provision-time", flags.max_node_provision_time),
        expendable_below=flags.expendable_pods_priority_cutoff,
        startup_taints=tuple(map(_taint_key, flags.startup_taint or ())),
        own_groups=flags.max_autoprovisioned_node_group_count,
        gangs=_gangs(flags.gangs or ()),
        buffers=flags.capacity_buffers_enabled,
        quotas=flags.capacity_quotas_enabled,
        proactive=flags.enable_proactive_scaleup,
        most_expected=flags.pod_injection_limit,
        least_allocated=_is_least_allocated(flags.scheduler_scoring_strategy),
        batch_idle=duration_of("--batch-idle-duration", flags.batch_idle_duration),
        batch_max=duration_of("--batch-max-duration", flags.batch_max_duration),
    )
    if not flags.scale_up_rate:
        return growth
    if not number.isdigit() or not int(number):
        raise CliError(f"--scale-up-rate: {flags.scale_up_rate!r} is not like 100:10m", code=USAGE)
    return replace(growth, nodes_per_window=int(number), window=duration_of("--scale-up-rate", window))


def _is_least_allocated(strategy: str) -> bool:
    if strategy not in {"", LEAST_ALLOCATED}:
        raise CliError(
            f"--scheduler-scoring-strategy: {strategy!r} is not {LEAST_ALLOCATED}",
            "Nodes that pods just fit will do for the others: leave it out",
            USAGE,
        )
    return bool(strategy)


def _gangs(wanted: Iterable[str]) -> tuple[str, ...]:
    from controllers.autoscaler.gangs import APIS  # noqa: PLC0415

    for name in wanted:
        if name not in APIS:
            raise CliError(f"--gangs: {name!r} is none of {', '.join(APIS)}", "See docs/autoscaler.md", USAGE)
    return tuple(dict.fromkeys(wanted))


def _taint_key(text: str) -> str:
    """A key, or the beginning of keys that ends with ``/``; no value and no effect."""
    domain, _, name = text.partition("/")
    if not domain or not set(domain + name) <= _KEY_CHARACTERS:
        raise CliError(f"--startup-taint: {text!r} is no key of a taint, like example.com/agent-not-ready", code=USAGE)
    return text
