"""Keep Events about one object from becoming a flood, as client-go's recorder does. Pure: time comes in as seconds.

* Similar events (same object, type and reason, another sentence each time) beyond a number become one combined Event
  that shows the latest sentence.
* An object has a budget of writes: a burst, then one every few minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from controllers.kernel.actions import Event
from nodewright.runtime.hosts.limits import TokenBucket

MOST_SIMILAR = 10
SIMILAR_WITHIN = 600.0
"""So many sentences of one object and reason within so many seconds stand for themselves."""
BURST, REFILL_SECONDS = 25, 300.0
"""Writes about one object at once, and seconds until it may have one more."""
MOST_OBJECTS = 4096
"""Objects, and groups of similar events, that are remembered; the oldest is forgotten first."""
COMBINED = "(combined from similar events): "

Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Correlated:
    """What to write under which identity. The message of a combined Event changes while its identity stays."""

    identity: Identity
    message: str
    combined: bool = False


class Correlator:
    def __init__(self) -> None:
        self._recorded: dict[Identity, dict[str, float]] = {}
        """Sentences of each group of similar events, with when each was said last."""
        self._budgets: dict[Identity, TokenBucket] = {}

    def correlate(self, event: Event, now: float) -> Correlated:
        """Which Event this is an occurrence of."""
        group = (*_object(event), event.type, event.reason)
        recorded = self._recorded.pop(group, {})
        recorded = {why: at for why, at in recorded.items() if now - at < SIMILAR_WITHIN}
        known = event.why in recorded
        if known or len(recorded) < MOST_SIMILAR:
            recorded[event.why] = now
            result = Correlated((*group, event.why), event.why)
        else:
            result = Correlated((*group, COMBINED), COMBINED + event.why, combined=True)
        self._recorded[group] = recorded
        _forget_oldest(self._recorded)
        return result

    def may_write(self, event: Event, now: float) -> bool:
        """Whether the object has budget for one more write; takes it."""
        about = _object(event)
        budget = self._budgets.pop(about, None) or TokenBucket(1 / REFILL_SECONDS, BURST)
        self._budgets[about] = budget
        _forget_oldest(self._budgets)
        return budget.take(now) == 0.0


def _object(event: Event) -> Identity:
    return event.target.kind.name, str(event.target.key), event.target.uid


def _forget_oldest(remembered: dict[Identity, Any]) -> None:
    if len(remembered) > MOST_OBJECTS:
        del remembered[next(iter(remembered))]
