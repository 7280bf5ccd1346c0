"""Which classes of pods are on which rows of a snapshot, and how many of each.

Where pods were when the snapshot was made is kept as numbers, sorted by row and by class: of 150,000 pods few are ever
asked for one by one. What has moved since is kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints


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
