"""What is worked out once for a snapshot and asked often: kinds of Nodes, pods by Node, counts by class.

The different Nodes of a snapshot, and what selectors and tolerations say to each of them: asked once, remembered.

Pods by Node, and how much of each Node they ask for: worked out once for all who want to know.

Which classes of pods are on which rows of a snapshot, and how many of each.

Where pods were when the snapshot was made is kept as numbers, sorted by row and by class: of 150,000 pods few are ever
asked for one by one. What has moved since is kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Bools, Column, Ints
from controllers.scheduling.predicates import taint_refusal
from controllers.scheduling.shapes import CPU, MEMORY, Demand, NodeInfo, NodeTerm, PodInfo, PodKind, Taint


class Catalogue:
    """Shapes of Nodes by number. Answers are arrays along the numbers."""

    def __init__(self) -> None:
        self._shapes: list[NodeInfo] = []
        self._numbers: dict[int, int] = {}
        self._columns: dict[str, Column] = {}
        self._answers: dict[object, Bools] = {}

    def number(self, node: NodeInfo) -> int:
        """The same for every copy of a template."""
        number = self._numbers.get(id(node))
        if number is None:
            number = self._numbers[id(node)] = len(self._shapes)
            self._shapes.append(node)
        return number

    def label(self, key: str) -> Column:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column(key, self._shapes)
        elif len(column.codes) != len(self._shapes):
            column.extend(self._shapes)
        return column

    def selected(self, demand: Demand) -> Bools:
        """By node selector and node affinity."""
        return self._remembered(("selects", demand.node_selector, demand.node_terms), self._select, demand)

    def tolerated(self, demand: Demand) -> Bools:
        """In spite of cordon and taints."""
        return self._remembered(("tolerates", demand.tolerations), self._tolerate, demand)

    def untainted(self, demand: Demand) -> Bools:
        """In spite of taints; whether it is cordoned does not matter."""
        return self._remembered(("untainted", demand.tolerations), self._untaint, demand)

    def _remembered(self, key: object, ask: Callable[[Demand], Bools], demand: Demand) -> Bools:
        answers = self._answers.get(key)
        if answers is None or len(answers) != len(self._shapes):
            answers = self._answers[key] = ask(demand)
        return answers

    def _tolerate(self, demand: Demand) -> Bools:
        """Most Nodes have neither taint nor cordon."""
        verdicts: dict[tuple[tuple[Taint, ...], bool], bool] = {((), False): True}
        answers = np.ones(len(self._shapes), np.bool_)
        for number, node in enumerate(self._shapes):
            asked = (node.taints, node.unschedulable)
            if asked not in verdicts:
                verdicts[asked] = taint_refusal(demand, node) is None
            answers[number] = verdicts[asked]
        return answers

    def _untaint(self, demand: Demand) -> Bools:
        return np.fromiter((demand.untolerated(node.taints) is None for node in self._shapes), np.bool_)

    def _select(self, demand: Demand) -> Bools:
        mask = np.ones(len(self._shapes), np.bool_)
        for requirement in demand.node_selector:
            mask &= self.label(requirement.key).matching(requirement)
        if demand.node_terms is not None:
            any_term = np.zeros(len(self._shapes), np.bool_)
            for term in demand.node_terms:
                any_term |= self._term(term)
            mask &= any_term
        return mask

    def _term(self, term: NodeTerm) -> Bools:
        if term.names or not term.labels:
            return np.fromiter((term.matches(node.labels, node.name) for node in self._shapes), np.bool_)
        mask = np.ones(len(self._shapes), np.bool_)
        for requirement in term.labels:
            mask &= self.label(requirement.key).matching(requirement)
        return mask


class PodsByNode:
    """Index of all Nodes. ``pods`` without a Node are left out."""

    def __init__(self, pods: Iterable[PodInfo]) -> None:
        self._on: dict[str, list[PodInfo]] = {}
        on = self._on
        for pod in pods:
            mine = on.get(pod.node)
            if mine is None:
                on[pod.node] = [pod]
            else:
                mine.append(pod)
        on.pop("", None)
        self._asks: dict[PodKind, tuple[int, int]] = {}
        self._loads: dict[str, float] = {}

    def on(self, node: str) -> Sequence[PodInfo]:
        return self._on.get(node, ())

    def load(self, node: NodeInfo) -> float:
        """The larger of the shares of cpu and memory that are asked for; a Node that offers none is full."""
        load = self._loads.get(node.name)
        if load is None:
            load = self._loads[node.name] = self._load(node)
        return load

    def share(self, node: NodeInfo, resources: Iterable[str], without_daemons: bool = False) -> float:
        """The largest of the shares of ``resources`` that are asked for. ``without_daemons``: pods of DaemonSets use
        nothing, and what they ask for is not there for others.
        """
        shares = []
        for name in resources:
            asked, daemons = (sum(self._amounts(node, name, daemons=which)) for which in (False, True))
            there = node.amount(name) - (daemons if without_daemons else 0)
            if there > 0:
                shares.append((asked if without_daemons else asked + daemons) / there)
        return max(shares, default=1.0)

    def _amounts(self, node: NodeInfo, resource: str, *, daemons: bool) -> Iterable[int]:
        for pod in self.on(node.name):
            keeping = pod.kind.keeping
            if keeping.daemon_set is daemons and not keeping.finished:
                yield dict(pod.kind.demand.requests).get(resource, 0)

    def _load(self, node: NodeInfo) -> float:
        cpu = memory = 0
        for pod in self.on(node.name):
            asked = self._asks.get(pod.kind)
            if asked is None:
                asked = self._asks[pod.kind] = _asked(pod.kind)
            cpu += asked[0]
            memory += asked[1]
        there = dict(node.allocatable)
        shares = [used / there[name] for name, used in ((CPU, cpu), (MEMORY, memory)) if there.get(name)]
        return max(shares, default=1.0)


def _asked(kind: PodKind) -> tuple[int, int]:
    if kind.keeping.finished:
        return 0, 0
    asked = dict(kind.demand.requests)
    return asked.get(CPU, 0), asked.get(MEMORY, 0)


class PodCounts:
    """By row: class → pods on one Node of the row, never 0. What is handed out must not be changed."""

    def __init__(self) -> None:
        self._on: list[dict[PodClass, int] | None] = []
        """None: as it was when the pods were seated."""
        self._asked: set[int] = set()
        """Rows that are spelled out."""
        self._met: dict[PodClass, set[int]] = {}
        """All classes that were ever here, with the rows to which they came later."""
        self._numbers: dict[PodClass, int] = {}
        self._classes: list[PodClass] = []
        self._by_row = _Sorted(*([np.zeros(0, np.int64)] * 3))
        self._by_class = self._by_row

    def __len__(self) -> int:
        return len(self._on)

    def __iter__(self) -> Iterator[dict[PodClass, int]]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> dict[PodClass, int]:
        found = self._on[row]
        if found is None:
            codes, counts = self._by_row.of(row)
            pods = zip(map(self._classes.__getitem__, codes.tolist()), counts.tolist(), strict=True)
            found = self._on[row] = dict(pods)
            self._asked.add(row)
        return found

    def knows(self, pod_class: PodClass) -> bool:
        """Whether such pods are or were here."""
        return pod_class in self._met

    @property
    def classes(self) -> Iterator[PodClass]:
        """All that are or were here."""
        return iter(self._met)

    def assign(self, classes: Sequence[PodClass], codes: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Pod by pod its class, by its number in ``classes``, and its row; once, and before anything moves.

        Returns them with how many there are of each, equal ones taken together.
        """
        self._classes = list(classes)
        self._numbers = {pod_class: code for code, pod_class in enumerate(classes)}
        self._met.update((pod_class, set()) for pod_class in classes)
        width = max(1, len(classes))
        places, counts = np.unique(rows * width + codes, return_counts=True)
        rows, codes = np.divmod(places, width)
        order = np.argsort(codes, kind="stable")
        self._by_row = _Sorted(rows, codes, counts)
        self._by_class = _Sorted(codes[order], rows[order], counts[order])
        self._on = [None] * len(self._on)
        self._asked.clear()
        return codes, rows, counts

    def meet(self, pod_class: PodClass) -> None:
        self._met[pod_class] = set()

    def add(self, row: int, pod_class: PodClass, count: int) -> None:
        """``count`` more pods on each Node of the row, or fewer."""
        pods = self[row]
        if pod_class not in pods:
            self._met[pod_class].add(row)
        left = pods.get(pod_class, 0) + count
        if left:
            pods[pod_class] = left
        else:
            del pods[pod_class]

    def new_row(self, pods: dict[PodClass, int]) -> None:
        for pod_class in pods:
            self._met[pod_class].add(len(self._on))
        self._asked.add(len(self._on))
        self._on.append(dict(pods))

    def drop_row(self) -> None:
        """The last one."""
        self._on.pop()
        self._asked.discard(len(self._on))

    def replace(self, row: int, pods: dict[PodClass, int]) -> dict[PodClass, int]:
        """Put these on the row; returns those that were there."""
        before, self._on[row] = self[row], pods
        return before

    def count(self, pod_class: PodClass, counts: Ints) -> None:
        """Add to ``counts`` the pods of one Node of each row."""
        code = self._numbers.get(pod_class)
        rows, there = self._by_class.of(-1 if code is None else code)
        same = np.fromiter((row not in self._asked for row in rows.tolist()), np.bool_, len(rows))
        counts[rows[same]] += there[same]
        for row in {*rows[~same].tolist(), *self._met[pod_class]}:
            if row < len(self._on):
                counts[row] += (self._on[row] or {}).get(pod_class, 0)


class _Sorted:
    """Pairs by what they are sorted by."""

    def __init__(self, by: Ints, what: Ints, counts: Ints) -> None:
        self._starts = np.searchsorted(by, np.arange(int(by[-1]) + 2 if len(by) else 1)).tolist()
        self._what = what
        self._counts = counts

    def of(self, number: int) -> tuple[Ints, Ints]:
        if not 0 <= number < len(self._starts) - 1:
            return self._what[:0], self._counts[:0]
        here = slice(self._starts[number], self._starts[number + 1])
        return self._what[here], self._counts[here]
