"""Numbers in sentences for people: ``1 Machine``, ``2 Machines``."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """``number`` with the words that go with it; ``many`` is ``one`` with an s where it is not given."""
    return f"{number} {one if number == 1 else many or one + 's'}"
