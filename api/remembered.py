"""A memory for functions of one text: bounded in number and in bytes, since the texts are written by others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=str | int)

LONGEST = 512
"""Characters of a text that is remembered; what is longer is worked out each time."""


def remembered(most: int, longest: int = LONGEST) -> Callable[[Callable[[K], T]], Callable[[K], T]]:
    """Like ``lru_cache(most)``, but for texts of over ``longest`` characters. Numbers are always remembered."""

    def around(function: Callable[[K], T]) -> Callable[[K], T]:
        cached = lru_cache(maxsize=most)(function)

        @wraps(function)
        def answer(text: K) -> T:
            return function(text) if isinstance(text, str) and len(text) > longest else cached(text)

        return answer

    return around
