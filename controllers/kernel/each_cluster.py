"""One reconciler for each Cluster with an API of its own, in one process: made when its Cluster is first looked at.

What is decided for one Cluster is decided by a reconciler that has never seen another: it gets a view in which there
are no Machines and no sets of others, whatever those are called and whatever their labels say (autoscaler#5510).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from api.conditions import Reason
from controllers.kernel.actions import Action, Delete, Event
from controllers.kernel.node_policy import cluster_key_of, endpoint_of, recorded_secret
from controllers.kernel.plan import Plan, Wait, steps
from controllers.kernel.reconciler import ReadsPartly, Reconciler, Wake
from controllers.kernel.refs import (
    CLUSTER,
    CONFIG_MAP,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    WORKLOAD_KINDS,
    Key,
    Kind,
    Obj,
    Ref,
    generation_of,
    is_deleting,
    key_of,
    labels_of,
    ref_of,
)
from controllers.kernel.view import (
    CLUSTER_NAME,
    HostNeed,
    HostReads,
    ManagementCluster,
    Reached,
    ShapeRead,
    Unreachable,
    View,
    Workload,
)

_CLAIM_AGAIN = 1.0
"""Seconds after which it is looked again whether a Cluster that is being claimed is ours."""
_HELD_AGAIN = 10.0
"""The same while another process serves it."""
_OF_ONE_CLUSTER = frozenset({MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT})


@dataclass(frozen=True, slots=True)
class Refused:
    """A Cluster is not ours to act on. ``by_another``: another process serves it; else it is being found out."""

    why: str
    by_another: bool = False


class ClaimsView(Protocol):
    """Which Clusters this process may act on, for which controller: two processes never have the same."""

    def ask(self, controller: str, cluster: Key) -> Refused | None:
        """None: it is ours, until ``release``. Who asks has it claimed."""

    def release(self, controller: str, cluster: Key) -> None:
        """After the last action on it: others may have it."""


class AllOurs:
    """``ClaimsView`` of a process that is alone."""

    def ask(self, controller: str, cluster: Key) -> Refused | None:
        return None

    def release(self, controller: str, cluster: Key) -> None:
        """Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class ViewOfCluster:
    """``view`` without Machines and sets of other Clusters than ``mine``. What a view of it shows of WORKLOAD_KINDS is
    that Cluster's already; while some of them can't be read it counts as unreachable.
    """

    view: View
    mine: Key

    @property
    def now(self) -> datetime:
        return self.view.now

    @property
    def workload(self) -> Workload:
        found = self.view.workload
        if isinstance(found, Reached) and found.lacking:
            return Unreachable(found.secret, str(Reason.UNREACHABLE), found.lacking)
        return found

    @property
    def cluster(self) -> Key | None:
        return self.view.cluster

    def of_cluster(self, cluster: Key | None) -> View:
        return self if cluster == self.mine else self.view.of_cluster(cluster)

    def complete(self, kind: Kind) -> bool:
        return self.view.complete(kind)

    def current_since(self, kind: Kind) -> datetime | None:
        return self.view.current_since(kind)

    def get(self, kind: Kind, key: Key) -> Obj | None:
        return self._own(kind, self.view.get(kind, key))

    def by_uid(self, kind: Kind, uid: str) -> Obj | None:
        return self._own(kind, self.view.by_uid(kind, uid))

    def indexed(self, kind: Kind, index: str, value: str) -> Sequence[Obj]:
        return [obj for obj in self.view.indexed(kind, index, value) if self._own(kind, obj) is not None]

    def all(self, kind: Kind) -> Sequence[Obj]:
        """Of Machines and sets those of the Cluster, by an index: a look costs what one Cluster has."""
        if kind in _OF_ONE_CLUSTER:
            return self.indexed(kind, CLUSTER_NAME, str(self.mine))
        return self.view.all(kind)

    def shape(self, config: Mapping[str, Any], namespace: str) -> ShapeRead:
        return self.view.shape(config, namespace)

    def _own(self, kind: Kind, obj: Obj | None) -> Obj | None:
        if obj is None or kind not in _OF_ONE_CLUSTER or cluster_key_of(kind, obj) == self.mine:
            return obj
        return None


@dataclass(frozen=True, slots=True)
class _Held:
    """Nothing is decided: the Cluster is not ours now."""

    cluster: Ref
    refused: Refused


