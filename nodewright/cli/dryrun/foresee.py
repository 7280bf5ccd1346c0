"""Run every reconciler in memory again and again, until none would act before something outside happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from api.conditions import MachineCondition, Reason
from controllers.controlplane.course import Course
from controllers.kernel.actions import (
    Action,
    Create,
    CreateFromTemplate,
    CreateHost,
    Delete,
    DeleteHost,
    EnsureBootstrap,
    EnsureEndpoint,
    Event,
    Evict,
    Patch,
    RebootHost,
    RemoveBootstrap,
    RemoveEndpoint,
    RemoveEtcdMember,
    RenewKubeconfig,
    Scale,
    TakeEtcdSnapshot,
    UpdateHost,
)
from controllers.kernel.conditions import find
from controllers.kernel.node_policy import cluster_key_of, recorded_secret
from controllers.kernel.plan import Blocked, Failed, Outcome, Settled, Wait
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import CLUSTER, MACHINE, Key, Kind, Obj
from controllers.kernel.view import HostNeed, HostReads, Unreachable
from nodewright.cli.cluster.snapshot import objects_of
from nodewright.cli.dryrun.assumed_bootstraps import AssumedBootstraps
from nodewright.cli.dryrun.assumed_control_planes import AssumedControlPlanes, assuming
from nodewright.cli.dryrun.assumed_hosts import AssumedHosts
from nodewright.cli.dryrun.in_memory import InMemoryCluster
from nodewright.cli.manifests.positions import write_path
from nodewright.reports.tree.advice import advice_for
from nodewright.runtime.cache.cache import CacheView
from providers.base.registry import Registry

_TELLING = (
    MachineCondition.INFRASTRUCTURE_READY,
    MachineCondition.UP_TO_DATE,
    MachineCondition.DRAINED,
    MachineCondition.READY,
)
MOST_RECONCILES = 50
"""Reconcilers settle within a few; more means that two of them undo each other's work."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that would be done. ``quiet``: status writes and events, which nobody asks for."""

    what: str
    why: str
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an object's own status says is wrong with it, before anything is done on paper."""

    reason: str
    message: str


@dataclass(slots=True)
class Prospect:
    """All that would happen to one object now, and what it would wait for then.

    ``course``: of a ControlPlane, all that follows.
    """

    kind: Kind
    key: Key
    deeds: list[Deed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Settled)
    trouble: Trouble | None = None
    course: Course | None = None

    @property
    def failed(self) -> bool:
        return isinstance(self.outcome, Failed)

    @property
    def waits_for(self) -> str:
        match self.outcome:
            case Wait(why=why) | Blocked(why=why) | Failed(why=why):
                return why
            case _:
                return ""


class DryRun:
    """The future of one cluster on paper."""

    def __init__(
        self, in_memory: InMemoryCluster, reconcilers: Iterable[Reconciler[Any]], registry: Registry | None = None
    ) -> None:
        self.in_memory = in_memory
        self._reconcilers = assuming(reconcilers)
        self._hosts = AssumedHosts(registry or Registry.installed())
        self._bootstraps = AssumedBootstraps(lambda: in_memory.view().now)
        self._prospects: dict[tuple[str, Key], Prospect] = {}
        for reconciler in self._reconcilers:
            if reconciler.kind == MACHINE:
                self._hosts.assume(reconciler, objects_of(in_memory.cache, MACHINE), in_memory.view())

    def foresee(self) -> list[Prospect]:
        """What each object comes to, those first that decide for others. Raises RuntimeError if reconcilers never
        settle.
        """
        for _ in range(MOST_RECONCILES):
            changed = False
            for reconciler in self._reconcilers:
                for key in self.in_memory.keys(reconciler.kind):
                    changed = self._reconcile(reconciler, key) or changed
            if not changed:
                return list(self._prospects.values())
        raise RuntimeError(
            f"the controllers would still be busy after {MOST_RECONCILES} reconciles: two of them disagree"
        )

    def _prospect(self, reconciler: Reconciler[Any], key: Key) -> Prospect:
        """The one that was begun with the first plan of the reconciler for this key."""
        known = self._prospects.get((reconciler.name, key))
        if known is not None:
            return known
        machine = self.in_memory.view().get(reconciler.kind, key) if reconciler.kind == MACHINE else None
        trouble = trouble_of(machine) if reconciler.kind == MACHINE else None
        begun = self._prospects[reconciler.name, key] = Prospect(reconciler.kind, key, trouble=trouble)
        return begun

    def _reconcile(self, reconciler: Reconciler[Any], key: Key) -> bool:
        """One plan, carried out on paper; whether it changed anything."""
        view = self._view(reconciler, key)
        need = reconciler.needs(key, view)
        observed = reconciler.observe(key, view, self._read(need) if need is not None else None)
        if observed is None:
            return False
        plan = reconciler.plan(observed)
        prospect = self._prospect(reconciler, key)
        if isinstance(reconciler, AssumedControlPlanes):
            prospect.course = reconciler.courses.get(key)
        prospect.outcome = plan.outcome
        prospect.notes.extend(note for note in plan.notes if note not in prospect.notes)
        did = False
        for action in plan.actions():
            did = self._perform(action) or did
            deed = Deed(describe(action), action.why, _is_quiet(action))
            if deed not in prospect.deeds:
                prospect.deeds.append(deed)
        return did

    def _read(self, need: HostNeed) -> HostReads:
        reads = self._hosts.read(need)
        return reads if need.bootstrap is None else replace(reads, bootstrap=self._bootstraps.look(need.bootstrap))

    def _view(self, reconciler: Reconciler[Any], key: Key) -> CacheView:
        """Workload clusters are not read here: what lives in them is not known, so nothing is taken away from them."""
        view = self.in_memory.view()
        primary = view.get(reconciler.kind, key)
        cluster = cluster_key_of(reconciler.kind, primary) if primary is not None else None
        secret = recorded_secret(view.get(CLUSTER, cluster)) if cluster is not None else ""
        if not secret:
            return view
        return replace(
            view, workload=Unreachable(secret, str(Reason.UNREACHABLE), "a dry run reads no workload cluster")
        )

    def _perform(self, action: Action) -> bool:
        match action:
            case CreateHost() | UpdateHost() | DeleteHost() | RebootHost():
                self._hosts.perform(action)
                return True
            case EnsureBootstrap() | RemoveBootstrap():
                return self._bootstraps.perform(action)
            case Event() | Evict() | RemoveEtcdMember() | TakeEtcdSnapshot():
                return False
            case RenewKubeconfig() | EnsureEndpoint() | RemoveEndpoint():
                return False
            case _:
                self.in_memory.perform(action)
                return True


