"""Sets of pods whose number per Node decides whether another pod may come: hashable, so each is counted once."""

from __future__ import annotations

from dataclasses import dataclass

from api.selectors import Selector
from controllers.scheduling.classes import Mark, PodClass, marks_of
from controllers.scheduling.shapes import HostPort, PodTerm


@dataclass(frozen=True, slots=True)
class MeantByAll:
    """Pods that every one of the terms means."""

    terms: tuple[PodTerm, ...]

    @property
    def marks(self) -> tuple[Mark, ...] | None:
        return marks_of(self.terms[0].selector)

    def matches(self, pod_class: PodClass) -> bool:
        return all(pod_class.is_meant_by(term) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Averse:
    """Pods that have this anti-affinity term themselves."""

    term: PodTerm

    @property
    def marks(self) -> tuple[Mark, ...] | None:
        return (self.term,)

    def matches(self, pod_class: PodClass) -> bool:
        return self.term in pod_class.demand.anti_affinity


@dataclass(frozen=True, slots=True)
class Listening:
    """Pods that hold a host port which collides with one of these."""

    ports: tuple[HostPort, ...]

    @property
    def marks(self) -> tuple[Mark, ...] | None:
        return None

    def matches(self, pod_class: PodClass) -> bool:
        return any(mine.collides(theirs) for mine in self.ports for theirs in pod_class.demand.ports)


@dataclass(frozen=True, slots=True)
class SpreadOver:
    """Pods that a topology spread constraint counts."""

    namespace: str
    selector: Selector

    @property
    def marks(self) -> tuple[Mark, ...] | None:
        return marks_of(self.selector)

    def matches(self, pod_class: PodClass) -> bool:
        if self.selector.empty or pod_class.terminating or pod_class.namespace != self.namespace:
            return False
        return self.selector.matches(pod_class.labels)


@dataclass(frozen=True, slots=True)
class Using:
    """Pods that use one of these volumes."""

    handles: frozenset[str]

    @property
    def marks(self) -> tuple[Mark, ...] | None:
        return None

    def matches(self, pod_class: PodClass) -> bool:
        return any(volume.handle in self.handles for volume in pod_class.demand.volumes)
