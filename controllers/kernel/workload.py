"""Whose Nodes are they? Each object belongs to one Cluster at most, and so to that Cluster's own API, if it has one."""

from __future__ import annotations

from api import names
from controllers.kernel.pausing import cluster_name_of
from controllers.kernel.refs import CLUSTER, Key, Kind, Obj, key_of, mapping, spec_of


def cluster_key_of(kind: Kind, obj: Obj) -> Key | None:
    """The Cluster in whose workload cluster the Nodes of ``obj`` live; None for the implicit one, which is home."""
    if kind == CLUSTER:
        return key_of(obj)
    name = cluster_name_of(obj)
    return Key(key_of(obj).namespace, name) if name else None


def kubeconfig_secret_of(cluster: Key) -> Key:
    """Where the kubeconfig of ``cluster`` lies, if it has one (CAPI's convention)."""
    return Key(cluster.namespace, f"{cluster.name}{names.KUBECONFIG_SUFFIX}")


def recorded_secret(cluster: Obj | None) -> str:
    """Name of the kubeconfig Secret that the Cluster was once seen to have; "" if it never had one."""
    status = (cluster or {}).get("status")
    found = status.get("kubeconfigSecret") if isinstance(status, dict) else None
    return found if isinstance(found, str) else ""


def endpoint_of(cluster: Obj | None) -> str:
    """``host:port`` of ``spec.controlPlaneEndpoint``, "" without one. Such a Cluster has an API of its own, be it only
    to come: none of its Machines joins the cluster that holds it.
    """
    found = mapping(spec_of(cluster).get("controlPlaneEndpoint")) if cluster is not None else {}
    host, port = found.get("host"), found.get("port", 6443)
    if not isinstance(host, str) or not host or not isinstance(port, int) or isinstance(port, bool):
        return ""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
