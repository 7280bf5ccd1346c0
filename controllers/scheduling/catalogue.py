"""The different Nodes of a snapshot, and what selectors and tolerations say to each of them: asked once, remembered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from controllers.scheduling.columns import Bools, Column
from controllers.scheduling.predicates import taint_refusal
from controllers.scheduling.shapes import Demand, NodeInfo, NodeTerm, Taint


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
