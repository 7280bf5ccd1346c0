"""Pods in equivalence classes, and which of them a selector can match at all.

The Pods of a class are those that no predicate and no selector around can tell apart.

Which classes a selector can match at all: found by marks, so that not every class is compared with every selector.

A mark of a class is one of its labels or one of its anti-affinity terms. A selector that wants ``app In (a, b)`` can
mean only classes with one of the marks ``app=a`` and ``app=b``.

Labels count only where some selector reads their key. Pods of a StatefulSet or an indexed Job, each with a label of
its own, are one class as long as nobody selects by it; the Cluster Autoscaler makes one group of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from api.selectors import Operator, Selector
from controllers.scheduling.shapes import Amounts, Demand, PodInfo, PodKind, PodTerm

Mark = object
T = TypeVar("T")


def marks_of(selector: Selector) -> tuple[Mark, ...] | None:
    """Of which a class must have one to be selected; None: any class may be."""
    wanted = (each for each in selector.requirements if each.operator is Operator.IN)
    first = next(wanted, None)
    return None if first is None else tuple((first.key, value) for value in first.values)


class Index(Generic[T]):
    """Things by the marks that they look for."""

    def __init__(self) -> None:
        self._by_mark: dict[Mark, list[T]] = {}
        self._any: list[T] = []

    def add(self, thing: T, marks: tuple[Mark, ...] | None) -> None:
        if marks is None:
            self._any.append(thing)
        for mark in marks or ():
            self._by_mark.setdefault(mark, []).append(thing)

    def concerning(self, marks: Iterable[Mark]) -> Iterator[T]:
        """Each thing that looks for one of the marks or for none in particular."""
        yield from self._any
        for mark in marks:
            yield from self._by_mark.get(mark, ())


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """Compared by identity; ``Classes`` makes each one once."""

    demand: Demand
    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str]
    terminating: bool = False
    marks: tuple[Mark, ...] = ()
    """By which selectors and matchers find it."""

    @property
    def requests(self) -> Amounts:
        return self.demand.requests

    def is_meant_by(self, term: PodTerm) -> bool:
        in_namespace = self.namespace in term.namespaces or term.namespace_selector.matches(self.namespace_labels)
        return in_namespace and term.selector.matches(self.labels)


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one class."""

    pod_class: PodClass
    pods: tuple[PodInfo, ...]

    def __len__(self) -> int:
        return len(self.pods)


class Classes:
    """Sorts kinds of pods into classes. ``kinds`` must be all that will be asked for later: their selectors decide
    which labels count. ``namespaces``: labels of the Namespaces by name.
    """

    def __init__(self, kinds: Iterable[PodKind], namespaces: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._namespaces = namespaces or {}
        self._known: dict[PodKind, PodClass] = {}
        self._by_content: dict[object, PodClass] = {}
        self._selecting = False
        read: set[str] = set()
        for demand in {kind.demand for kind in dict.fromkeys(kinds)}:
            for selector in _selectors(demand):
                self._selecting = True
                read.update(requirement.key for requirement in selector.requirements)
        self._read = frozenset(read)

    def of(self, kind: PodKind) -> PodClass:
        """Raises LookupError for a kind whose selectors read labels that nobody announced."""
        known = self._known.get(kind)
        return known if known is not None else self._new(kind)

    def group(self, pods: Iterable[PodInfo]) -> list[Group]:
        """In order of first appearance."""
        found: dict[PodKind, list[PodInfo]] = {}
        for pod in pods:
            same = found.get(pod.kind)
            if same is None:
                found[pod.kind] = [pod]
            else:
                same.append(pod)
        merged: dict[PodClass, list[PodInfo]] = {}
        for kind, members in found.items():
            before = merged.setdefault(self.of(kind), members)
            if before is not members:
                before.extend(members)
        return [Group(each, tuple(members)) for each, members in merged.items()]

    def _new(self, kind: PodKind) -> PodClass:
        for selector in _selectors(kind.demand):
            unread = {requirement.key for requirement in selector.requirements} - self._read
            if unread or not self._selecting:
                raise LookupError(
                    f"the selector {selector} reads labels that these classes leave out: {sorted(unread)}"
                )
        labels = tuple(sorted((key, value) for key, value in kind.labels.items() if key in self._read))
        namespace = kind.namespace if self._selecting else ""
        terminating = kind.terminating and self._selecting
        content = (kind.demand, namespace, labels, terminating)
        known = self._by_content.get(content)
        if known is None:
            namespace_labels = self._namespaces.get(kind.namespace, {})
            marks = (*labels, *dict.fromkeys(kind.demand.anti_affinity))
            known = PodClass(kind.demand, namespace, dict(labels), namespace_labels, terminating, marks)
            self._by_content[content] = known
        self._known[kind] = known
        return known


def classes_of(pods: Sequence[PodInfo], namespaces: Mapping[str, Mapping[str, str]] | None = None) -> Classes:
    """Classes for these pods."""
    return Classes((pod.kind for pod in pods), namespaces)


def _selectors(demand: Demand) -> list[Selector]:
    terms = (*demand.affinity, *demand.anti_affinity)
    return [*(each.selector for each in terms), *(each.selector for each in demand.spread)]
