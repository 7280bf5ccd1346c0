"""The menu of bad luck: what Sieve found bugs with (crashes, stale reads, unobserved events), and clouds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities per opportunity, unless named otherwise."""

    crash: float = 0.0
    """The process dies before an action of a plan."""
    lost_answer: float = 0.0
    """A write to the API works but its answer is lost."""
    refused_write: float = 0.0
    """A write to the API fails with 500 and did nothing."""
    lost_event: float = 0.0
    """A watch event never arrives; the next relist repairs it."""
    lag: float = 0.0
    """A step delivers no events although some are waiting, so that reconciles see a stale world."""
    provider_errors: float = 0.0
    lost_provider_answers: float = 0.0
    outages: int = 0
    """How often the provider is down for a minute."""
    broken_hosts: int = 0
    """How many hosts' hardware fails."""
    zombies: float = 0.0
    """Share of hosts that never register a Node."""


NONE = Faults()
ROUGH = Faults(
    crash=0.01,
    lost_answer=0.01,
    refused_write=0.01,
    lost_event=0.01,
    lag=0.3,
    provider_errors=0.05,
    lost_provider_answers=0.05,
    outages=1,
)
