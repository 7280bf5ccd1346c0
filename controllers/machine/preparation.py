"""Hosts of workers are prepared while the control plane of their cluster is being made: they join right after it."""

from __future__ import annotations

from controllers.bootstrap.ordering import Wanted, preparation_for
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.ownership import cluster_name_of, cluster_of
from controllers.kernel.refs import MACHINE, Obj, is_deleting, key_of, spec_of, status_of
from controllers.kernel.view import CONTROL_PLANE_OF, HostAbsent, HostRead, View


def script_for(machine: Obj, wanted: Wanted, host: HostRead, view: View) -> str:
    """What its host is to begin with; "" if it is not to begin: it has a host, or its cluster is not being made."""
    endpoint = endpoint_of(cluster_of(machine, view))
    has_none = isinstance(host, HostAbsent) and host.leftover is None
    if not (wanted.support.prepares and endpoint and has_none and _is_being_made(machine, view)):
        return ""
    return preparation_for(wanted, wanted.settings.endpoint or f"https://{endpoint}")


def _is_being_made(machine: Obj, view: View) -> bool:
    """A Machine of its control plane has a host, so that no worker takes that, and none was ever a Node."""
    cluster = f"{key_of(machine).namespace}/{cluster_name_of(machine)}"
    planes = list(view.indexed(MACHINE, CONTROL_PLANE_OF, cluster))
    begun = any(spec_of(plane).get("providerID") for plane in planes if not is_deleting(plane))
    return begun and not any(status_of(plane).get("nodeRef") for plane in planes)
