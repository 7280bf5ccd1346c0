"""May a pod be evicted so that its Node can go? The pod's own facts, the rules, and what is left of budgets.

The rules are the Cluster Autoscaler's, in its order; the first one decides.

What decides whether a pod may be moved: its owner, its data on the Node, its annotations.

PodDisruptionBudgets as one purse for a whole plan: what one Node's pods take is gone for the next Node's.

| rule | then |
|---|---|
| mirror pod | it stays: nothing to do |
| terminating for longer than its grace and half a minute | it stays: nobody waits for it |
| its controller is gone or has fewer replicas than asked for | blocks (only where replicas are known) |
| pod of a DaemonSet | it goes with its Node |
| annotation safe-to-evict: "true" | moves |
| finished | it stays |
| annotation safe-to-evict: "on-completion" | blocks until it is finished |
| nobody makes it anew | blocks |
| in kube-system, no budget, younger than an hour | blocks |
| annotation safe-to-evict: "false" | blocks |
| keeps data on the Node | blocks, unless safe-to-evict-local-volumes names the volume |

Budgets come after these (``PDBBudgets``), and then the search for a place (``removal``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from api.reading import spec_of
from api.selectors import Selector, SelectorError, from_label_selector
from controllers.scheduling.classes import Index, marks_of
from controllers.scheduling.shapes import Keeping, Owner, PodInfo, PodKind

MIRROR = "kubernetes.io/config.mirror"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DAEMON_SET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
KEEPING_ANNOTATIONS = (MIRROR, SAFE_TO_EVICT, SAFE_LOCAL_VOLUMES, DAEMON_SET_POD)

_REPLICATED = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
_DEFAULT_GRACE = 30


def controller_of(meta: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner that is marked as the controller; an absent mark is no mark."""
    owners = meta.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller") is True), None)


