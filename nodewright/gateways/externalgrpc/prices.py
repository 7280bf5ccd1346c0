"""What Nodes and pods cost, from a table that the operator keeps; for the autoscaler's expander `price`.

nodes:                  # an hour of a Node: by node group, else by instance type
  MachineDeployment/default/batch: 0.45
  m.large: 0.12
pods:                   # an hour of what pods ask for
  cpu: 0.02             # a core
  memory: 0.003         # a GiB
  nvidia.com/gpu: 1.1   # one of any other resource
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import yaml

from api.quantity import parse_quantity
from nodewright.gateways.externalgrpc.wire import core_pb2 as core

INSTANCE_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_GIB = 1024**3
_HOUR = timedelta(hours=1)


class PriceTableError(ValueError):
    """A table that can't be used; the message names the entry."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    nodes: Mapping[str, float] = field(default_factory=dict)
    pods: Mapping[str, float] = field(default_factory=dict)

    def node(self, group: str, labels: Mapping[str, str], span: timedelta) -> float | None:
        """None: nobody says what such a Node costs."""
        types = (labels.get(label, "") for label in INSTANCE_TYPE_LABELS)
        hourly = next((self.nodes[name] for name in (group, *types) if name in self.nodes), None)
        return None if hourly is None else hourly * (span / _HOUR)

    def pod(self, pod: core.Pod, span: timedelta) -> float:
        hourly = sum(
            self.pods.get(name, 0.0) * float(amount) / (_GIB if name == "memory" else 1)
            for name, amount in requests_of(pod).items()
        )
        return hourly * (span / _HOUR)


def read_table(text: str) -> PriceTable:
    """Raises PriceTableError."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PriceTableError(f"not YAML: {error}") from error
    if not isinstance(found, Mapping) or not set(found) <= {"nodes", "pods"}:
        raise PriceTableError("a map with the keys nodes and pods is needed, and nothing else")
    return PriceTable(_prices(found.get("nodes"), "nodes"), _prices(found.get("pods"), "pods"))


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


def _prices(found: Any, where: str) -> dict[str, float]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise PriceTableError(f"{where}: a map of prices is needed")
    for name, price in found.items():
        sound = isinstance(price, int | float) and not isinstance(price, bool) and math.isfinite(price) and price >= 0
        if not sound:
            raise PriceTableError(f"{where}[{name}]: {price!r} is no price")
    return {str(name): float(price) for name, price in found.items()}
