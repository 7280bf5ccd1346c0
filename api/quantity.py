"""Resource quantities (``500m``, ``2Gi``) as exact decimals."""

from __future__ import annotations

import re
from decimal import Decimal

QUANTITY_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,3}))?$"
"""Kubernetes' quantity grammar."""
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?\Z")
_MAX_TEXT = 64
_SUFFIX = {
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    "m": Decimal("1e-3"),
    "u": Decimal("1e-6"),
    "n": Decimal("1e-9"),
    "": Decimal(1),
}


def parse_quantity(text: str | int) -> Decimal:
    """``1500m`` → 1.5, ``2Gi`` → 2147483648. Raises ValueError for anything that is no quantity."""
    match = _QUANTITY.match(str(text)) if len(str(text)) <= _MAX_TEXT else None
    if match is None or isinstance(text, bool):
        raise ValueError(f"{text!r} is not a quantity like 4, 500m or 2Gi")
    number, suffix = match.group(1), match.group(2) or ""
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        return Decimal(number) * Decimal(10) ** int(suffix[1:])
    return Decimal(number) * _SUFFIX[suffix]
