"""What a candidate does about a Lease (coordination.k8s.io/v1): a decision over values, without I/O or a clock.

The rules are those of Kubernetes' own controllers. Times of other processes are never compared with ours: a Lease has
run out when *we* have seen it unchanged for as long as its holder asked for, by our own monotonic clock. A holder
counts from before it sent its last renewal, and gives up after ``renew_deadline``, which is shorter: it has stopped by
the time anybody else may begin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controllers.kernel.refs import Obj, resource_version_of, uid_of

_JITTER = 1.2
"""Candidates wait up to so many retry periods, lest they ask in step; the deadline must leave room for that."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds, with the defaults of kube-controller-manager.

    ``lease_duration``: how long others wait after the last renewal they saw. ``renew_deadline``: how long the leader
    goes on without a renewal that succeeded. ``retry_period``: between two tries.

    Raises ValueError unless lease_duration > renew_deadline > 1.2 * retry_period > 0.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry_period > 0:
            raise ValueError(f"the retry period must be above 0, not {self.retry_period:g} s")
        if not self.renew_deadline > _JITTER * self.retry_period:
            raise ValueError(
                f"the renew deadline ({self.renew_deadline:g} s) must be above {_JITTER} times the retry period "
                f"({self.retry_period:g} s)"
            )
        if not self.lease_duration > self.renew_deadline:
            raise ValueError(
                f"the lease duration ({self.lease_duration:g} s) must be above the renew deadline "
                f"({self.renew_deadline:g} s)"
            )

    @property
    def longest_pause(self) -> float:
        """Between two tries, jitter included."""
        return _JITTER * self.retry_period

    @property
    def seconds(self) -> int:
        """``spec.leaseDurationSeconds``: whole seconds, never fewer than were asked for."""
        return math.ceil(self.lease_duration)


@dataclass(frozen=True, slots=True)
class Seen:
    """The Lease as it was read last, and when (monotonic) this process first saw it as it is. None: no Lease."""

    lease: Obj | None
    since: float

    def then(self, lease: Obj | None, now: float) -> Seen:
        """After another look: a Lease that nobody has written keeps its time.

        Its ``renewTime`` alone would not tell: a holder whose clock stands still renews all the same.
        """
        moved = self.lease is None or lease is None or _written(lease) != _written(self.lease)
        return Seen(lease, now if moved else self.since)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The candidate: ``identity`` is unique to the process. ``renewed_at``: when it sent the last renewal that
    succeeded, None while it does not lead.
    """

    identity: str
    terms: Terms
    renewed_at: float | None = None

    @property
    def gives_up_at(self) -> float:
        """The moment (monotonic) from which it must not write; it leads if that is not past."""
        return -math.inf if self.renewed_at is None else self.renewed_at + self.terms.renew_deadline


@dataclass(frozen=True, slots=True)
class Acquire:
    """Write ``spec``: as a new Lease if there is none, else over the one that was seen."""

    spec: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class Renew:
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Somebody else holds it."""

    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """It led and must not write any more."""

    why: str


Decision = Acquire | Renew | Wait | Lost


def decide(seen: Seen, candidate: Candidate, now: float, wall: datetime, *, gone: bool = False) -> Decision:
    """``now`` is monotonic and decides; ``wall`` is only written down, for people.

    ``gone``: the holder's process has certainly ended, so nobody waits for its Lease to run out.
    """
    spec = spec_of(seen.lease)
    holder = str(spec.get("holderIdentity") or "")
    if candidate.renewed_at is not None:
        return _as_leader(seen, candidate, now, wall)
    if seen.lease is None:
        return Acquire(_acquired(spec, candidate, wall), "there is no Lease yet")
    if not holder:
        return Acquire(_acquired(spec, candidate, wall), "its holder has released it")
    if holder == candidate.identity:
        return Acquire(_acquired(spec, candidate, wall), "an earlier answer was lost: it is ours")
    if gone:
        return Acquire(_acquired(spec, candidate, wall), f"the process of {holder} has ended")
    lasts = duration_of(seen.lease, candidate.terms)
    if now < seen.since + lasts:
        return Wait(f"held by {holder}")
    return Acquire(_acquired(spec, candidate, wall), f"{holder} has not renewed it for {lasts:g} s")


def _as_leader(seen: Seen, candidate: Candidate, now: float, wall: datetime) -> Decision:
    spec = spec_of(seen.lease)
    if now >= candidate.gives_up_at:
        return Lost(f"it could not be renewed within {candidate.terms.renew_deadline:g} s")
    if seen.lease is None:
        return Acquire(_acquired(spec, candidate, wall), "the Lease was deleted")
    holder = str(spec.get("holderIdentity") or "")
    if holder != candidate.identity:
        return Lost(f"{holder or 'nobody'} holds it now")
    return Renew({"renewTime": _micro_time(wall), "leaseDurationSeconds": candidate.terms.seconds})


def released(wall: datetime) -> Mapping[str, Any]:
    """The spec that lets the next candidate begin at once."""
    return {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_time(wall)}


def spec_of(lease: Obj | None) -> Mapping[str, Any]:
    spec = (lease or {}).get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _written(lease: Obj) -> tuple[str, str]:
    return uid_of(lease), resource_version_of(lease)


def _acquired(spec: Mapping[str, Any], candidate: Candidate, wall: datetime) -> Mapping[str, Any]:
    changes_hands = bool(spec) and spec.get("holderIdentity") != candidate.identity
    moment = _micro_time(wall)
    return {
        "holderIdentity": candidate.identity,
        "leaseDurationSeconds": candidate.terms.seconds,
        "acquireTime": moment,
        "renewTime": moment,
        "leaseTransitions": int(spec.get("leaseTransitions") or 0) + changes_hands,
    }


def duration_of(lease: Obj | None, terms: Terms) -> float:
    """Seconds that the holder asked for; it may run with other terms than ours."""
    spec = spec_of(lease)
    return float(spec.get("leaseDurationSeconds") or terms.lease_duration)


def _micro_time(wall: datetime) -> str:
    """metav1.MicroTime: exactly six digits."""
    return wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
