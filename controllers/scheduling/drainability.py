"""May this pod be evicted so that its Node can go? The Cluster Autoscaler's rules in its order; the first one decides.

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

Budgets come after these (``disruption``), and then the search for a place (``removal``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from controllers.scheduling.disruption import PDBBudgets
from controllers.scheduling.shapes import Owner, PodInfo, PodKind

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
