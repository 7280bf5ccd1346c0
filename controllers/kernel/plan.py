"""A Plan: what to do now, in which order, what to expect of it, and why not more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from controllers.kernel.actions import Action

Step = tuple[Action, ...]
"""Actions of one step may run in parallel; the next step starts only if all of this one succeeded."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing more to do until something changes."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after ``after`` seconds even if nothing changes."""

    after: float
    why: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """Somebody else has to move first (a person, a PodDisruptionBudget); ``after`` is how often to look again."""

    why: str
    after: float = 30.0


@dataclass(frozen=True, slots=True)
class Failed:
    """Can't go on without another spec; ``reason`` is a condition reason."""

    reason: str
    why: str


Outcome = Settled | Wait | Blocked | Failed


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, by its full name. ``total``: it only grows, by what each plan adds to it."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    total: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of a plan, with the values of the measure's labels."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps run in order; ``notes`` are the reasons for what was *not* done (shown by dry run and at debug level).

    ``samples`` are for the metrics; what they add to totals counts if all steps succeed. None: what was given before
    still holds.
    """

    steps: tuple[Step, ...] = ()
    outcome: Outcome = Settled()
    notes: tuple[str, ...] = ()
    samples: tuple[Sample, ...] | None = ()

    def actions(self) -> Iterator[Action]:
        for step in self.steps:
            yield from step


NOTHING = Plan()


def steps(*groups: tuple[Action, ...] | list[Action]) -> tuple[Step, ...]:
    """Build steps, leaving out the empty ones."""
    return tuple(tuple(group) for group in groups if group)
