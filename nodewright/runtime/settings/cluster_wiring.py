"""Controllers that look at a cluster as a whole, one for each Cluster that a process is to serve."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from controllers.autoscaler.options import AutoscalerOptions, ClusterChoice, cluster_kept_in, of_cluster
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.each_cluster import Clusters, EachCluster
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import CONFIG_MAP, Key, labels_of
from controllers.provisioningrequest.reconciler import ProvisioningRequestReconciler
from controllers.scheduling.reading import Reader
from nodewright.runtime.settings.options import Reconcilers

_Scaling = AutoscalerReconciler | ProvisioningRequestReconciler


def for_each_cluster(wanted: Reconcilers) -> Reconcilers:
    """``wanted``; where the autoscaler's options choose Clusters, it and the controller of ProvisioningRequests become
    one for each of those, beside the one of the management cluster or instead of it.
    """
    reader_of = _shared_readers()
    found: list[Reconciler[Any]] = []
    for reconciler in wanted:
        options = _options_of(reconciler)
        if not isinstance(reconciler, _Scaling) or options is None or options.clusters is None:
            found.append(reconciler)
            continue
        if options.clusters.home:
            found.append(reconciler)
        found.append(_each(reconciler, options, reader_of))
    return tuple(found)


def choice_in(wanted: Reconcilers) -> ClusterChoice | None:
    """Which Clusters the options of ``wanted`` choose, before ``for_each_cluster``."""
    found = (options.clusters for each in wanted if (options := _options_of(each)) is not None)
    return next((choice for choice in found if choice is not None), None)


def _options_of(reconciler: Reconciler[Any]) -> AutoscalerOptions | None:
    if isinstance(reconciler, AutoscalerReconciler):
        return reconciler.options
    return reconciler.setting.autoscaler if isinstance(reconciler, ProvisioningRequestReconciler) else None


def _shared_readers() -> Callable[[Key], Reader]:
    """One reader for the reconcilers of a Cluster, as long as one of them is there."""
    readers: WeakValueDictionary[Key, Reader] = WeakValueDictionary()

    def reader_of(cluster: Key) -> Reader:
        found = readers.get(cluster)
        if found is None:
            found = readers[cluster] = Reader()
        return found

    return reader_of


def _each(reconciler: _Scaling, options: AutoscalerOptions, reader_of: Callable[[Key], Reader]) -> EachCluster:
    choice = options.clusters
    assert choice is not None

    def autoscaler(cluster: Key) -> Reconciler[Any]:
        return AutoscalerReconciler(of_cluster(options, cluster), reader_of(cluster))

    def requests(cluster: Key) -> Reconciler[Any]:
        assert isinstance(reconciler, ProvisioningRequestReconciler)
        setting = reconciler.setting
        return ProvisioningRequestReconciler(
            of_cluster(options, cluster), setting.options, setting.classes, reader_of(cluster)
        )

    def kept(cluster: Key) -> tuple[Key, ...]:
        own = of_cluster(options, cluster)
        return own.memory_key, own.status_key

    scales = isinstance(reconciler, AutoscalerReconciler)
    make = autoscaler if scales else requests
    clusters = Clusters(lambda cluster: choice.selector.matches(labels_of(cluster)))
    if scales:
        clusters = Clusters(clusters.serves, kept, partial(cluster_kept_in, namespace=options.namespace))
    parts = {CONFIG_MAP: (Key(options.namespace, ""),)}
    return EachCluster(make, make(Key("", "")), clusters, parts=parts)
