"""Options for the cluster as a whole. The defaults are the Cluster Autoscaler's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from api import names
from api.selectors import EVERYTHING, Selector
from controllers.autoscaler.backoff import Pauses
from controllers.autoscaler.expanders import Choosing
from controllers.kernel.refs import Key
from controllers.scaling.node_group import Discovery

_GIB = 1024**3
_WHERE_CLUSTER_AUTOSCALERS_ARE = "kube-system"


class Range(NamedTuple):
    least: int
    most: int


_CORES, _MEMORY = Range(0, 320_000), Range(0, 6_400_000 * _GIB)


@dataclass(frozen=True, slots=True)
class GrowthOptions:
    """``max_nodes`` 0: no limit. ``cores`` and ``memory`` (bytes) bound what all Nodes together offer to pods.

    ``nodes_per_window``: at most so many new Nodes in any ``window`` (0: no limit), which the Cluster Autoscaler has
    not (autoscaler#6895). ``provision_time``: a Machine that is no Ready Node by then is not waited for any longer.
    ``expendable_below``: pods of a lower priority get no Node of their own. ``startup_taints``: keys of taints that go
    by themselves, besides the usual ones.
    """

    choosing: Choosing = field(default_factory=Choosing)
    balance: bool = False
    max_nodes: int = 0
    cores: Range = _CORES
    memory: Range = _MEMORY
    nodes_per_scale_up: int = 1000
    nodes_per_window: int = 0
    window: timedelta = timedelta(minutes=10)
    provision_time: timedelta = timedelta(minutes=15)
    expendable_below: int = -10
    startup_taints: tuple[str, ...] = ()
    own_groups: int = 0
    """Groups of its own making that there may be at a time; 0: it makes none."""
    gangs: tuple[str, ...] = ()
    """APIs whose groups of pods get all of their Nodes or none (``gangs.APIS``)."""
    buffers: bool = False
    """Whether CapacityBuffers are served."""
    quotas: bool = False
    """Whether CapacityQuotas limit what is added."""
    proactive: bool = False
    """Whether Nodes are added for pods before kube-scheduler has looked at them, and before they are made."""
    most_expected: int = 5000
    """Pods that are not made yet for which Nodes are added in one look."""
    least_allocated: bool = False
    """Whether Nodes suffice where kube-scheduler puts each pod on the least allocated Node."""
    batch_idle: timedelta = timedelta(seconds=1)
    """While pods come, it is waited until none has come for so long; 0: nothing is waited for."""
    batch_max: timedelta = timedelta(seconds=10)
    """The longest such wait."""


@dataclass(frozen=True, slots=True)
class ShrinkOptions:
    """When Nodes may go. ``parallel`` Nodes at a time, ``parallel_drains`` of them with pods that have to move.

    ``gpu_utilization_threshold`` is alone what counts for Nodes with GPUs. ``ignore_daemon_sets``: their
    pods count as no use.

    ``system_pods_block`` and the like: see ``DrainRules``.
    """

    enabled: bool = True
    utilization_threshold: float = 0.5
    unneeded_time: timedelta = timedelta(minutes=10)
    delay_after_add: timedelta = timedelta(minutes=10)
    delay_after_delete: timedelta = timedelta(0)
    delay_after_failure: timedelta = timedelta(minutes=3)
    parallel: int = 10
    parallel_drains: int = 1
    system_pods_block: bool = True
    local_storage_blocks: bool = True
    custom_controllers_block: bool = True
    gpu_utilization_threshold: float = 0.5
    ignore_daemon_sets: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """From each strike of ``schedule`` (cron with five fields, UTC) for ``duration``."""

    schedule: str
    duration: timedelta


@dataclass(frozen=True, slots=True)
class ConsolidationOptions:
    """``least_gain``: share of what the old Nodes cost that has to be saved. ``windows``: when old Nodes may go for it;
    none: always.
    """

    enabled: bool = False
    least_gain: float = 0.15
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """More unready Nodes than ``ok_unready`` and than the share ``most_unready``: nothing is scaled.

    ``pauses``: how long groups rest that failed to grow.
    """

    ok_unready: int = 3
    most_unready: float = 0.45
    pauses: Pauses = field(default_factory=Pauses)


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """Clusters with an API of their own that one process scales, each by itself: those whose labels ``selector``
    matches. ``home``: it scales what has its Nodes in the management cluster, too.
    """

    selector: Selector = EVERYTHING
    home: bool = True


@dataclass(frozen=True, slots=True)
class AutoscalerOptions:
    """``discovery``: which objects are groups. ``namespace`` holds the autoscaler's ConfigMaps, and the Cluster
    Autoscaler's Lease if there is one. ``provisioning_requests``: the room that they hold is theirs.
    ``cluster``: only groups of this Cluster, whose Nodes live in a cluster of their own; None: only those in the
    management cluster. ``clusters``: one autoscaler like this for each Cluster that it chooses; None: no more than one.
    ``lease_namespace``: where the Cluster Autoscaler's Lease is, if it is not where the ConfigMaps are.
    """

    growth: GrowthOptions = field(default_factory=GrowthOptions)
    shrink: ShrinkOptions = field(default_factory=ShrinkOptions)
    health: HealthOptions = field(default_factory=HealthOptions)
    discovery: Discovery = field(default_factory=Discovery)
    scan_interval: timedelta = timedelta(seconds=10)
    namespace: str = "kube-system"
    provisioning_requests: bool = False
    cluster: Key | None = None
    consolidation: ConsolidationOptions = field(default_factory=ConsolidationOptions)
    clusters: ClusterChoice | None = None
    lease_namespace: str = ""

    @property
    def lease_key(self) -> Key:
        """The Cluster Autoscaler's Lease, in the cluster that is scaled."""
        return Key(self.lease_namespace or self.namespace, names.AUTOSCALER_LEASE)

    @property
    def memory_key(self) -> Key:
        return self._own(names.AUTOSCALER_MEMORY)

    @property
    def status_key(self) -> Key:
        return self._own(names.AUTOSCALER_STATUS)

    def _own(self, name: str) -> Key:
        """Autoscalers of several Clusters may share the namespace."""
        return Key(self.namespace, name if self.cluster is None else f"{name}.{suffix_of(self.cluster)}")


def of_cluster(options: AutoscalerOptions, cluster: Key) -> AutoscalerOptions:
    """The options of the autoscaler of one of ``options.clusters``.

    Its ConfigMaps lie at home, with those of all others; the Cluster Autoscaler is looked for where it is by default.
    """
    return replace(options, cluster=cluster, clusters=None, lease_namespace=_WHERE_CLUSTER_AUTOSCALERS_ARE)


def cluster_kept_in(config_map: Key, namespace: str) -> Key | None:
    """The Cluster whose autoscaler keeps ``config_map``; None if it is nobody's. The reverse of ``memory_key``."""
    for name in (names.AUTOSCALER_MEMORY, names.AUTOSCALER_STATUS):
        cluster, dot, rest = config_map.name.removeprefix(f"{name}.").partition(".")
        if config_map.name.startswith(f"{name}.") and config_map.namespace == namespace and cluster and dot and rest:
            return Key(cluster, rest)
    return None


def suffix_of(cluster: Key) -> str:
    """What tells the names of one Cluster's objects from another's: a namespace has no dots."""
    return f"{cluster.namespace}.{cluster.name}"
