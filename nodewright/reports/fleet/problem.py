"""One line of ``nodewright status``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Problem:
    """One line that somebody should look at. ``object``: ``Kind/name``, or ``30 Machines`` for many in one state.

    ``below``: the object that was asked, where the line is one of its conditions or of what it owns.
    """

    namespace: str
    below: str
    object: str
    reason: str
    message: str
    since: datetime | None = None
    next_step: str = ""
