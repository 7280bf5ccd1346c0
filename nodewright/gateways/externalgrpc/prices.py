"""What a pod of the wire asks for, to be priced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from api.quantity import parse_quantity
from nodewright.gateways.externalgrpc.wire import core_pb2 as core


def requests_of(pod: core.Pod) -> dict[str, Decimal]:
    """What a scheduler counts: all containers together, or the largest init container if that is more.

    Raises ValueError for a quantity that is none.
    """
    total = _sum(container.resources.requests for container in pod.spec.containers)
    for container in pod.spec.initContainers:
        for name, amount in _sum([container.resources.requests]).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    return _sum_of(total, _sum([pod.spec.overhead]))


def _sum(lists: Iterable[Mapping[str, core.Quantity]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for each in lists:
        total = _sum_of(total, {name: parse_quantity(amount.string) for name, amount in each.items()})
    return total


def _sum_of(one: Mapping[str, Decimal], other: Mapping[str, Decimal]) -> dict[str, Decimal]:
    return {name: one.get(name, Decimal(0)) + other.get(name, Decimal(0)) for name in {*one, *other}}
