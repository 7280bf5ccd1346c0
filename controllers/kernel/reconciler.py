"""The layout of every reconciler, and the little that the one generic shell must know about it.

A reconciler decides for one kind. An event only names a key; ``observe`` looks at the whole state; ``plan`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from controllers.kernel.plan import Plan
from controllers.kernel.refs import Key, Kind, Obj
from controllers.kernel.view import HostNeed, HostReads, ManagementCluster, View

ObservedT = TypeVar("ObservedT")


@dataclass(frozen=True, slots=True)
class Wake:
    """A change of an object of ``kind`` wakes the keys that ``keys(obj, view)`` names.

    ``ignores`` tells whether a change from ``old`` to ``new`` can't matter (a Node's heartbeat): it saves reconciles.
    ``gathers`` tells for how many seconds changes may be gathered before the key's reconcile (0: none), for reconciles
    that look at many objects: a set of a thousand Machines need not be looked at again for each of them.
    """

    kind: Kind
    keys: Callable[[Obj, View], Iterable[Key]]
    ignores: Callable[[Obj, Obj], bool] | None = None
    gathers: Callable[[Key, View], float] | None = None


class Reconciler(Protocol[ObservedT]):
    """One controller. ``needs`` may name one provider read; a reconciler without hosts returns None."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def reads(self) -> tuple[Kind, ...]:
        """Kinds that must be completely read before the first plan (the primary kind included)."""

    @property
    def wakes(self) -> tuple[Wake, ...]: ...

    def needs(self, key: Key, view: View) -> HostNeed | None: ...

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> ObservedT | None:
        """None if the object is gone."""

    def plan(self, observed: ObservedT) -> Plan: ...


@runtime_checkable
class ReportsUnreachable(Protocol):
    """A reconciler whose plans know what not to do while ``View.workload`` is Unreachable, and say so.

    Any other reconciler that reads kinds of the workload cluster gets no reconcile for a key whose cluster can't be
    reached.
    """

    @property
    def reports_unreachable(self) -> bool: ...


@runtime_checkable
class ReadsPartly(Protocol):
    """A reconciler that needs only some objects of a kind, of which others hold a great many or which not all may see.

    ``parts`` says which, by kind: those of a namespace, or some objects by name. Nobody else may read the kind.
    """

    @property
    def parts(self) -> Mapping[Kind, tuple[Key, ...]]:
        """Name "": all of the namespace."""


@runtime_checkable
class SpansClusters(Protocol):
    """A reconciler whose keys concern Machines of several clusters. Its reconciles are in the management cluster, and
    it asks ``View.of_cluster``.

    ``Wake.keys`` alone say whom a change in a workload cluster concerns; when contact with one is lost or found, all
    keys of the Cluster's namespace are looked at.
    """

    @property
    def spans_clusters(self) -> bool: ...


@runtime_checkable
class SeesOneCluster(Protocol):
    """A reconciler whose reconciles all see the same workload cluster, whatever its keys are: that of a
    Cluster, or the management cluster.

    There alone WORKLOAD_KINDS are read for it, and what it does to them is done there. Of other Clusters it may ask
    ``View.of_cluster`` where their Nodes live, and no more. A Cluster that has no API of its own counts as Unreachable,
    so that the reconciler never takes the Nodes in the management cluster for its own.
    """

    @property
    def sees(self) -> Key | ManagementCluster | None:
        """None: as if the reconciler did not say."""


@runtime_checkable
class LivesInClusters(Protocol):
    """A reconciler whose objects are of a kind of WORKLOAD_KINDS: in the management cluster and in workload clusters.

    Each reconcile sees the cluster that its object is in (``View.cluster``), and writes there. A Machine wakes objects
    of its own Cluster. Where kinds can't be read that such a reconciler alone needs, the cluster counts as reached all
    the same: ``Reached.lacking`` says so.
    """

    @property
    def lives_in_clusters(self) -> bool: ...


@runtime_checkable
class ServesClusters(Protocol):
    """A reconciler whose keys are Clusters, and each of whose reconciles sees that Cluster's own API, if it has one.

    There alone WORKLOAD_KINDS are read for it, never in the management cluster; what it does to them is done there.
    ``served_clusters`` tells of a Cluster whether it is to be served at all: no connection is opened to another one.
    The reconcile of a Cluster that is gone, not served or without an API of its own is in the management cluster
    (``View.cluster`` is None), and is planned without WORKLOAD_KINDS.
    """

    @property
    def served_clusters(self) -> Callable[[Obj], bool] | None:
        """None: as if the reconciler did not say."""


@runtime_checkable
class SharesHosts(Protocol):
    """A reconciler that looks at the hosts of Machines that are not its own objects.

    Nothing about a host is forgotten, and no call for it taken back, when an object of such a reconciler goes.
    """

    @property
    def shares_hosts(self) -> bool: ...


def cluster_seen_by(reconciler: Reconciler[Any]) -> Key | ManagementCluster | None:
    """The one cluster that all reconciles of ``reconciler`` see; None: each sees its key's, or the
    management cluster (``SpansClusters``).
    """
    return reconciler.sees if isinstance(reconciler, SeesOneCluster) else None


def lives_in_clusters(reconciler: Reconciler[Any]) -> bool:
    """Whether objects of ``reconciler`` are in each workload cluster, too."""
    return isinstance(reconciler, LivesInClusters) and reconciler.lives_in_clusters


def clusters_served_by(reconciler: Reconciler[Any]) -> Callable[[Obj], bool] | None:
    """Which Clusters ``reconciler`` serves, if its keys are Clusters that it sees from within."""
    return reconciler.served_clusters if isinstance(reconciler, ServesClusters) else None


@dataclass(frozen=True, slots=True)
class ReconcilerWrapper:
    """A reconciler in every respect as ``reconciler`` is, but for what a subclass changes."""

    reconciler: Reconciler[Any]

    @property
    def name(self) -> str:
        return self.reconciler.name

    @property
    def kind(self) -> Kind:
        return self.reconciler.kind

    @property
    def reads(self) -> tuple[Kind, ...]:
        return self.reconciler.reads

    @property
    def wakes(self) -> tuple[Wake, ...]:
        return self.reconciler.wakes

    @property
    def reports_unreachable(self) -> bool:
        return isinstance(self.reconciler, ReportsUnreachable) and self.reconciler.reports_unreachable

    @property
    def spans_clusters(self) -> bool:
        return isinstance(self.reconciler, SpansClusters) and self.reconciler.spans_clusters

    @property
    def lives_in_clusters(self) -> bool:
        return lives_in_clusters(self.reconciler)

    @property
    def sees(self) -> Key | ManagementCluster | None:
        return cluster_seen_by(self.reconciler)

    @property
    def served_clusters(self) -> Callable[[Obj], bool] | None:
        return clusters_served_by(self.reconciler)

    @property
    def parts(self) -> Mapping[Kind, tuple[Key, ...]]:
        return self.reconciler.parts if isinstance(self.reconciler, ReadsPartly) else {}

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return self.reconciler.needs(key, view)

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Any:
        return self.reconciler.observe(key, view, hosts)

    def plan(self, observed: Any) -> Plan:
        return self.reconciler.plan(observed)
