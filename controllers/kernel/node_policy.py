"""A Node and its Machine: of which Cluster the Node is, whose it is, and which labels and taints may reach it.

Whose Nodes are they? Each object belongs to one Cluster at most, and so to that Cluster's own API, if it has one.

Whose Node is it, by the record that the Node itself carries?

The Machine controller writes the record (the annotations ``cluster.k8s.io/machine`` and ``cluster.k8s.io/machine-uid``)
to a Node that the provider's host of that Machine has proven to be its own. Users of a namespace can't write Nodes, and
a kubelet writes only its own (NodeRestriction), so the record outlives the host as a proof. ``spec.providerID`` and
``status`` of a Machine are no proof: a person writes them.

A kubelet can register labels but no annotations, and kubermatic's machine-controller writes a label: the label
``machine-controller/owned-by`` is read as well. It does not stay on the Node (``sync_metadata``), because a label that
differs on each Node makes no two node groups similar to an autoscaler.

Which labels and taints of a Machine may reach its Node? Users with the right to write Machines choose them.

A label may grant rights: Secrets and workloads are bound to ``node-restriction.kubernetes.io/*``, and others take a
Node's role from ``node-role.kubernetes.io/*``. So of the domains ``kubernetes.io`` and ``k8s.io`` only those labels
pass that a kubelet may set on its own Node anyway (the list of NodeRestriction), but for the host name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from api import names
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import CLUSTER, Key, Kind, Obj, annotations_of, key_of, labels_of, mapping, spec_of, uid_of
from providers.base.contract import NodeRegistration, Taint


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


def owner_uid(node: Obj) -> str:
    """UID of the Machine that the Node is recorded for; "" if it is recorded for none."""
    recorded = annotations_of(node).get(names.NODE_MACHINE_UID_ANNOTATION)
    return str(recorded or labels_of(node).get(names.NODE_OWNED_BY_LABEL) or "")


def owner_title(node: Obj) -> str:
    """``namespace/name`` of that Machine; "" if the Node names none."""
    return str(annotations_of(node).get(names.NODE_MACHINE_ANNOTATION) or "")


def provider_id_of_node(obj: Obj) -> str:
    """``spec.providerID`` of a Node or Machine; "" while it has none, or one of a wrong type."""
    found = spec_of(obj).get("providerID")
    return found if isinstance(found, str) else ""


def claimed_by_another(node: Obj, machine: Obj) -> str:
    """Which other Machine the Node is recorded for; "" if it is for none or for ``machine``.

    An annotation and a label that contradict each other leave the Node to neither Machine.
    """
    title = owner_title(node)
    if title and title != str(key_of(machine)):
        return f"Machine {title}"
    label = str(labels_of(node).get(names.NODE_OWNED_BY_LABEL) or "")
    other = next((uid for uid in (owner_uid(node), label) if uid and uid != uid_of(machine)), "")
    return f"the Machine with uid {other}" if other else ""


def is_recorded_for(node: Obj, machine: Obj) -> bool:
    """Whether the Node is recorded for ``machine`` and for no other."""
    return owner_uid(node) == uid_of(machine) and not claimed_by_another(node, machine)


_DOMAINS = ("kubernetes.io", "k8s.io")
_KUBELETS = frozenset(
    {
        "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    }
)  # fmt: skip
_KUBELETS_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_ROLES = "node-role.kubernetes.io"
_REPELS = frozenset({"NoSchedule", "PreferNoSchedule"})


@dataclass(frozen=True, slots=True)
class Rule:
    """``pattern``: a key in which ``*`` stands for any characters; of a taint ``KEY`` or ``KEY:EFFECT``.

    ``namespace``: that of the Machines; "" for all.
    """

    pattern: str
    namespace: str = ""

    def covers(self, namespace: str, *keys: str) -> bool:
        return self.namespace in {"", namespace} and any(fnmatchcase(key, self.pattern) for key in keys)


def read_rule(text: str) -> Rule:
    """``[NAMESPACE=]PATTERN``. Raises ValueError."""
    namespace, given, pattern = text.strip().rpartition("=")
    if not pattern or (given and not namespace) or any(c.isspace() or c == "," for c in pattern):
        raise ValueError(f"{text!r} is not [NAMESPACE=]PATTERN")
    return Rule(pattern, namespace)


@dataclass(frozen=True, slots=True)
class NodePolicy:
    """What the administrator allows beyond, and protects beyond, what is built in. An allowance wins."""

    allowed_labels: tuple[Rule, ...] = ()
    protected_labels: tuple[Rule, ...] = ()
    allowed_taints: tuple[Rule, ...] = ()
    protected_taints: tuple[Rule, ...] = ()

    def allows_label(self, namespace: str, key: str) -> bool:
        if key == names.NODE_OWNED_BY_LABEL or any(rule.covers(namespace, key) for rule in self.allowed_labels):
            return True
        return not _is_reserved_label(key) and not any(rule.covers(namespace, key) for rule in self.protected_labels)

    def allows_taint(self, namespace: str, key: str, effect: str) -> bool:
        both = (key, f"{key}:{effect}")
        if any(rule.covers(namespace, *both) for rule in self.allowed_taints):
            return True
        return not _is_reserved_taint(key, effect) and not any(
            rule.covers(namespace, *both) for rule in self.protected_taints
        )


ALLOWED_AT_FIRST = (Rule(f"{_ROLES}/worker"),)
"""No part of Kubernetes gives a worker more than any other Node."""
DEFAULT = NodePolicy(ALLOWED_AT_FIRST)


def filtered(policy: NodePolicy, namespace: str, wanted: NodeRegistration) -> tuple[NodeRegistration, tuple[str, ...]]:
    """What of ``wanted`` may reach the Node, and the titles of what may not, sorted."""
    labels = [key for key in wanted.labels if not policy.allows_label(namespace, key)]
    taints = [taint for taint in wanted.taints if not policy.allows_taint(namespace, taint.key, taint.effect)]
    if not labels and not taints:
        return wanted, ()
    kept = replace(
        wanted,
        labels={key: value for key, value in wanted.labels.items() if key not in labels},
        taints=tuple(taint for taint in wanted.taints if taint not in taints),
    )
    return kept, (*(f"label {key}" for key in sorted(labels)), *(f"taint {_title(taint)}" for taint in _sorted(taints)))


def only_allowed(policy: NodePolicy, namespace: str, applied: Any) -> dict[str, Any]:
    """``status.appliedNodeMetadata`` without what the Machine could not have brought: that is not taken back either."""
    known = applied if isinstance(applied, Mapping) else {}
    found = {part: _texts(known.get(part)) for part in ("labels", "annotations", "taints")}
    found["labels"] = [key for key in found["labels"] if policy.allows_label(namespace, key)]
    pairs = [(text, *text.rpartition(":")[::2]) for text in found["taints"]]
    found["taints"] = [text for text, key, effect in pairs if policy.allows_taint(namespace, key, effect)]
    return dict(found)


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []


def _is_reserved_label(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    if not slash or not _is_below(domain, _DOMAINS):
        return False
    return key not in _KUBELETS and not _is_below(domain, _KUBELETS_DOMAINS)


def _is_reserved_taint(key: str, effect: str) -> bool:
    """Those of a Node's role only repel pods; the others are the control plane's own words, and some of them evict."""
    domain, slash, _ = key.rpartition("/")
    return bool(slash) and _is_below(domain, _DOMAINS) and not (domain == _ROLES and effect in _REPELS)


def _is_below(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == known or domain.endswith(f".{known}") for known in domains)


def _title(taint: Taint) -> str:
    return f"{taint.key}:{taint.effect}"


def _sorted(taints: Iterable[Taint]) -> list[Taint]:
    return sorted(taints, key=_title)