def trouble_of(machine: Obj | None) -> Trouble | None:
    """A terminal failure, else the condition that a person or the provider has to do something about."""
    status = (machine or {}).get("status") or {}
    if status.get("failureReason"):
        return Trouble(str(status["failureReason"]), str(status.get("failureMessage") or ""))
    conditions = status.get("conditions")
    found = (find(conditions, str(type_)) or {} for type_ in _TELLING)
    bad = next((c for c in found if c.get("status") == "False" and advice_for(str(c.get("reason")))), None)
    return Trouble(str(bad["reason"]), str(bad.get("message") or "")) if bad else None


_OF_CLUSTERS: Mapping[type[Action], str] = {
    RenewKubeconfig: "renew the kubeconfig",
    EnsureEndpoint: "make the endpoint",
    RemoveEndpoint: "remove the endpoint",
}


def describe(action: Action) -> str:
    """What a person would call it."""
    match action:
        case Create() | CreateFromTemplate():
            return f"create {action.kind} {action.body['metadata']['name']}"
        case Patch(subresource="status"):
            return f"write status of {action.target.kind} {action.target.key.name}"
        case Patch():
            fields = ", ".join(sorted(leaves(action.patch))) or "nothing"
            return f"patch {action.target.kind} {action.target.key.name}: {fields}"
        case Scale():
            return f"scale {action.target.kind} {action.target.key.name} to {action.replicas}"
        case Delete():
            return f"delete {action.target.kind} {action.target.key.name}"
        case Evict():
            return f"evict Pod {action.target.key}"
        case Event():
            return f"event {action.reason} ({action.type})"
        case CreateHost():
            return f"create host for {action.machine.key.name}"
        case UpdateHost() | DeleteHost() | RebootHost():
            return f"{type(action).__name__.removesuffix('Host').lower()} host {action.host.name}"
        case EnsureBootstrap():
            return f"make bootstrap data for {action.order.machine.key.name}"
        case RemoveBootstrap():
            return f"remove bootstrap data of {action.machine.key.name}"
        case RemoveEtcdMember():
            return f"remove etcd member {action.member:x}"
        case TakeEtcdSnapshot():
            return f"take a snapshot of etcd of {action.cluster.name}"
        case RenewKubeconfig() | EnsureEndpoint() | RemoveEndpoint():
            return f"{_OF_CLUSTERS[type(action)]} of {action.cluster.key.name}"


def leaves(patch: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields that a merge patch sets, ``(removed)`` where it removes."""
    for name, value in patch.items():
        path = (*prefix, name)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, path)
        else:
            yield f"{write_path(path)} (removed)" if value is None else write_path(path)


def _is_quiet(action: Action) -> bool:
    return isinstance(action, Event) or (isinstance(action, Patch) and action.subresource == "status")
