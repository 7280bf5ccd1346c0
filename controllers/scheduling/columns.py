"""Labels of many Nodes as arrays of numbers, so that a requirement is asked once per value and not once per Node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from api.selectors import Operator, Requirement
from controllers.scheduling.shapes import HOSTNAME, NodeInfo

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ABSENT, ALONE = -1, -2
"""Codes of a Node without the label, and of one that is the only Node with its value."""


class Column:
    """The values of one label along a growing list of Nodes."""

    def __init__(self, key: str, nodes: Sequence[NodeInfo]) -> None:
        self.key = key
        self.values: list[str] = []
        self._index: dict[str, int] = {}
        self._codes: Ints = np.zeros(0, np.int64)
        self._filled = 0
        self._answers: dict[Requirement, tuple[int, Bools]] = {}
        self.extend(nodes)

    def extend(self, nodes: Sequence[NodeInfo]) -> None:
        """Take in the rows that came since."""
        if len(nodes) > len(self._codes):
            grown = np.full(max(len(nodes), 2 * len(self._codes)), ABSENT, np.int64)
            grown[: self._filled] = self._codes[: self._filled]
            self._codes = grown
        for row in range(self._filled, len(nodes)):
            self._codes[row] = self._code(nodes[row])
        self._filled = len(nodes)

    @property
    def codes(self) -> Ints:
        return self._codes[: self._filled]

    def code(self, value: str) -> int:
        """The number of a value; ABSENT if no row has it."""
        return self._index.get(value, ABSENT)

    def matching(self, requirement: Requirement) -> Bools:
        """Per row, as ``Requirement.matches``. Only for a key whose values are shared, not for names."""
        known = self._answers.get(requirement)
        if known is None or known[0] != len(self.values):
            known = (len(self.values), self._ask(requirement))
            self._answers[requirement] = known
        answers: Bools = known[1][self.codes]
        return answers

    def _ask(self, requirement: Requirement) -> Bools:
        """Per code; the last entry stands for ABSENT (code -1), the one before it for ALONE (code -2)."""
        answers = np.zeros(len(self.values) + 2, np.bool_)
        if requirement.operator is Operator.IN:
            known = [self._index[value] for value in requirement.values if value in self._index]
            answers[known] = True
            return answers
        key = requirement.key
        answers[: len(self.values)] = [requirement.matches({key: value}) for value in self.values]
        answers[ALONE] = requirement.matches({key: "?"})
        answers[ABSENT] = requirement.matches({})
        return answers

    def _code(self, node: NodeInfo) -> int:
        value = node.labels.get(self.key)
        if value is None:
            return ABSENT
        if node.hypothetical and self.key == HOSTNAME:
            return ALONE
        code = self._index.get(value)
        if code is None:
            code = self._index[value] = len(self.values)
            self.values.append(value)
        return code
