"""One line for an API server that is away, where each of a dozen watches would write its own, again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controllers.kernel.conditions import some_of

FIRST_AFTER = 2.0
"""Seconds that something has to be missing before it is worth a line: watches end and begin anew all the time."""
_FIRST_PAUSE = 30.0
_LONGEST_PAUSE = 300.0
_MOST_KINDS = 5


@dataclass(frozen=True, slots=True)
class Line:
    """``why``: the cause that most kinds name; ``kinds``: which kinds are not current."""

    event: str
    why: str = ""
    kinds: str = ""
    wrong: bool = True


class Outages:
    """Watches over what is not current, and says when that begins, lasts and ends.

    Lines about one outage: after ``first_after`` seconds, then after 30, 60, 120 and so on up to 300 seconds more.
    """

    def __init__(self, first_after: float = FIRST_AFTER) -> None:
        self._first_after = first_after
        self._began: float | None = None
        self._next = 0.0
        self._pause = _FIRST_PAUSE
        self._logged = False

    def look(self, now: float, problems: Mapping[str, str]) -> Line | None:
        """``problems``: by plural of a kind, why it is not current. ``now``: seconds of a monotonic clock."""
        if not problems:
            return self._over(now)
        if self._began is None:
            self._began, self._next, self._pause = now, now + self._first_after, _FIRST_PAUSE
        if now < self._next:
            return None
        self._next, self._pause = now + self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        self._logged = True
        cause, times = Counter(_cause(kind, text) for kind, text in problems.items()).most_common(1)[0]
        others = "" if times == len(problems) else f" (and {len(problems) - times} for another reason)"
        return Line(
            "not everything can be read, nothing is decided about it meanwhile", cause + others, _kinds(problems)
        )

    def _over(self, now: float) -> Line | None:
        began, logged = self._began, self._logged
        self._began, self._logged = None, False
        if began is None or not logged:
            return None
        return Line("everything can be read again", f"after {now - began:.0f} s", wrong=False)


def _cause(kind: str, text: str) -> str:
    """The text without what names the kind: ``watch of pods: ConnectionRefused`` is the same cause for Nodes."""
    head, colon, cause = text.partition(": ")
    return cause if colon and kind in head else text


def _kinds(problems: Mapping[str, str]) -> str:
    return some_of(sorted(problems), _MOST_KINDS)
