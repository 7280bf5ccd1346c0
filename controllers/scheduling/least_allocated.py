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
        self._offered: list[tuple[int, ...]] = []
        self._largest = [max((each[i] for each in self._rows()), default=0) for i in range(len(_SCORED))]

    def size(self, pod_class: PodClass) -> float:
        """Shares of the largest Node: 4 of 16 cores and 64 of 128 GiB: 0.75."""
        asked = dict(pod_class.requests)
        return sum(asked.get(name, 0) / most for name, most in zip(_SCORED, self._largest, strict=True) if most)

    def best_first(self, pod_class: PodClass) -> Ints:
        """Rows with Nodes, by what would be left with one such pod more."""
        snapshot, asked = self._snapshot, dict(pod_class.requests)
        offered = np.maximum(np.array(self._rows(), np.float64).reshape(-1, len(_SCORED)), 1.0)
        left: npt.NDArray[np.float64] = np.zeros(len(offered))
        for column, name in enumerate(_SCORED):
            left += (snapshot.free(name) - asked.get(name, 0)) / offered[:, column]
        rows = snapshot.rows[snapshot.copies[snapshot.rows] > 0]
        found: Ints = rows[np.argsort(-left[rows], kind="stable")]
        return found

    def _rows(self) -> list[tuple[int, ...]]:
        for node in self._snapshot.nodes[len(self._offered) :]:
            self._offered.append(tuple(node.amount(name) for name in _SCORED))
        return self._offered
