"""Where kube-scheduler puts pods as long as nothing else matters: each on the Node of which most is left.

Its plugin NodeResourcesFit scores Nodes by the share of CPU and of memory that they have left with the pod on them
(``scoringStrategy`` LeastAllocated, the default: pkg/scheduler/framework/plugins/noderesources/least_allocated.go).

    empty Nodes of 16 and of 4 cores, a pod of 2: 14/16 of the first are left and 2/4 of the second, so it goes to the
    first; so do the next three, until 8/16 are left
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from controllers.scheduling.classes import Group, PodClass
from controllers.scheduling.columns import Ints
from controllers.scheduling.placement import place, pour
from controllers.scheduling.rules import Evenly, rules_of
from controllers.scheduling.shapes import CPU, MEMORY
from controllers.scheduling.snapshot import Snapshot

_SCORED = (CPU, MEMORY)


def spread_out(snapshot: Snapshot, groups: Iterable[Group]) -> list[Group]:
    """Place the pods so, those of the highest priority first, of these the small ones; returns those that find no room.

    Small ones first since that is what large ones suffer most from, and nobody knows the order. Equal pods go one to
    each Node before the best one is looked for again. Pods with rules for each other go to the best Node first fit.
    """
    shapes = _Shapes(snapshot)
    lost = []
    for group in sorted(groups, key=lambda each: (-each.pods[0].kind.priority, shapes.size(each.pod_class))):
        done = _spread(snapshot, shapes, group)
        if done < len(group):
            lost.append(Group(group.pod_class, group.pods[done:]))
    return lost


def _spread(snapshot: Snapshot, shapes: _Shapes, group: Group) -> int:
    """How many pods found room."""
    pod_class, done = group.pod_class, 0
    if any(not isinstance(rule, Evenly) or not rule.per_node_only for rule in rules_of(snapshot, pod_class)):
        return place(snapshot, pod_class, len(group), shapes.best_first(pod_class)).count
    while done < len(group):
        count = pour(snapshot, pod_class, len(group) - done, shapes.best_first(pod_class), 1).count
        if not count:
            break
        done += count
    return done


class _Shapes:
    """What Nodes offer, per row. Rows that are cut off later are followed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: npt.NDArray[np.float64] = np.zeros((0, len(_SCORED)))
        self._largest: list[float] = self._offered().max(axis=0, initial=1.0).tolist()

    def size(self, pod_class: PodClass) -> float:
        """Shares of the largest Node: 4 of 16 cores and 64 of 128 GiB: 0.75."""
        asked = dict(pod_class.requests)
        return sum(asked.get(name, 0) / most for name, most in zip(_SCORED, self._largest, strict=True))

    def best_first(self, pod_class: PodClass) -> Ints:
        """Rows with Nodes, by what would be left with one such pod more."""
        snapshot, asked, offered = self._snapshot, dict(pod_class.requests), self._offered()
        left: npt.NDArray[np.float64] = np.zeros(len(offered))
        for column, name in enumerate(_SCORED):
            left += (snapshot.free(name) - asked.get(name, 0)) / offered[:, column]
        rows = snapshot.rows[snapshot.copies[snapshot.rows] > 0]
        found: Ints = rows[np.argsort(-left[rows], kind="stable")]
        return found

    def _offered(self) -> npt.NDArray[np.float64]:
        new = self._snapshot.nodes[len(self._known) :]
        if new:
            more = [[max(node.amount(name), 1) for name in _SCORED] for node in new]
            self._known = np.concatenate([self._known, np.array(more, np.float64)])
        return self._known
