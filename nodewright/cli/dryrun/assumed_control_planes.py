"""Control planes as their Machines show them: a dry run reads no etcd, and takes the members of those that joined for
healthy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from controllers.controlplane.course import Course, as_if_working, course_of
from controllers.kernel.reconciler import Reconciler, ReconcilerWrapper
from controllers.kernel.refs import CONTROL_PLANE, Key
from controllers.kernel.view import HostReads, View

ASSUMPTION = "etcd was not read: each Machine that has joined is taken to have a healthy member."


@dataclass(frozen=True, slots=True)
class AssumedControlPlanes(ReconcilerWrapper):
    """Keeps the course of each ControlPlane as it was before anything was done on paper."""

    courses: dict[Key, Course] = field(default_factory=dict)

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Any:
        observed = self.reconciler.observe(key, view, hosts)
        if observed is None:
            return None
        assumed = as_if_working(observed)
        if key not in self.courses:
            self.courses[key] = course_of(assumed, view)
        return assumed


def assuming(reconcilers: Iterable[Reconciler[Any]]) -> tuple[Reconciler[Any], ...]:
    return tuple(AssumedControlPlanes(each) if each.kind == CONTROL_PLANE else each for each in reconcilers)
