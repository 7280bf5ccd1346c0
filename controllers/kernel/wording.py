"""Sentences for people: ``1 Machine``, ``2 Machines``; what is wrong with a configuration, field by field."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.kernel.view import ConfigProblem

MOST_PROBLEMS = 5
"""Shown of a configuration; the rest is counted."""


def counted(number: int, one: str, many: str = "") -> str:
    """``number`` with the words that go with it; ``many`` is ``one`` with an s where it is not given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def in_words(problems: Iterable[ConfigProblem], below: str = "") -> str:
    """The first few problems, each with its field, ``below`` before it."""
    texts = [f"{below}{one.path}: {one.message}" if one.path else one.message for one in problems]
    more = len(texts) - MOST_PROBLEMS
    return "; ".join(texts[:MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
