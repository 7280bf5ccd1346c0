"""Provisioning classes: how the room for a request is found. Packages may bring more of them, by an entry point.

A class decides for one request at a time, on a ``Trial`` that shows the cluster with all that was promised before. What
it tries there last counts if it says Found or Growth, and is undone if it says NotFound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from api import provisioning_names
from controllers.autoscaler.requests import Request
from controllers.autoscaler.reservations import Reservation

ENTRY_POINTS = "nodewright.provisioning_classes"
"""Group of entry points under which packages offer classes."""


@dataclass(frozen=True, slots=True)
class Found:
    """All pods have room on Nodes that are there; it is booked."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Growth:
    """All pods will have room once Nodes that are on their way are there. ``added``: group → Nodes to be asked for."""

    reservation: Reservation
    added: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no room; ``why`` is for people."""

    why: str


Verdict = Found | Growth | NotFound


class Trial(Protocol):
    """The cluster as it will be when all that was promised before is kept."""

    @property
    def request(self) -> Request: ...

    @property
    def parameters(self) -> Mapping[str, str]:
        """Those of the request, above the defaults of its class."""

    def fit(self) -> Reservation:
        """Room for the pods on Nodes that are there; what is ``short`` has none."""

    def grow(self) -> Growth | NotFound:
        """Room on Nodes that are there, on their way, or could be added: for all pods or for none."""


@runtime_checkable
class ProvisioningClass(Protocol):
    @property
    def names(self) -> tuple[str, ...]:
        """By which requests ask for it."""

    def decide(self, trial: Trial) -> Verdict:
        """Pure. Asked again, after a pause, as long as it says NotFound."""


class CheckCapacity:
    """Only what is there."""

    names = (provisioning_names.CHECK_CAPACITY, provisioning_names.PROPOSED_CHECK_CAPACITY)

    def decide(self, trial: Trial) -> Verdict:
        reservation = trial.fit()
        if not reservation.short:
            return Found(reservation)
        wanted = sum(count for _, count in trial.request.pods)
        return NotFound(
            f"{sum(count for _, count in reservation.short)} of {wanted} pods have no room on the Nodes there are"
        )


class AtomicScaleUp:
    """What is there, and what can be added."""

    names = (provisioning_names.ATOMIC_SCALE_UP, provisioning_names.PROPOSED_ATOMIC_SCALE_UP)

    def decide(self, trial: Trial) -> Verdict:
        reservation = trial.fit()
        return trial.grow() if reservation.short else Found(reservation)


def by_name(found: Iterable[ProvisioningClass]) -> dict[str, ProvisioningClass]:
    return {name: each for each in found for name in each.names}


BUILT_IN: Mapping[str, ProvisioningClass] = by_name((CheckCapacity(), AtomicScaleUp()))


def is_reserved(name: str) -> bool:
    """Whether nobody but the project itself names classes so."""
    return name.endswith(provisioning_names.RESERVED_CLASS_SUFFIXES)
