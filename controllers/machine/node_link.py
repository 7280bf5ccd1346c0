"""Which Node is the Machine's? The one that the provider's host of this Machine's UID says is its own.

``spec.providerID`` and ``status.nodeRef`` prove nothing: whoever may edit the Machine writes them. While the provider's
host is not known, or is gone, only the record on the Node counts (``controllers.kernel.node_owner``).
Never by address alone (machine-controller#75, #140: a reused IP claims a dead Machine's Node).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from api import names
from controllers.kernel.conditions import parse_time
from controllers.kernel.node_owner import claimed_by_another, is_recorded_for
from controllers.kernel.node_owner import provider_id_of as node_provider_id
from controllers.kernel.refs import NODE, Key, Obj, mapping, spec_of, uid_of
from controllers.kernel.view import NODE_OWNER, PROVIDER_ID, HostPresent, HostRead, ManagementCluster, View
from providers.base.contract import Host

CLOCK_SKEW = timedelta(minutes=5)
"""How far the clock of a workload cluster's API server may be behind that of the cluster which holds the Machines."""
_ADDRESSES = frozenset({"InternalIP", "ExternalIP"})


@dataclass(frozen=True, slots=True)
class Linked:
    """``by_host``: the provider's host says so now. Else only the Node's record does: enough to read, not to write."""

    node: Obj
    by_host: bool = True


@dataclass(frozen=True, slots=True)
class Unlinked:
    """No Node yet; ``why`` if there is more to say than that."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A Node is there, but nothing proves that it is this Machine's; a person has to decide. It is left alone
    meanwhile.
    """

    why: str


Link = Linked | Unlinked | Conflict


def find(machine: Obj, read: HostRead, view: View) -> Link:
    """The Node of ``machine``. ``read``: what the provider says of the host with this Machine's UID."""
    if not isinstance(read, HostPresent):
        return _recorded(machine, view)
    host = read.host
    if not host.provider_id:
        return _recorded(machine, view)
    nodes = view.indexed(NODE, PROVIDER_ID, host.provider_id)
    if len(nodes) > 1:
        title = ", ".join(sorted(node["metadata"]["name"] for node in nodes))
        return Conflict(
            f"Nodes {title} all carry the providerID {host.provider_id}; delete those that are not its Node"
        )
    return _of_host(nodes[0], machine, view) if nodes else _by_name(machine, host, view)


def provider_id_of(machine: Obj) -> str:
    found = spec_of(machine).get("providerID")
    return found if isinstance(found, str) else ""


def recorded_for(machine: Obj, view: View) -> list[Obj]:
    """Nodes that are recorded for ``machine``, but for those whose providerID a second Node carries too."""
    nodes = view.indexed(NODE, NODE_OWNER, uid_of(machine)) if uid_of(machine) else ()
    return [node for node in nodes if is_recorded_for(node, machine) and not _is_doubled(node, view)]


def _is_doubled(node: Obj, view: View) -> bool:
    provider_id = node_provider_id(node)
    return bool(provider_id) and len(view.indexed(NODE, PROVIDER_ID, provider_id)) > 1


def _recorded(machine: Obj, view: View) -> Link:
    """A kubelet writes its own Node, and may give it another's record: the Node that was linked before counts."""
    bound, linked = provider_id_of(machine), mapping(mapping(machine.get("status")).get("nodeRef")).get("uid")
    fitting = [node for node in recorded_for(machine, view) if node_provider_id(node) in {"", bound}]
    fitting = [node for node in fitting if linked and uid_of(node) == linked] or fitting
    return Linked(fitting[0], by_host=False) if len(fitting) == 1 else Unlinked()


def _of_host(node: Obj, machine: Obj, view: View) -> Link:
    name, other = node["metadata"]["name"], claimed_by_another(node, machine)
    if other:
        return Conflict(f"Node {name} has its providerID but says that it belongs to {other}")
    if not is_recorded_for(node, machine) and _is_older(node, machine, view):
        return Conflict(
            f"Node {name} has its providerID but is older than the Machine; if it is its Node, label it "
            f"{names.NODE_OWNED_BY_LABEL}={uid_of(machine)}"
        )
    return Linked(node)


def _by_name(machine: Obj, host: Host, view: View) -> Link:
    """A kubelet without a cloud provider registers without providerID: then the host's own name counts.

    A name alone proves nothing: the Node must be recorded for the Machine, or be younger than it and have an address
    that the provider reports of the host.
    """
    node = view.get(NODE, Key("", host.name)) if host.name else None
    if node is None:
        return Unlinked()
    if node_provider_id(node):
        return Unlinked(f"Node {host.name} belongs to another host: its providerID differs")
    if is_recorded_for(node, machine):
        return Linked(node)
    other = claimed_by_another(node, machine)
    if other:
        return Conflict(f"Node {host.name} has its host's name but says that it belongs to {other}")
    if _is_older(node, machine, view):
        return Unlinked(f"Node {host.name} is older than the Machine: it is what another host left behind")
    if not _addresses(node.get("status")) & {a.address for a in host.addresses if a.type in _ADDRESSES}:
        return Unlinked(f"Node {host.name} has no providerID and no address that the provider reports of the host")
    return Linked(node)


def _is_older(node: Obj, machine: Obj, view: View) -> bool:
    born = parse_time(node["metadata"].get("creationTimestamp"))
    asked = parse_time(machine["metadata"].get("creationTimestamp"))
    skew = timedelta() if isinstance(view.workload, ManagementCluster) else CLOCK_SKEW
    return born is None or asked is None or born + skew < asked


def _addresses(status: object) -> set[str]:
    listed = status.get("addresses") if isinstance(status, dict) else None
    found = (a for a in (listed if isinstance(listed, list) else ()) if isinstance(a, dict))
    return {str(a.get("address")) for a in found if a.get("type") in _ADDRESSES}
