"""Sentences for people: ``1 Machine``, ``2 Machines``; what is wrong with a configuration, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controllers.kernel.view import ConfigProblem

MOST_PROBLEMS = 5
"""Shown of a configuration; the rest is counted."""


def counted(number: int, one: str, many: str = "") -> str:
    """``number`` with the words that go with it; ``many`` is ``one`` with an s where it is not given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def some_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first ``most`` texts and how many there are besides: ``a, b and 3 more``, or ``a; b; and 3 more``."""
    more, last = len(texts) - most, " and" if separator == ", " else f"{separator}and"
    return separator.join(texts[:most]) + (f"{last} {more} more" if more > 0 else "")


def in_words(problems: Iterable[ConfigProblem], below: str = "") -> str:
    """The first few problems, each with its field, ``below`` before it."""
    texts = [f"{below}{one.path}: {one.message}" if one.path else one.message for one in problems]
    return some_of(texts, MOST_PROBLEMS, "; ")
