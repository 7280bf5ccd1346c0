"""Which Node is the Machine's? By providerID; never by address (machine-controller#75, #140: a reused IP claims a dead
Machine's Node), and by name only under conditions that rule a namesake out.
"""

from __future__ import annotations

from dataclasses import dataclass

from controllers.kernel.conditions import parse_time
from controllers.kernel.node_owner import claimed_by_another
from controllers.kernel.refs import NODE, Key, Obj
from controllers.kernel.view import PROVIDER_ID, View
from providers.base.contract import Host


@dataclass(frozen=True, slots=True)
class Linked:
    node: Obj


@dataclass(frozen=True, slots=True)
class Unlinked:
    """No Node yet; ``why`` if there is more to say than that."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A Node is there, but it can't be told to be ours; a person has to look."""

    why: str


Link = Linked | Unlinked | Conflict


def find(machine: Obj, host: Host | None, view: View) -> Link:
    """The Node of ``machine``, whose host is ``host`` (None: not known now)."""
    provider_id = provider_id_of(machine) or (host.provider_id if host else "")
    if provider_id:
        nodes = view.indexed(NODE, PROVIDER_ID, provider_id)
        if len(nodes) > 1:
            title = ", ".join(sorted(node["metadata"]["name"] for node in nodes))
            return Conflict(f"Nodes {title} all carry the providerID {provider_id}; delete those that are not its Node")
        if nodes:
            return _unless_claimed(nodes[0], machine)
    return _by_name(machine, host, view) if host else Unlinked()


def provider_id_of(machine: Obj) -> str:
    spec = machine.get("spec")
    found = spec.get("providerID") if isinstance(spec, dict) else None
    return found if isinstance(found, str) else ""


def _unless_claimed(node: Obj, machine: Obj) -> Link:
    other = claimed_by_another(node, machine)
    if other:
        return Conflict(f"Node {node['metadata']['name']} has its providerID but says that it belongs to {other}")
    return Linked(node)


def _by_name(machine: Obj, host: Host, view: View) -> Link:
    """A kubelet without a cloud provider registers without providerID: then the host's own name counts.

    The Node has to be younger than the Machine, else it is what an earlier host of that name left behind.
    """
    node = view.get(NODE, Key("", host.name)) if host.name else None
    if node is None:
        return Unlinked()
    if (node.get("spec") or {}).get("providerID"):
        return Unlinked(f"Node {host.name} belongs to another host: its providerID differs")
    born = parse_time(node["metadata"].get("creationTimestamp"))
    wished = parse_time(machine["metadata"].get("creationTimestamp"))
    if born is None or wished is None or born < wished:
        return Unlinked(f"Node {host.name} is older than the Machine: it is what another host left behind")
    return _unless_claimed(node, machine)
