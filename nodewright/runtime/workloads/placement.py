"""Keys of objects that are in a workload cluster, in the queue of a controller whose objects are in several clusters.

Only cluster-scoped kinds are placed: the namespace, which their keys lack, holds ``NAMESPACE/NAME`` of the Cluster. No
namespace has a slash in its name. So the objects of one cluster take turns with those of others, as namespaces do.
"""

from __future__ import annotations

from controllers.kernel.refs import Key


def placed(key: Key, cluster: Key | None) -> Key:
    """``key``, which is cluster-scoped, in the workload cluster of ``cluster``; None: in the management cluster."""
    return key if cluster is None else Key(str(cluster), key.name)


def cluster_of(key: Key) -> Key | None:
    """The Cluster of a placed key; None of any other."""
    namespace, slash, name = key.namespace.partition("/")
    return Key(namespace, name) if slash else None


def local(key: Key) -> Key:
    """The key that the object has where it is."""
    return key if cluster_of(key) is None else Key("", key.name)