def keeping_of(pod: Mapping[str, Any]) -> Keeping:
    meta, spec = pod["metadata"], spec_of(pod)
    annotations = meta.get("annotations") or {}
    owner = controller_of(meta)
    kind = owner.get("kind", "") if owner else ""
    grace = spec.get("terminationGracePeriodSeconds")
    return Keeping(
        mirror=MIRROR in annotations,
        daemon_set=kind == "DaemonSet" or annotations.get(DAEMON_SET_POD) == "true",
        replicated=kind in _REPLICATED,
        finished=(pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
        safe_to_evict=str(annotations.get(SAFE_TO_EVICT, "")),
        local_volumes=_local_volumes(spec, annotations),
        grace=grace if isinstance(grace, int) else _DEFAULT_GRACE,
    )


def _local_volumes(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> tuple[str, ...]:
    given_up = {name.strip() for name in annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")}
    return tuple(
        str(volume.get("name"))
        for volume in spec.get("volumes") or ()
        if volume.get("name") not in given_up and _dies_with_node(volume)
    )


def _dies_with_node(volume: Mapping[str, Any]) -> bool:
    if "hostPath" in volume:
        return volume["hostPath"] is not None
    return "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """``allowed`` disruptions now; ``why`` says more where that is 0 for another reason than use."""

    namespace: str
    name: str
    selector: Selector
    allowed: int
    why: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class OverBudget:
    pod: PodInfo
    why: str


def read_budget(budget: Mapping[str, Any]) -> Budget:
    """A core PodDisruptionBudget. One that nobody has counted yet, or that can't be read, allows nothing."""
    meta, spec, status = budget["metadata"], spec_of(budget), budget.get("status") or {}
    namespace, name = meta.get("namespace", ""), meta["name"]
    try:
        selector = from_label_selector(spec.get("selector"))
    except SelectorError as error:
        return Budget(namespace, name, Selector(), 0, f"its selector can't be read: {error}")
    allowed = status.get("disruptionsAllowed")
    if not isinstance(allowed, int):
        return Budget(namespace, name, selector, 0, "its status is not filled yet")
    return Budget(namespace, name, selector, allowed)


class PDBBudgets:
    """What is left of the budgets."""

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self._by_namespace: dict[str, Index[Budget]] = {}
        self._left = {budget: budget.allowed for budget in budgets}
        for budget in self._left:
            self._by_namespace.setdefault(budget.namespace, Index()).add(budget, marks_of(budget.selector))
        self._covering: dict[PodKind, tuple[Budget, ...]] = {}

    def covering(self, kind: PodKind) -> tuple[Budget, ...]:
        """Budgets that hold such a pod."""
        known = self._covering.get(kind)
        if known is None:
            index = self._by_namespace.get(kind.namespace)
            found = dict.fromkeys(index.concerning(kind.labels.items())) if index is not None else ()
            known = tuple(budget for budget in found if budget.selector.matches(kind.labels))
            self._covering[kind] = known
        return known

    def lacks(self, pods: Iterable[PodInfo]) -> OverBudget | None:
        """The first pod whose eviction the budgets don't allow, if all pods before it are evicted."""
        if not self._left:
            return None
        needed: Counter[Budget] = Counter()
        for pod in pods:
            covering = self.covering(pod.kind)
            if len(covering) > 1:
                names = ", ".join(map(str, covering))
                return OverBudget(pod, f"the API evicts no pod that has several PodDisruptionBudgets ({names})")
            for budget in covering:
                needed[budget] += 1
                if needed[budget] > self._left[budget]:
                    return OverBudget(pod, self._explanation(budget))
        return None

    def take(self, pods: Iterable[PodInfo]) -> None:
        """Spend what the eviction of the pods costs."""
        for pod in pods if self._left else ():
            for budget in self.covering(pod.kind):
                self._left[budget] -= 1

    def _explanation(self, budget: Budget) -> str:
        if budget.why:
            return f"PodDisruptionBudget {budget} allows no disruption: {budget.why}"
        planned = budget.allowed - self._left[budget]
        spent = f", {planned} of them taken by Nodes that go before" if planned else ""
        return f"PodDisruptionBudget {budget} allows {budget.allowed} disruptions{spent}"


SYSTEM_NAMESPACE = "kube-system"
LONG_TERMINATING = timedelta(seconds=30)


class Blocking(StrEnum):
    """Why a pod holds its Node. Named as in the Cluster Autoscaler."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE = "LocalStorageRequested"
    NOT_SAFE = "NotSafeToEvictAnnotation"
    SYSTEM_POD = "UnmovableKubeSystemPod"
    BUDGET = "NotEnoughPdb"
    ON_COMPLETION = "BlockedByOnCompletionPod"


@dataclass(frozen=True, slots=True)
class Stays:
    """Nothing has to be done for this pod; it ends with its Node."""


@dataclass(frozen=True, slots=True)
class Moves:
    """It has to be evicted, and another pod in its place has to find room elsewhere."""


@dataclass(frozen=True, slots=True)
class Blocks:
    reason: Blocking
    why: str


Verdict = Stays | Moves | Blocks


@dataclass(frozen=True, slots=True)
class DrainRules:
    """The defaults are the Cluster Autoscaler's. ``replicas``: what controllers want, where that was read."""

    now: datetime
    system_pods_block: bool = True
    local_storage_blocks: bool = True
    custom_controllers_block: bool = True
    system_pod_age: timedelta = timedelta(hours=1)
    min_replicas: int = 0
    replicas: Mapping[Owner, int] | None = None


class Verdicts:
    """One verdict for all pods that share kind and owner, as long as neither age nor leave-taking decides."""

    def __init__(self, rules: DrainRules, pdb_budgets: PDBBudgets) -> None:
        self._rules = rules
        self._budgets = pdb_budgets
        self._known: dict[PodKind, tuple[Owner | None, Verdict]] = {}
        """A kind has one owner as a rule; of several the last is kept."""

    def of(self, pod: PodInfo) -> Verdict:
        """As ``verdict``."""
        known = self._known.get(pod.kind)
        ageless = not pod.deleting and pod.namespace != SYSTEM_NAMESPACE
        if ageless and known is not None and known[0] is pod.owner:
            return known[1]
        found = verdict(pod, self._rules, self._budgets)
        if ageless:
            self._known[pod.kind] = (pod.owner, found)
        return found


def verdict(pod: PodInfo, rules: DrainRules, pdb_budgets: PDBBudgets) -> Verdict:
    """One pod's. Every reason names what to change."""
    keeping = pod.kind.keeping
    if keeping.mirror or _is_long_terminating(pod, rules.now):
        return Stays()
    controller = _controller(pod, rules)
    if controller:
        return controller
    if keeping.daemon_set:
        return Stays()
    if keeping.safe_to_evict == "true":
        return Moves()
    if keeping.finished:
        return Stays()
    return _held_back(pod, rules, pdb_budgets) or Moves()


def _controller(pod: PodInfo, rules: DrainRules) -> Blocks | None:
    if rules.replicas is None or not pod.kind.keeping.replicated or pod.owner is None:
        return None
    wanted = rules.replicas.get(pod.owner)
    if wanted is None:
        return Blocks(Blocking.CONTROLLER_NOT_FOUND, f"its {pod.owner.kind} {pod.owner.name} is not there")
    if wanted < rules.min_replicas:
        why = f"its {pod.owner.kind} {pod.owner.name} has {wanted} replicas, less than {rules.min_replicas}"
        return Blocks(Blocking.MIN_REPLICAS, why)
    return None


def _held_back(pod: PodInfo, rules: DrainRules, pdb_budgets: PDBBudgets) -> Blocks | None:
    keeping = pod.kind.keeping
    if keeping.safe_to_evict == "on-completion":
        return Blocks(Blocking.ON_COMPLETION, "its annotation safe-to-evict wants to wait until it is finished")
    if not keeping.replicated and (pod.owner is None or rules.custom_controllers_block):
        kind = f"only a {pod.owner.kind}" if pod.owner else "no controller"
        return Blocks(Blocking.NOT_REPLICATED, f"{kind} would make it anew")
    if rules.system_pods_block and _is_young_system_pod(pod, rules) and not pdb_budgets.covering(pod.kind):
        return Blocks(Blocking.SYSTEM_POD, f"it is in {SYSTEM_NAMESPACE}, has no PodDisruptionBudget and is young")
    if keeping.safe_to_evict == "false":
        return Blocks(Blocking.NOT_SAFE, 'its annotation safe-to-evict is "false"')
    if rules.local_storage_blocks and keeping.local_volumes:
        names = ", ".join(keeping.local_volumes)
        return Blocks(Blocking.LOCAL_STORAGE, f"it keeps data on the Node (volumes {names})")
    return None


def _is_young_system_pod(pod: PodInfo, rules: DrainRules) -> bool:
    if pod.namespace != SYSTEM_NAMESPACE:
        return False
    created = _time(pod.created)
    return created is None or rules.now <= created + rules.system_pod_age


def _is_long_terminating(pod: PodInfo, now: datetime) -> bool:
    deleting = _time(pod.deleting)
    if deleting is None:
        return False
    return deleting + timedelta(seconds=pod.kind.keeping.grace) + LONG_TERMINATING < now


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
