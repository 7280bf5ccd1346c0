"""Which classes of pods are on which rows of a snapshot, and how many of each.

Where pods were when the snapshot was made is kept as numbers, sorted by row and by class: of 150,000 pods few are ever
asked for one by one. What has moved since is kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from controllers.scheduling.classes import PodClass
from controllers.scheduling.columns import Ints


class Seats(Sequence[dict[PodClass, int]]):
    """By row: class → pods on one Node of the row, never 0. What is handed out must not be changed."""

    def __init__(self) -> None:
        self._on: list[dict[PodClass, int] | None] = []
        """None: as it was when the pods were seated."""
        self._moved: dict[PodClass, dict[int, int]] = {}
        """Class → row → how many pods more or less than then. All classes that were ever here are in it."""
        self._numbers: dict[PodClass, int] = {}
        self._classes: list[PodClass] = []
        self._by_row = _Sorted(*([np.zeros(0, np.int64)] * 3))
        self._by_class = self._by_row

    def __len__(self) -> int:
        return len(self._on)

    def __getitem__(self, row: int) -> dict[PodClass, int]:  # type: ignore[override]
        found = self._on[row]
        if found is None:
            codes, counts = self._by_row.of(row)
            found = self._on[row] = dict(zip(map(self._classes.__getitem__, codes.tolist()), counts.tolist(), strict=True))
        return found

    def __contains__(self, pod_class: object) -> bool:
        """Whether such pods are or were here."""
        return pod_class in self._moved

    @property
    def classes(self) -> Iterator[PodClass]:
        """All that are or were here."""
        return iter(self._moved)

    def seat(self, classes: Sequence[PodClass], codes: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Pod by pod its class, by its number in ``classes``, and its row; once, and before anything moves.

        Returns them with how many there are of each, equal ones taken together.
        """
        self._classes = list(classes)
        self._numbers = {pod_class: code for code, pod_class in enumerate(classes)}
        self._moved.update((pod_class, {}) for pod_class in classes)
        width = max(1, len(classes))
        places, counts = np.unique(rows * width + codes, return_counts=True)
        rows, codes = np.divmod(places, width)
        order = np.argsort(codes, kind="stable")
        self._by_row = _Sorted(rows, codes, counts)
        self._by_class = _Sorted(codes[order], rows[order], counts[order])
        self._on = [None] * len(self._on)
        return codes, rows, counts

    def meet(self, pod_class: PodClass) -> None:
        self._moved[pod_class] = {}

    def add(self, row: int, pod_class: PodClass, count: int) -> None:
        """``count`` more pods on each Node of the row, or fewer."""
        moved, pods = self._moved[pod_class], self[row]
        moved[row] = moved.get(row, 0) + count
        left = pods.get(pod_class, 0) + count
        if left:
            pods[pod_class] = left
        else:
            del pods[pod_class]

    def new_row(self, pods: dict[PodClass, int]) -> None:
        row = len(self._on)
        self._on.append(dict(pods))
        for pod_class, count in pods.items():
            self._moved[pod_class][row] = count

    def drop_row(self) -> None:
        """The last one."""
        pods = self._on.pop()
        for pod_class in pods or ():
            del self._moved[pod_class][len(self._on)]

    def clear(self, row: int) -> dict[PodClass, int]:
        """Take all pods away; returns them, for ``restore``."""
        pods = self[row]
        self._on[row] = {}
        for pod_class, count in pods.items():
            moved = self._moved[pod_class]
            moved[row] = moved.get(row, 0) - count
        return pods

    def restore(self, row: int, pods: dict[PodClass, int]) -> None:
        self._on[row] = pods
        for pod_class, count in pods.items():
            self._moved[pod_class][row] += count

    def count(self, pod_class: PodClass, counts: Ints) -> None:
        """Add to ``counts`` the pods of one Node of each row."""
        code = self._numbers.get(pod_class)
        if code is not None:
            rows, there = self._by_class.of(code)
            counts[rows] += there
        for row, count in self._moved[pod_class].items():
            counts[row] += count


class _Sorted:
    """Pairs by what they are sorted by."""

    def __init__(self, by: Ints, what: Ints, counts: Ints) -> None:
        self._starts = np.searchsorted(by, np.arange(int(by[-1]) + 2 if len(by) else 1)).tolist()
        self._what = what
        self._counts = counts

    def of(self, number: int) -> tuple[Ints, Ints]:
        if number + 1 >= len(self._starts):
            return self._what[:0], self._counts[:0]
        here = slice(self._starts[number], self._starts[number + 1])
        return self._what[here], self._counts[here]
