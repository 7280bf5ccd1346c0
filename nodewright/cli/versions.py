"""Which of two versions of this program came later?"""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)").match


def is_newer(one: str, other: str) -> bool:
    """Whether ``one`` has a later minor version: patches change neither kinds nor formats. What is no version isn't."""
    first, second = _NUMBERS(one), _NUMBERS(other)
    if first is None or second is None:
        return False
    return tuple(map(int, first.groups())) > tuple(map(int, second.groups()))
