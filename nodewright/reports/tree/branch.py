"""The tree as values; ``drawing`` turns it into text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Mood(StrEnum):
    """How a line of the tree looks to a person."""

    GOOD = "ok"
    BUSY = "busy"
    """On its way; nothing to do but wait."""
    BAD = "wrong"
    """Somebody should look."""
    PAUSED = "paused"
    PLAIN = ""
    """Says something, judges nothing."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line: ``name`` in the tree, then what is said of it, then the lines below it.

    ``reason`` is a condition's reason; ``since`` when it became so; ``advice`` says what to do ("" if nothing).
    """

    name: str
    mood: Mood = Mood.PLAIN
    state: str = ""
    reason: str = ""
    since: datetime | None = None
    message: str = ""
    advice: str = ""
    children: tuple[Branch, ...] = field(default=())


def wrong(branch: Branch) -> list[Branch]:
    """Every line that somebody should look at, top down."""
    found = [branch] if branch.mood is Mood.BAD else []
    for child in branch.children:
        found.extend(wrong(child))
    return found
