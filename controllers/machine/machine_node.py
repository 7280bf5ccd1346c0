"""The Machine's Node: which it is, which are of former hosts, and what it gets of the Machine.

Which Node is the Machine's? The one that the provider's host of this Machine's UID says is its own.

``spec.providerID`` and ``status.nodeRef`` prove nothing: whoever may edit the Machine writes them. While the provider's
host is not known, or is gone, only the record on the Node counts (``controllers.kernel.node_policy``).
Never by address alone (machine-controller#75, #140: a reused IP claims a dead Machine's Node).

Nodes of the Machine whose hosts are gone or go: those of its present host, and of hosts that it had before.

A host may register its Node so late that the Machine sees it only when the host was replaced already. Such a Node is
known by its own record of the Machine's UID and by the providerID of the replaced host, which stays in the status
until a Node of the next host has joined: it would belong to nobody, and it bears the name under which the next host
registers.

Keep the Node's labels, annotations and taints as the Machine asks, and take back only what the Machine brought.

``status.appliedNodeMetadata`` is the ownership record. It is written before a key is added to the Node and shrinks only
after a key has left it, so that a crash in between can neither orphan a key nor take one of somebody else's.
kubermatic rolls every Node for a label and never removes one (machine-controller#1969).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api import names
from controllers.kernel.actions import Patch
from controllers.kernel.bound_hosts import is_seen
from controllers.kernel.conditions import parse_time
from controllers.kernel.node_policy import claimed_by_another, is_recorded_for, provider_id_of_node
from controllers.kernel.node_policy import provider_id_of_node as node_provider_id
from controllers.kernel.refs import (
    MACHINE,
    NODE,
    Key,
    Obj,
    annotations_of,
    key_of,
    labels_of,
    mapping,
    ref_of,
    resource_version_of,
    spec_of,
    uid_of,
)
from controllers.kernel.view import NODE_OWNER, PROVIDER_ID, HostAbsent, HostPresent, HostRead, ManagementCluster, View
from providers.base.contract import Host, NodeRegistration, Taint

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


def find_node(machine: Obj, read: HostRead, view: View) -> Link:
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


def replaced_host(machine: Obj) -> str:
    """Identity of the host that is being replaced, "" if none is (``status.replacement``)."""
    return str(_replacement(machine).get("providerID") or "")


def earlier_hosts(machine: Obj) -> tuple[str, ...]:
    """Those that were replaced before it, and whose successors never joined; oldest first."""
    found = _replacement(machine).get("earlierProviderIDs")
    return tuple(str(provider_id) for provider_id in found if provider_id) if isinstance(found, list) else ()


def is_of(host: Host, identity: str) -> bool:
    """Whether ``host`` is the one that was recorded as ``identity``."""
    return bool(identity) and identity in {host.provider_id, host.id}


def nodes_of_any_host(machine: Obj, link: Link, view: View) -> tuple[Obj, ...]:
    """Nodes of this Machine's present or earlier hosts, to be deleted when those are gone; never another's.

    None without a proof: a Node is its own by the provider's host, or is recorded for it.
    """
    found = {node["metadata"]["name"]: node for node in [link.node]} if isinstance(link, Linked) else {}
    return tuple((found | {node["metadata"]["name"]: node for node in recorded_for(machine, view)}).values())


def nodes_of_hosts_gone(machine: Obj, read: HostRead, view: View) -> tuple[Obj, ...]:
    """Nodes of this Machine's replaced hosts that are gone for sure; never one whose providerID a Machine has now.

    A Machine of another namespace has it if its host was seen: else whoever writes it there would keep the Node.
    """
    gone = [*earlier_hosts(machine)]
    replaced = replaced_host(machine)
    if replaced and replaced != provider_id_of(machine) and _is_gone(replaced, read):
        gone.append(replaced)
    here = key_of(machine).namespace
    free = {
        provider_id
        for provider_id in gone
        if not any(key_of(o).namespace == here or is_seen(o) for o in view.indexed(MACHINE, PROVIDER_ID, provider_id))
    }
    recorded = recorded_for(machine, view) if free else ()
    return tuple(node for node in recorded if provider_id_of_node(node) in free)


def _is_gone(identity: str, read: HostRead) -> bool:
    match read:
        case HostAbsent():
            return True
        case HostPresent(host):
            return not is_of(host, identity)
        case _:
            return False


def _replacement(machine: Obj) -> Mapping[str, Any]:
    return mapping(mapping(machine.get("status")).get("replacement"))


Record = Mapping[str, Sequence[str]]


def taint_id(taint: Mapping[str, Any]) -> str:
    return f"{taint.get('key', '')}:{taint.get('effect', '')}"


def metadata_record(node: Obj, applied: Any, wanted: NodeRegistration) -> dict[str, list[str]]:
    """What to write down as ours: all that is wanted, and what was ours and still is on the Node."""
    ours = _read(applied)
    on_node = {
        "labels": set(labels_of(node)),
        "annotations": set(annotations_of(node)),
        "taints": {taint_id(taint) for taint in _taints(node)},
    }
    want = {
        "labels": set(wanted.labels),
        "annotations": set(wanted.annotations),
        "taints": {f"{taint.key}:{taint.effect}" for taint in wanted.taints},
    }
    return {name: sorted(want[name] | (set(ours[name]) & on_node[name])) for name in want}


def sync_metadata(node: Obj, applied: Any, wanted: NodeRegistration) -> Patch | None:
    """The one write that brings the Node's metadata in line; None if it is."""
    ours = _read(applied)
    metadata: dict[str, Any] = {}
    labels = _changes(labels_of(node), _own_labels(node, ours["labels"], wanted), wanted.labels)
    annotations = _changes(annotations_of(node), ours["annotations"], wanted.annotations)
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    taints = _merged_taints(_taints(node), ours["taints"], wanted.taints)
    if not metadata and taints is None:
        return None
    patch: dict[str, Any] = {"metadata": metadata} if metadata else {}
    changed = [*labels, *annotations]
    if taints is not None:
        patch["spec"] = {"taints": taints}
        changed.append("taints")
    why = f"Node {node['metadata']['name']} gets its Machine's metadata: {', '.join(changed[:5])}"
    # A list is replaced whole: somebody else's taint that came meanwhile must not get lost.
    guard = resource_version_of(node) if taints is not None else ""
    return Patch(ref_of(NODE, node), patch, why, resource_version=guard)


