"""Nodes until pods find room also where kube-scheduler puts each on the least allocated Node.

New Nodes are chosen so that pods just fit. kube-scheduler does not know that: it likes the Node of which most is left,
so small pods take room on the largest Nodes, and a pod that only such a Node takes has to wait for the next growth, a
boot later. With ``--scheduler-scoring-strategy=LeastAllocated`` this is played before any Node is asked for, and Nodes
are added for the pods that would wait.

    Nodes of 8 cores; a pod of 8 and two of 4 fit on two: 8, 4+4. One small one on each, and the large one fits none:
    a third Node is added. Nodes of 8 cores; a pod of 8 and four of 2 fit on two: 8, 2+2+2+2. With a third Node, and a
    fourth, the small ones take room on each of them: none is added

More Nodes change where the small ones go. So what is added counts only if all pods find room then; else the growth is
what it would be without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from controllers.autoscaler.scale_up import Growth, ScaleUp, node_at
from controllers.autoscaler.scale_up_result import Ample
from controllers.scheduling.binpacking import Estimate, Filled, commit
from controllers.scheduling.classes import Group
from controllers.scheduling.least_allocated import spread_out

_MOST_PLAYED = 3
"""So often it is played. Where small pods go on spreading over what was added, more help nobody."""


class AmpleGrowth(Growth):
    """A ``Growth`` whose ``run`` adds those Nodes, too. Afterwards the picture has the pods where kube-scheduler is
    expected to put them.
    """

    _ample = Ample()

    def run(self, groups: Iterable[Group]) -> None:
        pods, snapshot, before = list(groups), self._projected.snapshot, self.mark()
        over, ample = {pod_class: list(left) for pod_class, left in self._over.items()}, self._ample
        snapshot.fork()
        super().run(pods)
        snapshot.revert()
        if self._suffices(pods, before):
            snapshot.commit()
            return
        self.back(before)
        self._over, self._ample = over, ample
        super().run(pods)

    def result(self, explained: int) -> ScaleUp:
        return replace(super().result(explained), ample=self._ample)

    def _suffices(self, groups: Sequence[Group], before: tuple[Any, ...]) -> bool:
        """Whether all pods that got room have it once more; the picture is a fork with them then, else as before."""
        snapshot = self._projected.snapshot
        for _ in range(_MOST_PLAYED):
            snapshot.fork()
            dealt = self._dealt(self._fitting(groups))
            self._add_empty_nodes(before)
            lost = spread_out(snapshot, [*dealt.groups, *dealt.rest])
            if not lost:
                return True
            self._dealt_pods = dealt.as_they_are
            enough = self._run_again(lost)
            self._dealt_pods = {}
            snapshot.revert()
            if not enough:
                break
        return False

    def _fitting(self, groups: Iterable[Group]) -> list[Group]:
        over = {(pod.namespace, pod.name) for pods in self._over.values() for pod in pods}
        given = (pod for group in groups for pod in group.pods if (pod.namespace, pod.name) not in over)
        return self._projected.snapshot.classes.group(given)

    def _run_again(self, groups: Iterable[Group]) -> bool:
        """More Nodes for pods that are helped already; False if some of them get none."""
        mark, helped = self.mark(), len(self._helped)
        self._grow(groups)
        planned = (nodes for each in self._helped[helped:] for nodes in each.planned)
        self._ample = self._ample.and_also(self.added_since(mark), planned)
        del self._helped[helped:]
        enough, self.left = not self.left, {}
        return enough

    def _add_empty_nodes(self, before: tuple[Any, ...]) -> None:
        """All that were added since then, to the picture."""
        for name, count in self.added_since(before).items():
            state, made = self._states[name], before[1][name]
            assert state.template is not None
            zone_order = state.zone_order
            domains = zone_order.after(state.unmade + made, count) if zone_order else [""] * count
            for domain, copies in Counter(domains).items():
                node = node_at(state, state.template, domain)
                empty = Estimate(copies, {}, {}, (Filled(copies, {}),))
                commit(self._projected.snapshot, node, empty, self._estimates.daemons_on(node))
