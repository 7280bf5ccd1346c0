"""Resource lists as whole numbers, rounded as kube-scheduler rounds: up, and once per sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from api.quantity import parse_quantity
from api.remembered import remembered
from controllers.scheduling.shapes import CPU, Amounts

Quantities = dict[str, Decimal]

_EXACT = Context(prec=100)
_LARGEST = (1 << 63) - 1
_MILLI = Decimal(1000)


class ShapeError(ValueError):
    """A Node or pod that can't be read. ``field`` is the path inside the object."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def quantities(found: Any, field: str) -> Quantities:
    """A ResourceList as exact decimals. Raises ShapeError naming the entry."""
    if not found:
        return {}
    if not isinstance(found, Mapping):
        raise ShapeError(field, "must be a map of resources to quantities")
    exact = {}
    for name, text in found.items():
        try:
            exact[str(name)] = _parsed(text if isinstance(text, int) else str(text))
        except (ValueError, ArithmeticError) as error:
            raise ShapeError(f"{field}[{name}]", str(error)) from None
    return exact


def add(total: Quantities, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = _EXACT.add(total[name], amount) if name in total else amount


def largest(*lists: Mapping[str, Decimal]) -> Quantities:
    """Per resource the largest amount."""
    best: Quantities = {}
    for each in lists:
        for name, amount in each.items():
            if name not in best or amount > best[name]:
                best[name] = amount
    return best


def whole(exact: Mapping[str, Decimal]) -> Amounts:
    """As kube-scheduler counts: cpu in thousandths, the rest in units, rounded up; zeros are left out."""
    rounded = ((name, _whole(name, amount)) for name, amount in exact.items())
    return tuple(sorted((name, amount) for name, amount in rounded if amount > 0))


def at_most(exact: Mapping[str, Decimal]) -> dict[str, int]:
    """Limits in the units of ``whole``, rounded down; zeros and what is below zero are kept."""
    return {
        name: int(_scaled(name, amount).to_integral_value(rounding=ROUND_FLOOR, context=_EXACT))
        for name, amount in exact.items()
    }


def total(lists: Iterable[tuple[Amounts, int]]) -> Amounts:
    """The sum of amounts, each taken so many times."""
    summed: dict[str, int] = {}
    for amounts, times in lists:
        for name, amount in amounts:
            summed[name] = summed.get(name, 0) + amount * times
    return tuple(sorted(summed.items()))


def _whole(name: str, amount: Decimal) -> int:
    rounded = _scaled(name, amount).to_integral_value(rounding=ROUND_CEILING, context=_EXACT)
    return min(int(rounded), _LARGEST)


def _scaled(name: str, amount: Decimal) -> Decimal:
    return _EXACT.multiply(amount, _MILLI) if name == CPU else amount


@remembered(4096)
def _parsed(text: str | int) -> Decimal:
    return parse_quantity(text)