def _own_labels(node: Obj, ours: Sequence[str], wanted: NodeRegistration) -> Sequence[str]:
    """Labels that may be taken back. The owner's label: if it names this Machine, whoever wrote it, and never else.

    Kubelets register with it, and earlier releases kept it; on a Node that stays it would make no two Nodes alike.
    """
    label, uid = names.NODE_OWNED_BY_LABEL, wanted.annotations.get(names.NODE_MACHINE_UID_ANNOTATION)
    deletion_guards = [key for key in ours if key != label]
    return [*deletion_guards, label] if uid and labels_of(node).get(label) == uid else deletion_guards


def _changes(have: Mapping[str, str], ours: Sequence[str], want: Mapping[str, str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {key: value for key, value in want.items() if have.get(key) != value}
    changes.update({key: None for key in ours if key not in want and key in have})
    return changes


def _merged_taints(
    have: Sequence[Mapping[str, Any]], ours: Sequence[str], want: Sequence[Taint]
) -> list[dict[str, Any]] | None:
    """The whole list to write, others' taints kept in place; None if nothing changes."""
    wanted = {f"{taint.key}:{taint.effect}": taint for taint in want}
    merged: list[dict[str, Any]] = []
    changed = False
    for taint in have:
        name = taint_id(taint)
        mine = wanted.pop(name, None)
        if mine is None and name in ours:
            changed = True
        elif mine is not None and (taint.get("value") or "") != mine.value:
            merged.append(_as_dict(mine))
            changed = True
        else:
            merged.append(dict(taint))
    merged.extend(_as_dict(taint) for taint in wanted.values())
    return merged if changed or wanted else None


def _as_dict(taint: Taint) -> dict[str, Any]:
    return {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}


def _taints(node: Obj) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = spec_of(node).get("taints") or ()
    return found


def _read(applied: Any) -> dict[str, Sequence[str]]:
    known = applied if isinstance(applied, Mapping) else {}
    return {name: known.get(name) or () for name in ("labels", "annotations", "taints")}