@dataclass(frozen=True, slots=True)
class _Left:
    """ConfigMaps of a Cluster that is gone."""

    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the Cluster's own reconciler has observed. ``missing``: kinds that are not served there."""

    cluster: Ref
    reconciler: Reconciler[Any]
    observed: Any
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which are served, by their labels, and what is kept of each.

    ``kept``: its ConfigMaps, which go with it; ``kept_of``: whose a ConfigMap is, None if nobody's.
    """

    serves: Callable[[Obj], bool]
    kept: Callable[[Key], tuple[Key, ...]] = lambda _cluster: ()
    kept_of: Callable[[Key], Key | None] = lambda _config_map: None


class EachCluster:
    """Reconciler over ``make(cluster)`` for each Cluster that ``clusters.serves``. ``like``: one of them, for what they
    have in common: its name, what it reads and what wakes it. ``parts``: of which kinds only some objects are read.

    ``claims`` says whether a Cluster is ours; until it is, nothing is decided for it.
    """

    kind: Kind = CLUSTER
    reports_unreachable = True

    def __init__(
        self,
        make: Callable[[Key], Reconciler[Any]],
        like: Reconciler[Any],
        clusters: Clusters,
        *,
        parts: Mapping[Kind, tuple[Key, ...]] | None = None,
        claims: ClaimsView | None = None,
    ) -> None:
        self.name = like.name
        self.reads: tuple[Kind, ...] = tuple(dict.fromkeys((CLUSTER, *like.reads)))
        own = like.parts if isinstance(like, ReadsPartly) else {}
        self.parts: Mapping[Kind, tuple[Key, ...]] = {**own, **(parts or {})}
        self.served_clusters: Callable[[Obj], bool] | None = clusters.serves
        self.wakes: tuple[Wake, ...] = (
            Wake(CLUSTER, lambda cluster, _view: (key_of(cluster),), _means_the_same),
            Wake(CONFIG_MAP, self._of_config_map, lambda _old, _new: True),
            *(self._wake(wake) for wake in like.wakes if wake.kind != CLUSTER),
        )
        self._make = make
        self._like = like
        self._clusters = clusters
        self._parts = parts
        self._claims = claims or AllOurs()
        self._made: dict[Key, Reconciler[Any]] = {}

    def with_claims(self, claims: ClaimsView) -> EachCluster:
        """The same, in a process that has to share."""
        return EachCluster(self._make, self._like, self._clusters, parts=self._parts, claims=claims)

    @property
    def made(self) -> frozenset[Key]:
        """Clusters of which something is remembered here."""
        return frozenset(self._made)

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> _Held | _Left | _Seen | None:
        cluster = view.get(CLUSTER, key)
        elsewhere = view.cluster == key and not isinstance(view.workload, ManagementCluster)
        if cluster is None or not self._clusters.serves(cluster) or not elsewhere:
            return self._end(key, view, gone=cluster is None)
        refused = self._claims.ask(self.name, key)
        if refused is not None:
            self._made.pop(key, None)
            return _Held(ref_of(CLUSTER, cluster), refused)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(key)
        workload = view.workload
        missing = workload.missing if isinstance(workload, Reached) else frozenset()
        return _Seen(
            ref_of(CLUSTER, cluster),
            made,
            made.observe(_own_key(made), ViewOfCluster(view, key), hosts),
            tuple(sorted(f"{kind.plural}.{kind.group}" for kind in self.reads if kind.plural in missing)),
        )

    def plan(self, observed: _Held | _Left | _Seen) -> Plan:
        match observed:
            case _Held(cluster, refused):
                event = Event(cluster, "Warning", "AnotherAutoscaler", refused.why)
                pause = _HELD_AGAIN if refused.by_another else _CLAIM_AGAIN
                return Plan(steps([event] if refused.by_another else []), Wait(pause, refused.why), (refused.why,))
            case _Left(refs):
                gone: list[Action] = [Delete(ref, "its Cluster is gone") for ref in refs]
                return Plan(steps(gone), Wait(_CLAIM_AGAIN, "whether all of it is gone"))
            case _Seen(cluster, reconciler, found, missing):
                plan = reconciler.plan(found)
                if not missing:
                    return plan
                why = f"Cluster {cluster.key} does not serve {', '.join(missing)}, so it has none; {_INSTALL}"
                event = Event(cluster, "Warning", "CustomResourceDefinitionMissing", why)
                return replace(plan, steps=(*plan.steps, *steps([event])), notes=(*plan.notes, why))

    def _end(self, key: Key, view: View, *, gone: bool) -> _Held | _Left | None:
        """Nothing is remembered of it. What a Cluster that is gone has left at home is removed by who may."""
        self._made.pop(key, None)
        found = [view.get(CONFIG_MAP, each) for each in self._clusters.kept(key)] if gone else []
        left = tuple(ref_of(CONFIG_MAP, each) for each in found if each is not None)
        if left:
            refused = self._claims.ask(self.name, key)
            return _Left(left) if refused is None else _Held(Ref(CLUSTER, key), refused)
        self._claims.release(self.name, key)
        return None

    def _wake(self, wake: Wake) -> Wake:
        return Wake(wake.kind, partial(self._whose, wake), wake.ignores, wake.gathers)

    def _whose(self, wake: Wake, obj: Obj, view: View) -> Iterable[Key]:
        cluster = view.cluster if wake.kind in WORKLOAD_KINDS else cluster_key_of(wake.kind, obj)
        return (cluster,) if cluster is not None and any(True for _ in wake.keys(obj, view)) else ()

    def _of_config_map(self, obj: Obj, view: View) -> Iterable[Key]:
        """Of a Cluster that is gone: it went while nobody looked."""
        cluster = self._clusters.kept_of(key_of(obj))
        return (cluster,) if cluster is not None and view.get(CLUSTER, cluster) is None else ()


_INSTALL = "`nodewright install` with its kubeconfig makes the CustomResourceDefinitions"


def _own_key(reconciler: Any) -> Key:
    """The one key of a reconciler that looks at a cluster as a whole."""
    found = reconciler.key
    assert isinstance(found, Key)
    return found


def _means_the_same(old: Obj, new: Obj) -> bool:
    return _meaning(old) == _meaning(new)


def _meaning(cluster: Obj) -> tuple[Any, ...]:
    return (
        labels_of(cluster),
        generation_of(cluster),
        is_deleting(cluster),
        recorded_secret(cluster),
        endpoint_of(cluster),
    )
