"""Machines may be divided between processes by their labels. A shard reads everything and serves what it selects.

It has to read everything: a Node is left over only if *no* Machine has its UID, whoever serves that Machine. Of objects
that belong to another shard nothing is planned; they are as good as not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from api import names
from api.selectors import Operator, Requirement, Selector
from controllers.kernel.reconciler import Reconciler, ReconcilerWrapper
from controllers.kernel.refs import MACHINE, Key, labels_of
from controllers.kernel.view import HostNeed, HostReads, View

_NO_SHARD = Requirement(names.SHARD_LABEL, Operator.DOES_NOT_EXIST)


def shard(selector: Selector) -> Selector:
    """``selector``, and not what is labelled for a controller that it does not speak of.

    So a Machine that names its controller is served by nobody else, whatever the other processes select.
    """
    if any(requirement.key == names.SHARD_LABEL for requirement in selector.requirements):
        return selector
    return Selector((*selector.requirements, _NO_SHARD), selector.nothing)


def can_be_sharded(reconciler: Reconciler[Any]) -> bool:
    """Reconcilers of other kinds look at all Machines of a set; divided, each of them would be served twice."""
    return reconciler.kind == MACHINE


def sharded(reconcilers: Iterable[Reconciler[Any]], selector: Selector) -> tuple[Reconciler[Any], ...]:
    """The reconcilers, those of Machines narrowed to ``shard(selector)``."""
    narrowed = shard(selector)
    return tuple(
        ShardedReconciler(reconciler, narrowed) if can_be_sharded(reconciler) else reconciler
        for reconciler in reconcilers
    )


@dataclass(frozen=True, slots=True)
class ShardedReconciler(ReconcilerWrapper):
    """A reconciler that serves only the objects whose labels ``selector`` matches; one that is gone has no labels.

    Of selectors that divide all labels between them exactly one matches none, so that what a Machine has left behind
    is cleaned up once.
    """

    selector: Selector

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return self.reconciler.needs(key, view) if self._serves(key, view) else None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Any:
        return self.reconciler.observe(key, view, hosts) if self._serves(key, view) else None

    def _serves(self, key: Key, view: View) -> bool:
        obj = view.get(self.kind, key)
        return self.selector.matches(labels_of(obj) if obj is not None else {})


def within(reconcilers: Iterable[Reconciler[Any]], namespace: str) -> tuple[Reconciler[Any], ...]:
    """The reconcilers, those of our own kinds narrowed to the objects of ``namespace`` ("": all)."""
    return tuple(
        NamespacedReconciler(reconciler, namespace)
        if namespace and reconciler.kind.group == names.GROUP
        else reconciler
        for reconciler in reconcilers
    )


@dataclass(frozen=True, slots=True)
class NamespacedReconciler(ReconcilerWrapper):
    """A reconciler that serves one namespace. Of others it reads nothing, so what it does not see there may well exist:
    a Node whose Machine lies in another namespace is not left over."""

    namespace: str

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return self.reconciler.needs(key, view) if key.namespace == self.namespace else None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Any:
        return self.reconciler.observe(key, view, hosts) if key.namespace == self.namespace else None
