"""Nodes and pods reduced to what decides placement, and the terms of their selectors.

Nodes and pods reduced to what decides placement. Frozen; the parts that pods share are interned by ``reading``.

Node selectors as they stand in pods, volumes and storage classes, read into terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from api.selectors import NOTHING, Operator, Requirement, Selector

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
"""Units: thousandths of a core, bytes, bytes, pieces. All other resources are counted in whole units."""
HOSTNAME = "kubernetes.io/hostname"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

ANY_IP = "0.0.0.0"  # noqa: S104 - a pod's request, nothing listens here

Amounts = tuple[tuple[str, int], ...]
"""Resources with amounts above zero, sorted by name."""


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str

    @property
    def keeps_pods_away(self) -> bool:
        return self.effect in ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """An empty effect or key is any; an operator that is not known tolerates nothing."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class HostPort:
    ip: str
    protocol: str
    port: int

    def collides(self, other: HostPort) -> bool:
        same_socket = self.protocol == other.protocol and self.port == other.port
        return same_socket and (self.ip == other.ip or ANY_IP in (self.ip, other.ip))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One of several node selector terms of which any may match; one without requirements matches nothing."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()
    """Requirements on ``metadata.name``."""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self.labels and not self.names:
            return False
        here = {"metadata.name": name}
        return all(r.matches(labels) for r in self.labels) and all(r.matches(here) for r in self.names)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A required pod (anti-)affinity term: which pods it means, and what counts as the same place."""

    selector: Selector
    topology_key: str
    namespaces: frozenset[str] = frozenset()
    namespace_selector: Selector = NOTHING


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint with ``whenUnsatisfiable: DoNotSchedule``."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume as far as it binds its pod to Nodes. ``handle`` is its identity, ``driver`` the CSI driver's name.

    ``terms``: where a bound volume can be used or an unbound one be made (None: everywhere). ``exclusive``: access
    mode ReadWriteOncePod.
    """

    handle: str
    driver: str = ""
    terms: tuple[NodeTerm, ...] | None = None
    zones: tuple[Requirement, ...] = ()
    exclusive: bool = False
    bound: bool = True


@dataclass(frozen=True, slots=True)
class Demand:
    """All that a pod asks of a Node, but for its own labels and namespace."""

    requests: Amounts = ()
    node_selector: tuple[Requirement, ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None
    """None: any Node will do."""
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[HostPort, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    volumes: tuple[Volume, ...] = ()
    blocked: str = ""
    """Why no Node whatever can take it (a scheduling gate, a claim that is missing); "" if that is not so."""

    def selects(self, labels: Mapping[str, str], name: str) -> bool:
        """Node selector and required node affinity."""
        if not all(r.matches(labels) for r in self.node_selector):
            return False
        return self.node_terms is None or any(term.matches(labels, name) for term in self.node_terms)

    def untolerated(self, taints: tuple[Taint, ...]) -> Taint | None:
        """The first taint that keeps the pod away."""
        for taint in taints:
            if taint.keeps_pods_away and not any(t.tolerates(taint) for t in self.tolerations):
                return taint
        return None


@dataclass(frozen=True, slots=True)
class Owner:
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Keeping:
    """What decides whether a pod may be evicted from a Node that goes (``drainability``)."""

    mirror: bool = False
    daemon_set: bool = False
    replicated: bool = True
    """A controller of a kind that makes a new pod for an evicted one."""
    finished: bool = False
    safe_to_evict: str = ""
    local_volumes: tuple[str, ...] = ()
    """Names of volumes that die with the Node and that no annotation gives up."""
    grace: int = 30
    """``terminationGracePeriodSeconds``."""


@dataclass(frozen=True, slots=True, eq=False)
class PodKind:
    """Pods with equal requests and labels. Interned: compared by identity."""

    demand: Demand
    namespace: str
    labels: Mapping[str, str]
    keeping: Keeping = Keeping()
    priority: int = 0
    terminating: bool = False


class PodInfo(NamedTuple):
    """One pod. ``node`` is "" while it is pending; times are as the API writes them, "" if there is none.

    A tuple, because there are as many of them as pods: it is made five times as fast as a frozen dataclass.
    """

    namespace: str
    name: str
    kind: PodKind
    uid: str = ""
    node: str = ""
    owner: Owner | None = None
    created: str = ""
    deleting: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One Node. ``hypothetical``: a Node that does not exist yet; copies of it differ in name and hostname only."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Amounts = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    volume_limits: Amounts = ()
    """CSI driver → volumes it can attach here."""
    hypothetical: bool = False

    def amount(self, resource: str) -> int:
        return dict(self.allocatable).get(resource, 0)


def gpu_of(node: NodeInfo) -> str:
    """The resource by which the Node offers GPUs, like ``nvidia.com/gpu``; "" if it offers none."""
    return next((name for name, amount in node.allocatable if amount and name.endswith("/gpu")), "")


_NO_VALUES = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_ONE_INTEGER = (Operator.GREATER, Operator.LESS)


def node_terms(selector: Mapping[str, Any] | None) -> tuple[NodeTerm, ...] | None:
    """A ``NodeSelector``; None for an absent one. A term that can't be read matches nothing, as in kube-scheduler."""
    if selector is None:
        return None
    return tuple(_term(term) for term in selector.get("nodeSelectorTerms") or ())


def topology_terms(terms: Any) -> tuple[NodeTerm, ...] | None:
    """A storage class' ``allowedTopologies``; None: everywhere."""
    if not terms:
        return None
    return tuple(
        NodeTerm(
            tuple(
                Requirement(str(each.get("key")), Operator.IN, tuple(sorted(map(str, each.get("values") or ()))))
                for each in term.get("matchLabelExpressions") or ()
            )
        )
        for term in terms
    )


def _term(term: Mapping[str, Any]) -> NodeTerm:
    labels = [_label(each) for each in term.get("matchExpressions") or ()]
    names = [_name(each) for each in term.get("matchFields") or ()]
    if None in labels or None in names:
        return NodeTerm()
    return NodeTerm(tuple(r for r in labels if r), tuple(r for r in names if r))


def _label(expression: Mapping[str, Any]) -> Requirement | None:
    try:
        operator = Operator(str(expression.get("operator")))
    except ValueError:
        return None
    values = tuple(sorted({str(value) for value in expression.get("values") or ()}))
    if bool(values) == (operator in _NO_VALUES):
        return None
    if operator in _ONE_INTEGER and (len(values) != 1 or not values[0].lstrip("+-").isdecimal()):
        return None
    return Requirement(str(expression.get("key")), operator, values)


def _name(expression: Mapping[str, Any]) -> Requirement | None:
    """Fields know In and NotIn with exactly one value; the only field is the name, any other is never equal."""
    operator, values = expression.get("operator"), [str(value) for value in expression.get("values") or ()]
    if operator not in (Operator.IN, Operator.NOT_IN) or len(values) != 1:
        return None
    return Requirement(str(expression.get("key")), Operator(operator), tuple(values))
